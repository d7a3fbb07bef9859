"""Watches of a key space in this process.

Where it sits
    An embedded engine hands every commit's events to `Watches.publish`, in the
    same turn of the event loop in which it tells the writer that it is done.

How a watch gets its events
    Behind: it reads the key space's history in slices, at its own pace.
    Live: it has seen everything, and `publish` puts what is new into its basket.
    A reader that lets the basket overflow, in events or in bytes, loses the basket, not
    the events: the watch is behind again and goes back to the history, where it may find
    that it came too late (`Compacted`). So nobody pays for a slow reader, in time or memory.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence

from .contract import Compacted, Event
from .history import size_of
from .keyspace import KeySpace

BASKET_MAX = 10_000  # events a live watch may leave unread
BASKET_BYTES_MAX = 16 << 20  # what they may keep in memory that nobody else needs
SLICE = 2_000  # events of history looked at in one turn of the loop
FOLDERS_MAX = 10_000  # whose listeners are remembered


async def forever() -> str:
    """What an engine says of a loss that cannot happen to it."""
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    return await never


class LocalWatch:
    def __init__(self, watches: "Watches", prefix: str, after: int) -> None:
        self.prefix = prefix
        self._watches = watches
        self._reached = after  # every event up to here was delivered, or is of no interest
        self._basket: list[Event] | None = None  # None while behind
        self._basket_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def progress(self) -> int:
        if self._basket is not None and not self._basket:
            return max(self._reached, self._watches.space.revision)
        return self._reached

    def hurry(self) -> None:
        """Its progress is never late."""

    def __aiter__(self) -> "LocalWatch":
        return self

    async def __anext__(self) -> list[Event]:
        while not self._closed:
            if self._basket is None:
                if events := self._catch_up():
                    return events
                await asyncio.sleep(0)  # a long stretch without interest must not hold the loop
            elif self._basket:
                events, self._basket, self._basket_bytes = self._basket, [], 0
                self._reached = events[-1].revision
                return events
            else:
                await self._wait()
        raise StopAsyncIteration

    def _catch_up(self) -> list[Event]:
        """Read the next slice of history, and go live when that was the last."""
        try:
            events, self._reached = self._watches.space.events(self.prefix, self._reached, SLICE)
        except Compacted:
            self.close()
            raise
        self.go_live_if_current()
        return events

    def go_live_if_current(self) -> None:
        if self._reached >= self._watches.space.revision:
            self._basket, self._basket_bytes = [], 0
            self._watches.go_live(self)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def offer(self, events: Sequence[Event]) -> None:
        """Take a commit's events below the prefix. For `Watches` alone."""
        if self._basket is None or events[0].revision <= self._reached:
            return
        self._basket_bytes += sum(map(size_of, events))
        if not self._basket:
            self._reached = events[0].revision - 1  # nothing of interest happened before
        elif len(self._basket) + len(events) > BASKET_MAX or self._basket_bytes > BASKET_BYTES_MAX:
            self._basket = None
            self._watches.leave_live(self)
            return
        self._basket.extend(events)
        self._wake()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._basket is not None:
                self._watches.leave_live(self)
                self._basket = None
            self._watches.closed(self)
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Watches:
    """Who listens to which prefix.

    A key is looked up once for each length that some watched prefix has, so the
    cost of an event does not grow with the number of prefixes. Where all of them end
    with a slash, whoever hears of a key hears of all keys of its folder: then the
    answer is kept until somebody comes or goes.
    """

    def __init__(self, space: KeySpace) -> None:
        self.space = space
        self._open: set[LocalWatch] = set()
        self._live: dict[str, list[LocalWatch]] = {}
        self._lengths: Counter[int] = Counter()  # of the live prefixes
        self._open_ended = 0  # live prefixes that may end in the middle of a name
        self._folders: dict[str, list[LocalWatch]] = {}  # who hears of the keys of a folder

    def open(self, prefix: str, after: int) -> LocalWatch:
        watch = LocalWatch(self, prefix, after)
        self._open.add(watch)
        watch.go_live_if_current()
        return watch

    def go_live(self, watch: LocalWatch) -> None:
        self._live.setdefault(watch.prefix, []).append(watch)
        self._lengths[len(watch.prefix)] += 1
        self._open_ended += not watch.prefix.endswith("/")
        self._folders.clear()

    def leave_live(self, watch: LocalWatch) -> None:
        listeners = self._live[watch.prefix]
        listeners.remove(watch)
        if not listeners:
            del self._live[watch.prefix]
        self._lengths[len(watch.prefix)] -= 1
        if not self._lengths[len(watch.prefix)]:
            del self._lengths[len(watch.prefix)]
        self._open_ended -= not watch.prefix.endswith("/")
        self._folders.clear()

    def closed(self, watch: LocalWatch) -> None:
        self._open.discard(watch)

    def publish(self, events: Sequence[Event]) -> None:
        """Tell everyone concerned about one commit, each in one piece (STORE1)."""
        if len(events) == 1:
            for watch in self._concerned(events[0].key):
                watch.offer(events)
            return
        shares: dict[LocalWatch, list[Event]] = {}
        for event in events:
            for watch in self._concerned(event.key):
                shares.setdefault(watch, []).append(event)
        for watch, share in shares.items():
            watch.offer(share)

    def _concerned(self, key: str) -> list[LocalWatch]:
        if self._open_ended:
            return self._listening(key)
        folder = key[: key.rfind("/") + 1]
        found = self._folders.get(folder)
        if found is None:
            if len(self._folders) >= FOLDERS_MAX:
                self._folders.clear()
            found = self._folders[folder] = self._listening(folder)
        return found

    def _listening(self, key: str) -> list[LocalWatch]:
        found: list[LocalWatch] = []
        for length in self._lengths:
            if length <= len(key):
                found += self._live.get(key[:length], ())
        return found

    def close(self) -> None:
        for watch in list(self._open):
            watch.close()
