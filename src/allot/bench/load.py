"""The load: pods come, are bound, and in a steady shape leave again.

A pod counts from the moment at which its creation was accepted, and as bound from
the moment at which a watcher hears of it.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from allot.base import Clock
from allot.client import Client

from . import objects
from .following import bound_pod
from .shape import Shape

IN_FLIGHT = 64
"""Creations under way at once: as fast as the server takes them, and bounded."""

STALL_S = 30.0
_LOOK_S = 1.0
_POLL_S = 0.02
_MESSAGES = 5


class Stalled(Exception):
    """Pods stay unbound; the message says how many and what their conditions say."""


@dataclass(slots=True)
class Tally:
    """What became of the pods of one phase."""

    accepted_s: dict[str, float] = field(default_factory=dict)
    bound_s: dict[str, float] = field(default_factory=dict)

    @property
    def began_s(self) -> float:
        return next(iter(self.accepted_s.values()), 0.0)  # they are noted as they happen

    @property
    def ended_s(self) -> float:
        return max(self.bound_s.values(), default=0.0)

    @property
    def waiting(self) -> int:
        return len(self.accepted_s) - len(self.bound_s)

    def within(self, window_s: float) -> "Tally":
        """Only what was bound before the window closed, and known to be created by then."""
        end = self.began_s + window_s
        bound = {name: at for name, at in self.bound_s.items() if at <= end and name in self.accepted_s}
        return Tally({name: self.accepted_s[name] for name in bound}, bound)

    def times_to_bind_s(self) -> list[float]:
        """In order. A pod may be seen bound before the answer to its creation arrives."""
        return sorted(max(0.0, at - self.accepted_s[name]) for name, at in self.bound_s.items())


class Load:
    def __init__(
        self,
        client: Client,
        shape: Shape,
        clock: Clock,
        check: Callable[[], None],
        say: Callable[[str], None],
        stall_s: float = STALL_S,
    ) -> None:
        self._pods = client.resource("", "v1", "pods")
        self._shape = shape
        self._clock = clock
        self._check = check
        self._say = say
        self._stall_s = stall_s
        self._numbers = itertools.count()
        self._tally = Tally()
        self._waiters: dict[str, asyncio.Future[None]] = {}

    def hear(self, line: bytes) -> None:
        """An event of the watch of pods."""
        name = bound_pod(line)
        if name and name not in self._tally.bound_s:
            self._tally.bound_s[name] = self._clock.monotonic_s()
            waiter = self._waiters.get(name)
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    async def burst(self, count: int) -> Tally:
        """Create `count` pods as fast as the server takes them; return when all are bound."""
        tally = self._tally = Tally()
        numbers = iter(list(itertools.islice(self._numbers, count)))
        creating = [asyncio.create_task(self._create_all(numbers)) for _ in range(min(IN_FLIGHT, count))]
        await self._attended(creating, lambda: len(tally.bound_s) == count)
        return tally

    async def steady(self, count: int, window_s: float) -> Tally:
        """Keep `count` pods; each leaves as soon as it is seen bound, and another comes."""
        tally = self._tally = Tally()

        def over() -> bool:
            began_s = tally.began_s
            return began_s > 0 and self._clock.monotonic_s() >= began_s + window_s

        slots = [asyncio.create_task(self._keep_one(over)) for _ in range(count)]
        await self._attended(slots, over)
        return tally

    # -- one pod --------------------------------------------------------------------------------

    async def _create_all(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            await self._create(number)

    async def _keep_one(self, over: Callable[[], bool]) -> None:
        while not over():
            number = next(self._numbers)
            name = _name(number)
            bound = self._waiters[name] = asyncio.get_running_loop().create_future()
            await self._create(number)
            await bound
            del self._waiters[name]
            await self._pods.delete(name, objects.NAMESPACE, grace_period_s=0)

    async def _create(self, number: int) -> None:
        name = _name(number)
        await self._pods.create(objects.pod(self._shape.scene, name, self._turn(number)))
        self._tally.accepted_s[name] = self._clock.monotonic_s()

    def _turn(self, number: int) -> int:
        """Pods that share claims come round to the first claims that nobody holds for good."""
        shape = self._shape
        before = shape.pods_before.at(shape.nodes)
        rest = shape.scene.room * shape.nodes - before
        return number if number < before else before + (number - before) % rest

    # -- all of them ----------------------------------------------------------------------------

    async def _attended(self, tasks: list[asyncio.Task[None]], done: Callable[[], bool]) -> None:
        """Wait until it is done; say how it goes; raise Stalled when nothing moves any more."""
        tally, moved_s, last = self._tally, self._clock.monotonic_s(), -1
        said_s = moved_s
        try:
            while not done():
                await asyncio.sleep(_POLL_S)
                now_s = self._clock.monotonic_s()
                self._check()
                for task in tasks:
                    if task.done():
                        task.result()
                if len(tally.bound_s) != last:
                    last, moved_s = len(tally.bound_s), now_s
                elif now_s - moved_s > self._stall_s:
                    raise Stalled(await self._complaint())
                if now_s - said_s >= _LOOK_S:
                    said_s = now_s
                    self._say(f"{len(tally.accepted_s)} pods created, {len(tally.bound_s)} bound")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _complaint(self) -> str:
        """What the conditions of unbound pods say, the most frequent first."""
        messages: Counter[str] = Counter()
        async for page in self._pods.pages(objects.NAMESPACE):
            for pod in page.objects:
                if not (pod.fields.get("spec") or {}).get("nodeName"):
                    messages[_condition(pod.fields)] += 1
        lines = [f"  {count} pods: {message}" for message, count in messages.most_common(_MESSAGES)]
        head = f"{messages.total()} pods are still unbound, and none was bound for {self._stall_s:.0f} s"
        return "\n".join([head, *lines])


def _condition(pod: Mapping[str, Any]) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    return "no condition PodScheduled"


def _name(number: int) -> str:
    return f"pod-{number:06d}"
