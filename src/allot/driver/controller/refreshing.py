"""Answers that may be different by now: looked at again after a while, and soon after this driver allocated
or freed something.

Many claims change at a time and many pods wait, so what waits is looked at again once for all changes of a
moment, and not once for each.
"""

import asyncio
from typing import Final

from allot.informers import Again, Key, Limits, Reconciler

SOON_S: Final = 0.25
"""After a change, so that those that follow at once count too."""
IMPATIENT_S: Final = 0.5
"""The first wait for what a claim lacks; it doubles each time."""
LIMITS: Final = Limits(longest_s=10.0)
"""Others wait for what a driver writes: a pod's attempt ends after half a minute."""

WORKERS: Final = 128
"""Claims or pods under way at once. Each waits for the server three times, which takes many writes together
as readily as one; the author's functions are called one at a time all the same."""

_Waiting = tuple[Reconciler[Key], Key]


class Refreshing:
    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._waiting: dict[_Waiting, int] = {}  # how often in vain
        self._changed = asyncio.Event()

    def waits(self, loop: Reconciler[Key], key: Key) -> Again:
        """An answer was given; another allocation may change it."""
        self._waiting.setdefault((loop, key), 0)
        return Again(self._every_s)

    def patience(self, loop: Reconciler[Key], key: Key) -> Again:
        """No answer could be given, for a reason that may go without a word."""
        times = self._waiting.get((loop, key), 0)
        self._waiting[loop, key] = times + 1
        return Again(min(self._every_s, IMPATIENT_S * 2.0 ** min(times, 20)))

    def settled(self, loop: Reconciler[Key], key: Key) -> None:
        self._waiting.pop((loop, key), None)

    def changed(self) -> None:
        """Something was allocated or freed, or the driver's inventory is another."""
        self._changed.set()

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(SOON_S)
            self._changed.clear()
            for loop, key in self._waiting:
                loop.add(key)
