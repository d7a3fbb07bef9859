"""The functions that authors of drivers write, plain or coroutines, and what goes on beside them."""

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


async def done(deed: Any, *about: Any) -> Any:
    """Plain functions may take their time: they run aside."""
    if inspect.iscoroutinefunction(deed):
        return await deed(*about)
    answer = await asyncio.to_thread(deed, *about)
    return await answer if inspect.isawaitable(answer) else answer


@contextmanager
def first_of_several() -> Iterator[None]:
    """What fails in the background ends the block with its own error, and not with a group of it."""
    try:
        yield
    except BaseExceptionGroup as several:
        first: BaseException = several
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
