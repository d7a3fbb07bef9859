"""An event loop in a thread of its own: what runs there goes on while a test waits for something else."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

ENTER_S = LEAVE_S = 120.0
"""What a block has to begin in, and to end in; a busy machine takes its time."""


class Aside:
    def __init__(self) -> None:
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="allot", daemon=True)

    def __enter__(self) -> "Aside":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.result().call_soon_threadsafe(self._over.set)
        self._thread.join(LEAVE_S)

    def run(self, story: Coroutine[Any, Any, T], within_s: float | None = None) -> T:
        """Waits for it. Raises what it raises, and TimeoutError."""
        task = asyncio.run_coroutine_threadsafe(story, self._loop.result())
        try:
            return task.result(within_s)
        except BaseException:
            task.cancel()
            raise

    @contextmanager
    def held(self, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Entered and left by one task, as those must be that have tasks of their own.

        A context that fails meanwhile raises that when the block ends."""
        entered: Future[T] = Future()
        leave = asyncio.Event()

        async def hold() -> None:
            try:
                async with context as value:
                    entered.set_result(value)
                    await leave.wait()
            except BaseException as failed:
                if entered.done():
                    raise
                entered.set_exception(failed)

        loop = self._loop.result()
        holding = asyncio.run_coroutine_threadsafe(hold(), loop)
        try:
            value = entered.result(ENTER_S)
        except BaseException:
            holding.cancel()
            raise
        try:
            yield value
        finally:
            loop.call_soon_threadsafe(leave.set)
            holding.result(LEAVE_S)

    def _work(self) -> None:
        with asyncio.Runner() as runner:
            self._loop.set_result(runner.get_loop())
            runner.run(_heard(self._over))


async def _heard(event: asyncio.Event) -> None:
    await event.wait()
