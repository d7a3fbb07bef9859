"""Answers that nobody reads.

A connection whose client does not read is full: what was written waits in its buffer, and what was
not, in the hands of the task that writes it. Both are counted here while it is full.

    UNREAD1  A connection that stays full for UNREAD_S is cut.
    UNREAD2  Of all that waits, on all connections, no more than WAITING_BYTES_MAX is kept. Beyond that the
             connections are cut that have been full for longest, and for longer than MOMENT_S: who reads is
             full for moments only.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

UNREAD_S = 60.0
WAITING_BYTES_MAX = 64 * 1024 * 1024
MOMENT_S = 0.2
PIECE_BYTES = 64 * 1024
"""A long answer is written in pieces: of what is written, little more than one waits in the buffer."""


class _Full(NamedTuple):
    since: float
    size: int
    cut: Callable[[], object]


class Unread:
    def __init__(self) -> None:
        self._full: dict[object, _Full] = {}  # by connection, in the order of `since`
        self._bytes = 0
        self._alarm: asyncio.TimerHandle | None = None
        self.cut = 0

    @property
    def waiting_bytes(self) -> int:
        return self._bytes

    def full(self, who: object, size: int, cut: Callable[[], object]) -> None:
        """`who` takes nothing more; `size` bytes wait for it. `cut` ends the connection."""
        self.flows(who)
        self._full[who] = _Full(asyncio.get_running_loop().time(), 0, cut)
        self.holds(who, size)

    def holds(self, who: object, size: int) -> None:
        """So many bytes more wait for one that may be full."""
        found = self._full.get(who)
        if found is not None:
            self._full[who] = found._replace(size=found.size + size)
            self._bytes += size
            self._look()

    def flows(self, who: object) -> None:
        """`who` reads again, or is gone."""
        found = self._full.pop(who, None)
        if found is not None:
            self._bytes -= found.size

    def _look(self) -> None:
        """Cut those whose time is up, and look again when that of the next one is."""
        loop = asyncio.get_running_loop()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._full:
            who, first = next(iter(self._full.items()))
            patience_s = UNREAD_S if self._bytes <= WAITING_BYTES_MAX else MOMENT_S
            left_s = first.since + patience_s - loop.time()
            if left_s > 0:
                self._alarm = loop.call_later(left_s, self._look)
                return
            self.flows(who)
            self.cut += 1
            first.cut()
