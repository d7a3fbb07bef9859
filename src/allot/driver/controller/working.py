"""A driver's controller at work: informers, and for each term of leadership loops that begin anew.

    async with controlling(controller, Around(client)) as work:
        await work.leading.wait()

Informers run all the time, so that a process that takes over has its caches ready. What a term remembers
ends with it. A term begins with caches read from the server after the lease was won; then the author's
`begin` hears what is held, and only then anything is done.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from allot.api import Object
from allot.base import Clock, Ids, Metrics, RandomIds, SystemClock
from allot.client import Client, LeaseSettings
from allot.informers import (
    Again,
    Change,
    Election,
    Events,
    Informer,
    Informers,
    Pace,
    Reconciler,
    ResourceId,
    Telemetry,
    lead_forever,
)

from ..deeds import first_of_several
from . import answers
from .allocating import Allocating
from .asking import Asking
from .calling import Calls, Controller
from .claims import Claims
from .claims_loop import ClaimsLoop
from .parameters import Parameters
from .refreshing import Refreshing
from .scheduling_loop import SchedulingLoop
from .views import CLAIMS, CLASSES, SCHEDULINGS, as_told, claim_of

LEASE_NAMESPACE = "kube-system"
BY_CLASS = "claims by class"
ABSENT_S = 30.0
"""Between two looks whether classic claims are served, where they were not."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a controller is handed."""

    client: Client
    clock: Clock = field(default_factory=SystemClock)
    rng: random.Random = field(default_factory=random.Random)
    ids: Ids = field(default_factory=RandomIds)
    metrics: Metrics = field(default_factory=Metrics)
    lease: LeaseSettings | None = None  # None: this process is the only one, and leads at once
    pace: Pace = field(default_factory=lambda: Pace(absent_s=ABSENT_S))


def lease_of(controller: Controller, identity: str, namespace: str = LEASE_NAMESPACE) -> LeaseSettings:
    """The lease that one of the processes of a driver's controller holds at a time."""
    return LeaseSettings(controller.name, namespace, identity)


class Followed:
    """What the controller listens to, in every term and between them."""

    def __init__(self, controller: Controller, informers: Informers) -> None:
        self.claims = informers.use(CLAIMS)
        self.classes = informers.use(CLASSES)
        self.schedulings = informers.use(SCHEDULINGS)
        self.own = {what: informers.use(what) for what in controller.follows}
        self.by_class = self.claims.cache.index(BY_CLASS, _class_of)

    @property
    def all(self) -> Sequence[Informer]:
        return self.claims, self.classes, self.schedulings, *self.own.values()

    async def served(self) -> None:
        """Until classic claims are: where they are switched off there seem to be none, and a driver that was
        told so would free what pods use."""
        for informer in (self.claims, self.classes, self.schedulings):
            while not informer.served:
                await informer.wait_lists(informer.lists + 1)


@dataclass(frozen=True, slots=True)
class Working:
    calls: Calls
    followed: Followed
    asking: Asking
    leading: asyncio.Event  # set while this process leads and its loops run


@asynccontextmanager
async def controlling(controller: Controller, around: Around) -> AsyncIterator[Working]:
    """The controller at work while the block runs; what ends it by itself ends the block."""
    with first_of_several():
        async with _controlling(controller, around) as working:
            yield working


@asynccontextmanager
async def _controlling(controller: Controller, around: Around) -> AsyncIterator[Working]:
    telemetry = Telemetry(around.metrics, around.clock)
    calls = Calls(controller, around.clock, around.metrics)
    parameters = Parameters(around.client, around.clock, controller.class_kinds, controller.claim_kinds)
    leads = around.metrics.gauge("allot_driver_controller_leads", "1 while this process leads.")
    leads.set(0)
    async with Informers(around.client, around.rng, metrics=around.metrics, pace=around.pace) as informers:
        followed = Followed(controller, informers)
        working = Working(calls, followed, Asking(followed.classes, parameters), asyncio.Event())

        async def term() -> None:
            try:
                await informers.refresh(*followed.all)
                await followed.served()
                await _Term(controller, around, telemetry, working).run(lambda: leads.set(1))
            finally:
                leads.set(0)
                working.leading.clear()

        await informers.synced(*followed.all)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_led(around, term), name=f"driver controller {controller.name}")
            yield working
            task.cancel()


async def _led(around: Around, term: Callable[[], Awaitable[None]]) -> None:
    if around.lease is None:
        await term()
        return
    leases = around.client.resource("coordination.k8s.io", "v1", "leases")
    await lead_forever(Election(around.lease, leases, around.clock), term)


class _Term:
    def __init__(
        self, controller: Controller, around: Around, telemetry: Telemetry, working: Working
    ) -> None:
        self._controller, self._working, followed = controller, working, working.followed
        client, clock, metrics = around.client, around.clock, around.metrics
        name = controller.name
        self._events = Events(client, name, clock, around.ids, telemetry, metrics)
        self._refreshing = Refreshing(controller.refresh_s)
        claims = Claims(name, client, followed.claims.cache)
        allocating = Allocating(name, claims, working.calls, client, self._events, metrics)
        self._claims = ClaimsLoop(
            name,
            claims,
            followed.classes,
            working.asking,
            allocating,
            self._refreshing,
            clock,
            telemetry,
        )
        self._pods = SchedulingLoop(
            name,
            client,
            claims,
            followed.classes,
            followed.schedulings,
            working.asking,
            working.calls,
            allocating,
            self._refreshing,
            clock,
            telemetry,
        )
        self._own: Reconciler[ResourceId] = Reconciler("driver objects", self._follow, clock, telemetry)

    async def run(self, leading: Callable[[], None]) -> None:
        followed, name = self._working.followed, self._controller.name
        held = [one for one in followed.claims.cache if answers.may_hold(claim_of(one), name)]
        await self._working.calls.begin([as_told(one) for one in held])
        for what in followed.own:
            await self._follow(what)
        stops = [
            followed.classes.handle(self._class_heard),
            followed.claims.handle(self._claims.heard),
            followed.claims.handle(self._pods.claim_heard),
            followed.schedulings.handle(self._pods.heard),
            *(one.handle(self._own_heard(what)) for what, one in followed.own.items()),
        ]
        try:
            async with asyncio.TaskGroup() as group:
                for loop in (self._events, self._refreshing, self._claims.loop, self._pods.loop, self._own):
                    group.create_task(loop.run())
                leading()
                self._working.leading.set()
        finally:
            for stop in stops:
                stop()

    def _class_heard(self, change: Change) -> None:
        by_class = self._working.followed.by_class
        self._claims.class_heard(change, by_class)
        self._pods.class_heard(change, by_class)

    def _own_heard(self, what: ResourceId) -> Callable[[Change], None]:
        return lambda change: self._own.add(what)

    async def _follow(self, what: ResourceId) -> Again | None:
        """The driver's own objects, all of them, as they are now."""
        objects = self._working.followed.own[what].cache.objects()
        await self._working.calls.follow(what, objects)
        self._refreshing.changed()
        return None


def _class_of(claim: Object) -> Iterable[str]:
    name = claim_of(claim).spec.resource_class_name
    return (name,) if name else ()
