"""How many pods the controllers of pods want.

A replica set that belongs to a deployment wants what the deployment wants, however many sets it has
at the moment. Kinds that everybody has are followed; of every other kind the server is asked for the
scale when the budget is looked at, for nobody tells of its changes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from allot.api import Object, errors, meta
from allot.informers import Catalogue, Change, ResourceId, Served, Updated, controller_of, discover

from ..controller import World
from .plan import Uncounted

DEPLOYMENT, REPLICA_SET = ("apps", "Deployment"), ("apps", "ReplicaSet")
FOLLOWED = {
    DEPLOYMENT: ResourceId("apps", "v1", "deployments"),
    REPLICA_SET: ResourceId("apps", "v1", "replicasets"),
    ("apps", "StatefulSet"): ResourceId("apps", "v1", "statefulsets"),
    ("", "ReplicationController"): ResourceId("", "v1", "replicationcontrollers"),
}


class _Spec(meta.View, frozen=True):
    replicas: int = 0


class _Scale(meta.View, frozen=True):
    metadata: meta.ObjectMeta = meta.ObjectMeta()
    spec: _Spec = _Spec()


@dataclass(frozen=True, slots=True)
class Owner:
    uid: str
    replicas: int


class Owners:
    """`look_at` is told the namespace of every owner that comes, goes, or wants another number of pods."""

    def __init__(self, world: World, look_at: Callable[[str], None]) -> None:
        self._client = world.client
        self._followed = {kind: world.informer(what) for kind, what in FOLLOWED.items()}
        self._catalogue: Catalogue | None = None
        self._look_at = look_at
        for informer in self._followed.values():
            world.on(informer, self._changed)

    def _changed(self, change: Change) -> None:
        if not isinstance(change, Updated) or _wanted(change.old) != _wanted(change.object):
            self._look_at(change.object.namespace)

    async def wanted(self, pods: Iterable[Object]) -> int | Uncounted:
        """Of all owners of these pods together, each counted once. Pods without one are nobody's wish."""
        asked: set[str] = set()
        owners: dict[str, int] = {}
        for pod in pods:
            reference = controller_of(pod)
            if reference is None or reference.uid in asked:
                continue
            owner = await self._owner(reference, pod.namespace)
            if isinstance(owner, Uncounted):
                return Uncounted(f"pod {pod.name} is controlled by {owner.why}")
            asked.add(reference.uid)
            owners[owner.uid] = owner.replicas
        return sum(owners.values())

    async def _owner(self, reference: meta.OwnerReference, namespace: str) -> Owner | Uncounted:
        if _kind(reference) not in self._followed:
            return await self._asked(reference, namespace)
        found = await self._find(reference, namespace)
        if found is None:
            return Uncounted(f"{reference.kind} {reference.name}, which does not exist")
        above = controller_of(found)
        if above is not None and (_kind(reference), _kind(above)) == (REPLICA_SET, DEPLOYMENT):
            return await self._owner(above, namespace)
        return Owner(found.uid, _wanted(found))

    async def _find(self, reference: meta.OwnerReference, namespace: str) -> Object | None:
        """What the cache does not show is asked for: caches of pods and owners are of different times."""
        informer = self._followed[_kind(reference)]
        cached = informer.cache.get(reference.name, namespace)
        if cached is not None and cached.uid == reference.uid:
            return cached
        what = informer.what
        try:
            live = await self._client.resource(what.group, what.version, what.plural).get(
                reference.name, namespace
            )
        except errors.NotFound:
            return None
        return live if live.uid == reference.uid else None

    async def _asked(self, reference: meta.OwnerReference, namespace: str) -> Owner | Uncounted:
        none = Uncounted(f"{reference.kind} {reference.name}, which has no scale")
        served = await self._served(reference)
        if served is None or not served.what.namespaced:
            return none
        what = served.what
        resource = self._client.resource(what.group, what.version, what.plural)
        try:
            scale = (await resource.get(reference.name, namespace, subresource="scale")).view(_Scale)
        except errors.NotFound:
            return none
        if scale.metadata.uid != reference.uid:
            return Uncounted(f"{reference.kind} {reference.name}, which does not exist")
        return Owner(reference.uid, scale.spec.replicas)

    async def _served(self, reference: meta.OwnerReference) -> Served | None:
        """What was served once is believed; a kind that was not may be by now."""
        known = self._catalogue.of_kind(reference.api_version, reference.kind) if self._catalogue else None
        if known is None:
            self._catalogue = await discover(self._client)
            known = self._catalogue.of_kind(reference.api_version, reference.kind)
        return known


def _kind(reference: meta.OwnerReference) -> tuple[str, str]:
    return reference.api_version.rpartition("/")[0], reference.kind


def _wanted(object: Object) -> int:
    return object.view(_Scale).spec.replicas
