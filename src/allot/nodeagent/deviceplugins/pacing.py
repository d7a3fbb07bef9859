"""Heeds the last of many words: one at once, and then one in a while at most.

A device that flaps, or a plugin that has gone mad, says something else a thousand times a second. Each word
would be a write for the node and for every pod that has its devices.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Paced(Generic[T]):
    def __init__(self, heed: Callable[[T], None], pause_s: float) -> None:
        self._heed, self._pause_s = heed, pause_s
        self._last: list[T] = []  # what was said since, of which the last counts
        self._pause: asyncio.TimerHandle | None = None

    def say(self, word: T) -> None:
        if self._pause is None:
            self._heed_now(word)
        else:
            self._last[:] = [word]

    def forget(self) -> None:
        """What was said and is not heeded yet."""
        self._last.clear()

    def _heed_now(self, word: T) -> None:
        self._pause = asyncio.get_running_loop().call_later(self._pause_s, self._over)
        self._heed(word)

    def _over(self) -> None:
        self._pause = None
        if self._last:
            self._heed_now(self._last.pop())
