"""A memory store that lets others go first now and then.

The plain one does everything in the turn in which it is asked, so that no request would
ever meet another in the middle. Behind this one a request may find, between reading and
writing, that somebody else has written: as with a disk or a network in between.
"""

import asyncio
import random
from collections.abc import Sequence

from allot.store import Change, Committed, Compare, Entry, MemoryStore, Page, Refused

SHARE_OF_READS, SHARE_OF_WRITES = 0.1, 0.4
TURNS_MAX = 4


class UnsteadyStore(MemoryStore):
    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    @property
    def now(self) -> int:
        """The revision, asked without letting anybody go first."""
        return self._space.revision

    async def get(self, key: str) -> Entry | None:
        await self._wait(SHARE_OF_READS)
        return await super().get(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0) -> Page:
        await self._wait(SHARE_OF_READS)
        return await super().range(prefix, after=after, limit=limit, at=at)

    async def transact(self, compares: Sequence[Compare], changes: Sequence[Change]) -> Committed | Refused:
        """Others first, then the transaction whole; or the other way round, and its answer later."""
        await self._wait(SHARE_OF_WRITES)
        outcome = await super().transact(compares, changes)
        await self._wait(SHARE_OF_WRITES)
        return outcome

    async def _wait(self, share: float) -> None:
        if self._rng.random() < share:
            for _ in range(self._rng.randint(1, TURNS_MAX)):
                await asyncio.sleep(0)
