"""The cluster read once, with the rights of whoever asks: for questions from outside.

A running scheduler follows the cluster; a person asks about one moment. What the person may not read is
said, and what it hides decides what can be answered. Without nodes, slices or classes nothing can be told.
Without the pods and claims of others, or without taint rules, the cluster looks emptier than it is: a "no"
is a no, and a "yes" is not certain. What the server does not serve, and what cannot be read by anybody, the
scheduler does not see either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from allot.api import Gates, Object, classic, errors
from allot.client import Client
from allot.informers import Added, Key, ResourceId, is_served

from .mirror import (
    BUDGETS,
    CLAIMS,
    CLASSES,
    ELSEWHERE,
    NODES,
    PODS,
    RESOURCE_CLASSES,
    SLICES,
    SOURCES,
    TAINT_RULES,
    Mirror,
    News,
    PodTold,
)
from .parameter_watches import resource_of
from .parameters import ParameterKind, Standing, kinds_of
from .pod import PodInfo
from .snapshot import Snapshot, snapshot_for

READ = tuple(what for what in SOURCES if what != BUDGETS)
"""Nobody who asks is told of evictions, so they need not be allowed to read what prevents them."""


@dataclass(frozen=True, slots=True)
class Unread:
    """What was not read."""

    what: ResourceId
    words: str
    is_hidden: bool = False  # from whoever asks, and not from the scheduler
    is_partly: bool = False  # what is in the namespace that was asked about was read


@dataclass(frozen=True, slots=True)
class Reading:
    snapshot: Snapshot
    pods: Mapping[Key, PodInfo]
    unread: tuple[Unread, ...] = ()

    def hidden(self, *of: ResourceId) -> tuple[str, ...]:
        """What may not be read at all of these, in words."""
        return tuple(
            one.words for one in self.unread if one.is_hidden and not one.is_partly and one.what in of
        )

    @property
    def hides_supply(self) -> tuple[str, ...]:
        """Why nothing can be told: it is not known which nodes and devices there are."""
        return self.hidden(NODES, SLICES, CLASSES)

    @property
    def hides_parameters(self) -> tuple[str, ...]:
        """Why it cannot be told what numeric claims ask for, in words."""
        return tuple(one.words for one in self.unread if one.is_hidden and one.what not in SOURCES)

    @property
    def hides_use(self) -> tuple[str, ...]:
        """Why a "yes" is not certain: it is not known what others have, or which devices are unfit."""
        use = (PODS, CLAIMS, TAINT_RULES)
        return tuple(one.words for one in self.unread if one.is_hidden and one.what in use)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The objects of a cluster, as they were listed."""

    objects: Mapping[ResourceId, Sequence[Object]]
    unread: tuple[Unread, ...] = ()
    parameters: Mapping[ParameterKind, Standing] = field(default_factory=dict)
    """Kinds that classes of numeric parameters name; objects of those that are read are among the others."""


async def read(client: Client, gates: Gates, namespace: str = "") -> Reading:
    """The namespace is the one that is asked about."""
    return reading_of(await gather(client, READ, namespace), gates)


async def gather(client: Client, resources: Iterable[ResourceId], namespace: str = "") -> Gathered:
    """What whoever asks may list of these resources, in their order, and of the objects with parameters that
    classes among them name the kinds of."""
    reader = _Reader(client, namespace)
    objects = {what: await reader.every(what) for what in resources}
    parameters: dict[ParameterKind, Standing] = {}
    for kind in _named(objects.get(RESOURCE_CLASSES, ())):
        what = await resource_of(client, kind)
        parameters[kind] = what if isinstance(what, Standing) else Standing(what)
        if not isinstance(what, Standing) and what not in objects:
            objects[what] = await reader.every(what)
    return Gathered(objects, tuple(reader.unread), parameters)


def _named(classes: Iterable[Object]) -> list[ParameterKind]:
    found: set[ParameterKind] = set()
    for one in classes:
        try:
            found |= kinds_of(one.view(classic.ResourceClass))
        except msgspec.ValidationError:
            continue  # nobody can read it, which is said where it is taken in
    return sorted(found)


def reading_of(gathered: Gathered, gates: Gates) -> Reading:
    """The same as one picture. What is no part of a snapshot is passed over."""
    snapshot, unreadable = snapshot_for(gates), _Unreadable()
    mirror = Mirror(snapshot, unreadable)
    pods: dict[Key, PodInfo] = {}
    for what in SOURCES:
        for object in gathered.objects.get(what, ()):
            told = (one for one in mirror.hear(News(what, Added(object))) if isinstance(one, PodTold))
            pods.update((one.pod.key, one.pod) for one in told)
    for kind, standing in gathered.parameters.items():
        if standing.what is not None:
            for object in gathered.objects.get(standing.what, ()):
                snapshot.parameters.put(standing.what, object)
        snapshot.parameters.stand(kind, standing)
    return Reading(snapshot, pods, (*gathered.unread, *unreadable.found))


class _Unreadable:
    def __init__(self) -> None:
        self.found: list[Unread] = []

    def misread(self, what: ResourceId, object: Object, why: Exception) -> None:
        self.found.append(Unread(what, f"{what.plural} {Key.of(object)} cannot be read: {why}"))

    def well(self, what: ResourceId, object: Object) -> None: ...


class _Reader:
    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self.unread: list[Unread] = []

    async def every(self, what: ResourceId) -> list[Object]:
        try:
            return await self._listed(what)
        except errors.NotFound as absent:
            if what in ELSEWHERE:
                return []
            self.unread.append(Unread(what, f"{what.plural} are not served, so there are none: {absent}"))
            return []
        except errors.Forbidden as refused:
            if what in ELSEWHERE and not await is_served(self._client, what):
                return []
            return await self._some(what, refused)

    async def _some(self, what: ResourceId, refused: errors.Forbidden) -> list[Object]:
        """Whoever may read one namespace only gets as far as that goes."""
        if what.namespaced and self._namespace:
            try:
                found = await self._listed(what, self._namespace)
            except errors.Forbidden:
                pass
            else:
                words = f"may not list {what.plural} of namespaces other than {self._namespace}: {refused}"
                self.unread.append(Unread(what, words, is_hidden=True, is_partly=True))
                return found
        self.unread.append(Unread(what, f"may not list {what.plural}: {refused}", is_hidden=True))
        return []

    async def _listed(self, what: ResourceId, namespace: str = "") -> list[Object]:
        listing = self._client.resource(what.group, what.version, what.plural, namespaced=what.namespaced)
        return [one async for page in listing.pages(namespace) for one in page.objects]
