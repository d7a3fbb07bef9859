"""The loop that makes things so: takes keys, calls `reconcile`, and judges how it went.

Reconciling is level-based: it is told which key to look at, never what happened to
it, and reads the world itself. The type of an error decides what follows:

    nothing, or Again(s)     it went well; look again after `s` seconds, and never at once:
                             a key that always asks for no wait does not hold the loop
    Conflict                 somebody was faster: try again soon
    any other ApiError       try again, after a wait that doubles each time
    InvariantBroken          this program contradicted itself: the loop ends, loudly
    any other exception      a bug, and perhaps one that only this key meets: it is
                             logged with its trace, counted, and tried again like an
                             ApiError. One bad object does not stop the others.

Every error is counted by its type. Stopping cancels what is in progress and waits
for it to end.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from allot.api import errors
from allot.base import Clock, InvariantBroken, Metrics
from allot.client import level_of

from .workqueue import Limits, WorkQueue

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
WORKERS = 16
ALARM_LEAST_S = 1e-6
"""Alarms that are due within the resolution of its clock go off early: event loops do not tell them apart."""
AGAIN_LEAST_S = 0.01
"""A shorter wait may be none by the clock, and the same work would be done for ever at one moment."""


@dataclass(frozen=True, slots=True)
class Again:
    """Nothing is wrong, but the key should be looked at again by itself."""

    after_s: float


Reconcile = Callable[[K], Awaitable[Again | None]]

_QUEUE_S = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


class Telemetry:
    """The work queue metrics that Kubernetes' own components have. One of these a process."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        self._queues: dict[str, WorkQueue[object]] = {}
        self.adds = metrics.counter("workqueue_adds_total", "Keys added.", "name")
        self.retries = metrics.counter("workqueue_retries_total", "Keys added again after a failure.", "name")
        self.waited = metrics.histogram(
            "workqueue_queue_duration_seconds", "How long a key waits.", "name", bounds=_QUEUE_S
        )
        self.worked = metrics.histogram(
            "workqueue_work_duration_seconds", "How long a key takes.", "name", bounds=_QUEUE_S
        )
        self.errors = metrics.counter("allot_reconcile_errors_total", "Failures, by type.", "name", "error")
        metrics.readings("workqueue_depth", "Keys that wait.", "name", read=lambda: self._each(_depth))
        metrics.readings(
            "workqueue_unfinished_work_seconds",
            "How long the keys in progress have been so, together.",
            "name",
            read=lambda: self._each(WorkQueue.unfinished_s),
        )
        metrics.readings(
            "workqueue_longest_running_processor_seconds",
            "How long the longest running key has been so.",
            "name",
            read=lambda: self._each(WorkQueue.longest_running_s),
        )

    def watch(self, name: str, queue: WorkQueue[object]) -> None:
        self._queues[name] = queue

    def _each(self, read: Callable[[WorkQueue[object], float], float]) -> dict[tuple[str, ...], float]:
        now_s = self._clock.monotonic_s()
        return {(name,): read(queue, now_s) for name, queue in self._queues.items()}


def _depth(queue: WorkQueue[object], now_s: float) -> float:
    return len(queue)


class Reconciler(Generic[K]):
    def __init__(
        self,
        name: str,
        reconcile: Reconcile[K],
        clock: Clock,
        telemetry: Telemetry,
        *,
        workers: int = WORKERS,
        limits: Limits | None = None,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._clock = clock
        self._telemetry = telemetry
        self._free = workers
        self.queue: WorkQueue[K] = WorkQueue(limits)
        self._woken = asyncio.Event()
        self._sleeps_until_s = math.inf
        telemetry.watch(name, self.queue)  # type: ignore[arg-type]

    def add(self, key: K) -> None:
        adds = self.queue.adds
        self.queue.add(key, self._clock.monotonic_s())
        if self.queue.adds != adds:
            self._telemetry.adds.add(self.queue.adds - adds, self.name)
            self._woken.set()

    def add_after(self, key: K, wait_s: float) -> None:
        at_s = self._clock.monotonic_s() + wait_s
        self.queue.add_at(key, at_s)
        if at_s < self._sleeps_until_s:
            self._woken.set()

    async def run(self) -> None:
        """Until cancelled, or until an invariant breaks."""
        async with asyncio.TaskGroup() as workers:
            while True:
                self._woken.clear()
                while self._free and (taken := self._take()) is not None:
                    self._free -= 1
                    workers.create_task(self._work(taken), name=f"{self.name} {taken}")
                await self._wait()

    def _take(self) -> K | None:
        taken = self.queue.take(self._clock.monotonic_s())
        if taken is None:
            return None
        self._telemetry.waited.observe(taken.waited_s, self.name)
        return taken.key

    async def _wait(self) -> None:
        """For something to do and somebody to do it."""
        moment_s = self.queue.next_moment_s() if self._free else None
        if moment_s is None:
            self._sleeps_until_s = math.inf
            await self._woken.wait()
            return
        self._sleeps_until_s = moment_s
        left_s = max(ALARM_LEAST_S, moment_s - self._clock.monotonic_s())
        alarm = asyncio.get_running_loop().call_later(left_s, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            alarm.cancel()

    async def _work(self, taken: K | None) -> None:
        """One key, and then whatever is due: a task serves a rush of keys and not only one of them."""
        try:
            while taken is not None:
                await self._settle(taken)
                await asyncio.sleep(0)  # a reconcile that never waits does not hold the loop
                taken = self._take()
        finally:
            self._free += 1
            moment_s = self.queue.next_moment_s()
            # Nothing is due. What is delayed may be so by what went before, or nobody was free for it.
            if moment_s is not None and moment_s < self._sleeps_until_s:
                self._woken.set()

    async def _settle(self, key: K) -> None:
        began_s = self._clock.monotonic_s()
        try:
            self._went_well(key, await self._reconcile(key))
        except InvariantBroken:
            raise
        except errors.Conflict as faster:
            self._failed(key, faster, self.queue.retry_conflict(key, self._clock.monotonic_s()))
        except errors.ApiError as refused:
            self._failed(key, refused, self.queue.retry(key, self._clock.monotonic_s()))
        except Exception as bug:
            self._failed(key, bug, self.queue.retry(key, self._clock.monotonic_s()))
            log.exception("a bug in %s: %s", self.name, key)
        finally:
            self.queue.done(key)
            self._telemetry.worked.observe(self._clock.monotonic_s() - began_s, self.name)

    def _went_well(self, key: K, answer: Again | None) -> None:
        self.queue.forget(key)
        if answer is not None:
            self.queue.add_at(key, self._clock.monotonic_s() + max(answer.after_s, AGAIN_LEAST_S))

    def _failed(self, key: K, why: Exception, wait_s: float) -> None:
        self._telemetry.errors.add(1, self.name, type(why).__name__)
        self._telemetry.retries.add(1, self.name)
        level = level_of(why, logging.INFO)
        log.log(level, "%s: %s failed, again in %.3f s: %s", self.name, key, wait_s, why)
