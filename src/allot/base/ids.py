"""Where names that nobody chose come from.

Handed in like the clock, so that a seed decides every id of a simulated cluster.
"""

import random
from typing import Protocol

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes, so that a random suffix is never a word."""

_VERSION_4 = (4 << 76) | (2 << 62)
_FREE_BITS = ~((0xF << 76) | (3 << 62))


class Ids(Protocol):
    def uid(self) -> str:
        """A fresh lower-case UUID."""
        ...

    def suffix(self, length: int) -> str:
        """Random letters for the end of a generated name."""
        ...


class RandomIds:
    def __init__(self, rng: random.Random | None = None) -> None:
        # Ids must differ, not be secret: asking the system for each would cost more than the write.
        self._rng = rng or random.Random()

    def uid(self) -> str:
        # As uuid.UUID(int=..., version=4) would make and write it, in half the time.
        digits = f"{self._rng.getrandbits(128) & _FREE_BITS | _VERSION_4:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def suffix(self, length: int) -> str:
        return "".join(self._rng.choices(SUFFIX_LETTERS, k=length))
