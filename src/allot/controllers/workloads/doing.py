"""Many writes, carefully: first one, then two, then four.

Where nothing works, as under a quota that is full, one request is enough to find out.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def slow_start(do: Callable[[T], Coroutine[Any, Any, None]], items: Sequence[T]) -> None:
    """Do it for every item. A batch that fails in part is the last; its first failure is raised."""
    size, done = 1, 0
    while done < len(items):
        batch = items[done : done + size]
        outcomes = await asyncio.gather(*map(do, batch), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        done += len(batch)
        size *= 2
