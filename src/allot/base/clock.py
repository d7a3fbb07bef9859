"""Where time comes from.

No core reads the clock by itself: it is handed one, so that a test or the
simulator can hand it another.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall-clock time, in UTC."""
        ...

    def monotonic_s(self) -> float:
        """Seconds from some fixed moment; never goes back."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.monotonic()
