"""The engine without a disk: for tests and simulation.

Everything happens in the turn of the event loop in which it is asked for, so a
simulated cluster is deterministic down to the order of its events.
"""

from collections.abc import Sequence

from .contract import Change, Committed, Compare, Entry, Page, Refused, Unavailable
from .keyspace import HISTORY_BYTES_MAX, KeySpace, require_distinct, settled
from .watch import LocalWatch, Watches, forever


class MemoryStore:
    def __init__(self, history_bytes_max: int = HISTORY_BYTES_MAX) -> None:
        self._space = KeySpace(history_bytes_max=history_bytes_max)
        self._watches = Watches(self._space)
        self._closed = False

    async def get(self, key: str) -> Entry | None:
        self._require_open()
        return self._space.get(key)

    def peek(self, key: str) -> Entry | None:
        return self._space.get(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0) -> Page:
        self._require_open()
        return self._space.page(prefix, after, limit, at)

    async def transact(self, compares: Sequence[Compare], changes: Sequence[Change]) -> Committed | Refused:
        self._require_open()
        require_distinct(changes)
        if differing := self._space.differing(compares):
            return Refused(differing)
        if events := self._space.commit(settled(changes, self._space.value)):
            self._watches.publish(events)
        return Committed(self._space.revision)

    async def revision(self) -> int:
        self._require_open()
        return self._space.revision

    def watch(self, prefix: str, after: int) -> LocalWatch:
        self._require_open()
        return self._watches.open(prefix, after)

    async def lost(self) -> str:
        return await forever()

    def trouble(self) -> str:
        return "the store is closed" if self._closed else ""

    async def compact(self, revision: int) -> None:
        self._require_open()
        self._space.compact(revision)

    async def scrub(self) -> None:
        self._require_open()

    async def close(self) -> None:
        self._closed = True
        self._watches.close()

    def check(self) -> None:
        """Verify what no single method can see. Slow: for tests and `sim`."""
        self._space.check()

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")
