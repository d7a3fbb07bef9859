"""One line when something goes away, and one when it is back, however many notice.

While it is away some of what is asked of it may still be answered, and soon after it is back something
may fail once more. So it counts as back when something worked and nothing failed for a while.
"""

import logging
import time
from collections.abc import Callable

QUIET_S = 5.0


class Outage:
    def __init__(
        self,
        log: logging.Logger,
        what: str,
        monotonic_s: Callable[[], float] = time.monotonic,
        level: int = logging.WARNING,
    ) -> None:
        self._log = log
        self._level = level
        self._what = what
        self._monotonic_s = monotonic_s
        self._is_on = False
        self._began_s = self._failed_s = 0.0

    def failed(self, why: str) -> None:
        self._failed_s = self._monotonic_s()
        if not self._is_on:
            self._is_on, self._began_s = True, self._failed_s
            self._log.log(self._level, "%s is away, trying on: %s", self._what, why)

    def worked(self) -> None:
        if self._is_on and self._monotonic_s() >= self._failed_s + QUIET_S:
            self._is_on = False
            away_s = self._failed_s - self._began_s
            self._log.log(self._level, "%s is back after %.0f s", self._what, away_s)
