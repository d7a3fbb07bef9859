"""What the author's functions are called within: to their end, one call's files in order, and counted.

KIT2 of `plugin` is kept here, for structured claims and for classic ones alike.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from allot.base import Clock, Metrics

from .injecting import Injecting
from .state import State

log = logging.getLogger(__name__)

T = TypeVar("T")


class Operations:
    def __init__(self, state: State, files: Injecting, clock: Clock, metrics: Metrics) -> None:
        self._state, self._files, self._clock = state, files, clock
        self._under_way: set[asyncio.Task[Any]] = set()
        self._took = metrics.histogram(
            "allot_driver_operation_seconds", "How long a prepare or unprepare call took.", "operation"
        )
        self._failed = metrics.counter(
            "allot_driver_claim_errors_total", "Claims that were answered with an error.", "operation"
        )
        metrics.reading(
            "allot_driver_claims", "Claims that are prepared or begun.", lambda: len(state.entries)
        )

    async def start(self) -> None:
        """Files as they should be, before anybody asks. Raises BadState."""
        async with self._state.alone():
            ready = [one for one in self._state.entries.values() if self._state.is_prepared(one)]
            await asyncio.to_thread(self._files.reconcile, ready)

    async def stop(self) -> None:
        """What was begun comes to its end."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def alone(self, operation: str, deed: Callable[[], Awaitable[T]]) -> T:
        """The deed with the state to itself, to its end also when the kubelet has given up waiting.

        One that waits for its turn is not begun once nobody waits for it: a kubelet that began anew may have
        said the opposite meanwhile, and would never hear of what is done after that.
        """
        begun = asyncio.Event()
        task = asyncio.ensure_future(self._alone(operation, deed, begun))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if begun.is_set():
                task.add_done_callback(partial(_unheard, operation))
            else:
                task.cancel()
            raise

    async def _alone(self, operation: str, deed: Callable[[], Awaitable[T]], begun: asyncio.Event) -> T:
        began_s = self._clock.monotonic_s()
        try:
            async with self._state.alone():
                begun.set()
                return await deed()
        finally:
            self._took.observe(self._clock.monotonic_s() - began_s, operation)

    def failed(self, operation: str, claims: int = 1) -> None:
        self._failed.add(claims, operation)


def _unheard(operation: str, task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (wrong := task.exception()) is not None:
        log.warning("%s failed, and nobody waits for its answer any more: %s", operation, wrong)
