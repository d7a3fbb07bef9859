"""What the machine and its containers use, for `kubectl top`.

Runtimes count what was used since a container began; a rate is the difference of two looks. Nobody looks
unless somebody asks: the last look is kept, and where it is too old, or too fresh to say anything, another is
taken and the answer waits for a moment.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from allot.api import age, usage
from allot.base import Clock

from .registering import Burden
from .runtimes import Runtime, Usage

MOMENT_S = 1.0
OLD_S = 120.0


class Look(NamedTuple):
    at_s: float
    machine: Burden
    containers: Sequence[Usage]


class Using:
    def __init__(self, runtime: Runtime, burden: Callable[[], Burden], clock: Clock) -> None:
        self._runtime = runtime
        self._burden = burden
        self._clock = clock
        self._last: Look | None = None
        self._looking = asyncio.Lock()

    async def now(self) -> usage.Machine:
        async with self._looking:
            before = self._last
            if before is None or not MOMENT_S <= self._clock.monotonic_s() - before.at_s <= OLD_S:
                before = await self._look()
                await asyncio.sleep(MOMENT_S)
            after = self._last = await self._look()
        return between(before, after, age.timestamp(self._clock.now()))

    async def _look(self) -> Look:
        containers = await self._runtime.usage()
        return Look(self._clock.monotonic_s(), await asyncio.to_thread(self._burden), containers)


def between(before: Look, after: Look, time: str) -> usage.Machine:
    """A container that is not in the first look began after it."""
    window_s = max(after.at_s - before.at_s, 1e-3)
    known: Mapping[tuple[str, str], Usage] = {(one.pod_uid, one.name): one for one in before.containers}

    def rate(ns: int, earlier_ns: int) -> int:
        """One that was started anew counts from its start."""
        return int((ns - earlier_ns if ns >= earlier_ns else ns) / window_s)

    containers = []
    for one in after.containers:
        earlier = known.get((one.pod_uid, one.name))
        cpu_nano = rate(one.cpu_ns, earlier.cpu_ns if earlier is not None else 0)
        containers.append(usage.Container(one.pod_uid, one.name, cpu_nano, one.memory_bytes))
    machine = rate(after.machine.cpu_ns, before.machine.cpu_ns)
    return usage.Machine(time, window_s, machine, after.machine.memory_bytes, tuple(containers))
