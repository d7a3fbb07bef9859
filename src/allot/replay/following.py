"""A record from outside: what anybody who may read a cluster sees of its scheduler, whosoever that is.

Watches of several resources come in no common order, and nobody tells why a pod waits. What is seen is that a
pod was bound, and which devices its claims have then: that is put down as a decision, once the claims have
been heard of with their devices, or after a moment without.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from allot.api import Gates, Object, classic
from allot.base import Clock
from allot.client import Client
from allot.informers import Change, Deleted, Informers, Key, ResourceId, Telemetry, Updated
from allot.scheduler import (
    CLAIMS,
    PODS,
    RESOURCE_CLASSES,
    ClaimInfo,
    KindTold,
    News,
    ParameterKind,
    ParameterWatches,
    PodInfo,
    Settings,
    kinds_of,
    readable,
)

from .keeping import Made, term_of
from .lines import Decided, Flight, Verdict

PATIENCE_S = 2.0
LOOK_EVERY_S = 0.2
Put = Callable[[Made], None]


class Onlooker:
    def __init__(self, put: Put, clock: Clock) -> None:
        self._put = put
        self._clock = clock
        self._claims: dict[Key, Object] = {}
        self._bound: dict[str, tuple[PodInfo, float]] = {}  # pods, by uid, and since when

    def hear(self, what: ResourceId, change: Change) -> None:
        self._put(lambda scrubber: scrubber.line(News(what, change)))
        if what == CLAIMS:
            key = Key.of(change.object)
            if isinstance(change, Deleted):
                self._claims.pop(key, None)
            else:
                self._claims[key] = change.object
            self.look()
        elif what == PODS and isinstance(change, Updated) and _node(change.object) and not _node(change.old):
            pod = PodInfo.of(change.object)
            self._bound[pod.uid] = pod, self._clock.monotonic_s()
            self.look()

    def parameters(self, what: ResourceId, change: Change) -> None:
        self._put(lambda scrubber: scrubber.line(News(what, change, of_parameters=True)))

    def told(self, told: KindTold) -> None:
        self._put(lambda scrubber: scrubber.line(told))

    def look(self) -> None:
        """Whether enough is known of pods that were bound."""
        for uid, (pod, since_s) in list(self._bound.items()):
            claims = [ClaimInfo.of(one) for key in pod.claims if (one := self._claims.get(key)) is not None]
            is_whole = len(claims) == len(pod.claims) and all(one.allocation is not None for one in claims)
            if is_whole or self._clock.monotonic_s() - since_s > PATIENCE_S:
                del self._bound[uid]
                self._decided(pod, claims)

    def _decided(self, pod: PodInfo, claims: Sequence[ClaimInfo]) -> None:
        flights = tuple(
            Flight(one.uid, one.key.name, one.allocation.devices.results)
            for one in claims
            if one.allocation is not None
        )
        line = Decided(pod.uid, str(pod.key), self._clock.now(), Verdict(pod.spec.node_name, flights))
        self._put(lambda scrubber: line)


async def follow(
    client: Client,
    informers: Informers,
    clock: Clock,
    telemetry: Telemetry,
    gates: Gates,
    put: Put,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Until cancelled."""
    term = term_of(Settings(), gates, clock.now(), onlooker=True)
    put(lambda scrubber: term)
    onlooker, classes = Onlooker(put, clock), dict[str, frozenset[ParameterKind]]()

    def hear(what: ResourceId, change: Change) -> None:
        onlooker.hear(what, change)
        if what == RESOURCE_CLASSES:
            name, is_gone = change.object.name, isinstance(change, Deleted)
            classes[name] = frozenset() if is_gone else kinds_of(change.object.view(classic.ResourceClass))
            parameters.want(frozenset().union(*classes.values()))

    parameters = ParameterWatches(client, informers, clock, telemetry, onlooker.told, onlooker.parameters)
    used = [informers.use(what) for what in await readable(client)]
    await informers.synced(*used)
    stops = [one.handle(partial(hear, one.what)) for one in used]
    ready()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(parameters.run(), name="parameters")
            while True:
                await asyncio.sleep(LOOK_EVERY_S)
                onlooker.look()
    finally:
        for stop in stops:
            stop()
        for informer in used:
            informers.leave(informer)


def _node(pod: Object) -> str:
    return str((pod.fields.get("spec") or {}).get("nodeName") or "")
