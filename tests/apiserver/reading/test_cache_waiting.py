"""Who waits for a cache to be loaded can be told to stop, also in the moment in which it is loaded."""

import asyncio

import pytest

from allot.apiserver.reading.cache import Cache
from allot.store import MemoryStore


@pytest.mark.parametrize("steps", range(4))
def test_who_is_cancelled_as_the_cache_becomes_ready_does_not_go_on(steps: int):
    """A request that goes on though its client has gone holds up whoever waits for its end."""

    async def story() -> None:
        cache = Cache.__new__(Cache)
        cache._task = asyncio.create_task(asyncio.sleep(60))
        cache._ready = asyncio.Event()
        cache._store = MemoryStore()
        waiting = asyncio.create_task(cache.ready())
        await asyncio.sleep(0.05)
        cache._ready.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        was_over = waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])
        cache._task.cancel()
        assert was_over or waiting.cancelled()

    asyncio.run(story())
