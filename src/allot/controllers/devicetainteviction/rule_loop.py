"""Finds the pods that a rule concerns, and keeps its status."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

from allot.api import Object, age, core, errors, resource
from allot.informers import Again, Informer, Key

from ..controller import World
from ..workloads import later
from . import status
from .agenda import Agenda
from .forecast import Forecast
from .pools import Pools
from .views import (
    CLAIM_INDEX,
    NO_EXECUTE,
    allocated_spellings,
    claim_of,
    pod_of,
    rule_of,
    selection,
    slice_of,
)
from .views import users as users_of

STATUS_PERIOD_S = 10.0
FIELD_MANAGER = "device-taint-eviction-controller"
_AT_A_TIME = 16  # so many pieces are looked at before others have their turn

T = TypeVar("T")


class RuleLoop:
    def __init__(
        self,
        world: World,
        informers: tuple[Informer, Informer, Informer, Informer],  # pods, claims, slices, rules
        pools: Pools,
        agenda: Agenda,
        touch: Callable[[Key], None],  # hears of pods that a rule may drive away, or no longer
        *,
        period_s: float,
    ) -> None:
        self._world = world
        self._pods, claims, self._slices, self._rules = informers
        self._pools = pools
        self._agenda = agenda
        self._touch = touch
        self._period_s = period_s
        self._by_selector = claims.cache.index(CLAIM_INDEX, allocated_spellings)
        self._surveyed: dict[str, tuple[str, int]] = {}  # rule -> uid and generation
        self._next_s: dict[str, float] = {}  # rule -> when its status may be written again
        self._write = world.client.of(resource.DEVICE_TAINT_RULE)

    async def reconcile(self, name: str) -> Again | None:
        object = self._rules.cache.get(name)
        await self._survey(name, object)
        if object is None:
            return None
        left_s = self._next_s.get(name, 0.0) - self._world.clock.monotonic_s()
        if left_s > 0:
            return later(left_s)
        rule = rule_of(object)
        prospect = await self._prospect(rule) if status.wants_prospect(rule) else None
        now = age.timestamp(self._world.clock.now())
        condition = status.condition(rule, self._agenda.progress(name), prospect, now)
        if condition is None:
            return None
        try:
            await self._write.apply(
                {
                    "apiVersion": object.api_version,
                    "kind": object.kind,
                    "metadata": {"name": name, "uid": object.uid},
                    "status": {"conditions": [condition]},
                },
                field_manager=FIELD_MANAGER,
                force=True,
                subresource="status",
            )
        except errors.NotFound:
            return None
        self._next_s[name] = self._world.clock.monotonic_s() + self._period_s
        return None

    async def _survey(self, name: str, object: Object | None) -> None:
        """A rule is new, another or gone: look at all pods that it concerns or concerned."""
        known = self._surveyed.get(name)
        now = (object.uid, object.metadata.generation) if object is not None else None
        if known == now:
            return
        if object is None or (known is not None and known[0] != object.uid):
            self._agenda.forget(name)
            self._next_s.pop(name, None)
        async for pod in unhurried(self._agenda.pods(name)):
            self._touch(pod)
        rule = rule_of(object) if object is not None else None
        if rule is not None and rule.spec.taint.effect == NO_EXECUTE:
            async for claim in unhurried(self._selected(rule)):
                for pod in users_of(claim_of(claim)):
                    self._touch(pod)
        if now is None:
            self._surveyed.pop(name, None)
        else:
            self._surveyed[name] = now

    async def _prospect(self, rule: resource.DeviceTaintRule) -> status.Prospect:
        forecast = Forecast(rule, self._pod)
        async for slice in unhurried(self._slices.cache):
            if self._pools.is_newest(slice_of(slice)):
                forecast.see_slice(slice_of(slice))
        async for claim in unhurried(self._selected(rule)):
            forecast.see_claim(claim_of(claim))
        return forecast.prospect()

    def _pod(self, key: Key) -> core.Pod | None:
        found = self._pods.cache.get(key.name, key.namespace)
        return pod_of(found) if found is not None else None

    def _selected(self, rule: resource.DeviceTaintRule) -> tuple[Object, ...]:
        spelled = selection(rule)
        return self._by_selector[spelled] if spelled is not None else ()


async def unhurried(pieces: Iterable[T]) -> AsyncIterator[T]:
    """All of them, with a pause now and then: a rule may concern the whole cluster."""
    for number, piece in enumerate(pieces, 1):
        yield piece
        if number % _AT_A_TIME == 0:
            await asyncio.sleep(0)
