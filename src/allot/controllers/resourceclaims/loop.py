"""From changes to keys, and from keys to the two loops.

Which key a change touches is found through indexes, so a change of one pod costs the
same in a large cluster as in a small one. Of the changes that a pod and its claim go
through, most are what this controller or the scheduler has just written: where all is as
it should be, no key is added.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from allot.api import Object, classic, generated, resource
from allot.informers import (
    OWNER_INDEX,
    Added,
    Again,
    Change,
    Deleted,
    Index,
    Informer,
    Key,
    Reconciler,
    ResourceId,
    Updated,
    owner_uids,
)

from ..controller import Loop, World
from .claim_loop import ClaimLoop
from .consumers import Consumers
from .memory import Gone, Made
from .pod_loop import PodLoop
from .released import Releases
from .tally import Tally
from .views import (
    PREPARED_GROUP,
    PREPARED_PLURAL,
    PREPARED_VERSION,
    PodClaim,
    claim_of,
    pod_of,
    prepared_uids,
)

PODS = ResourceId("", "v1", "pods")
NODES = ResourceId("", "v1", "nodes", namespaced=False)
CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")
TEMPLATES = ResourceId("resource.k8s.io", "v1", "resourceclaimtemplates")
CLASSES = ResourceId(
    classic.RESOURCE_CLASS.group, classic.limits.VERSION, classic.RESOURCE_CLASS.plural, namespaced=False
)
PREPARED = ResourceId(PREPARED_GROUP, PREPARED_VERSION, PREPARED_PLURAL, namespaced=False)
NEEDS = (PODS, NODES, CLAIMS, TEMPLATES, CLASSES, PREPARED)

WORKERS = 50


class Item(NamedTuple):
    """What to look at: a pod or a claim."""

    kind: Literal["pod", "claim"]
    key: Key

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"


def make(world: World) -> Sequence[Loop]:
    pods, nodes, claims, templates, classes, prepared = (world.informer(what) for what in NEEDS)
    gone, made, tally = Gone(), Made(), Tally()
    of_pods = PodLoop(world, pods, claims, templates, classes, made)
    consumers = Consumers(world, lambda claim: loop.add(Item("claim", claim)))
    of_claims = ClaimLoop(world, pods, claims, Releases(world.client, prepared, nodes), consumers, gone)

    async def reconcile(item: Item) -> Again | None:
        return await (of_pods if item.kind == "pod" else of_claims).reconcile(item.key)

    loop = Reconciler("resource_claim", reconcile, world.clock, world.telemetry, workers=WORKERS)
    router = Router(loop, of_pods, of_claims, pods, claims, templates, gone, made)
    world.metrics.readings(
        "dynamic_resource_allocation_resource_claims",
        "Claims that exist.",
        "allocated",
        "admin_access",
        "source",
        read=tally.read,
    )
    world.on(claims, tally.hear)
    world.on(claims, router.claim_changed)
    world.on(pods, router.pod_changed)
    world.on(templates, router.template_changed)
    world.on(classes, router.class_changed)
    world.on(prepared, router.prepared_changed)
    world.on(nodes, lambda change: router.node_changed(change, prepared))
    return [loop]


class Router:
    """Which items a change touches."""

    def __init__(
        self,
        loop: Reconciler[Item],
        of_pods: PodLoop,
        of_claims: ClaimLoop,
        pods: Informer,
        claims: Informer,
        templates: Informer,
        gone: Gone,
        made: Made,
    ) -> None:
        self._loop = loop
        self._of_pods = of_pods
        self._of_claims = of_claims
        self._gone = gone
        self._made = made
        self._owned: Index = claims.cache.index(OWNER_INDEX, owner_uids)
        self._reserved = claims.cache.index("reserved for", _reserved_uids)
        self._by_uid = claims.cache.index("uid", _uid)
        self._users = pods.cache.index("claim names", _claim_names)
        self._waiting = pods.cache.index("templates", _template_names)
        self._blocked = pods.cache.index("names of classic claims", _classic_names)
        self._of_class = templates.cache.index("resource class", _class_name)

    def pod_changed(self, change: Change) -> None:
        object = change.object
        if isinstance(change, Updated) and _concern(change.old) == _concern(object):
            return
        pod = pod_of(object)
        if isinstance(change, Deleted):
            self._gone.add(object.uid, pod.spec.node_name)
        elif not pod.is_done:
            if pod.spec.resource_claims:
                if not self._of_pods.is_at_rest(object):
                    self._loop.add(Item("pod", Key.of(object)))
                self._look_at_superfluous(object)
            return
        self._look_at(self._reserved[object.uid])
        self._look_at(self._owned[object.uid])
        for name in pod.claim_names:
            self._loop.add(Item("claim", Key(object.namespace, name)))

    def claim_changed(self, change: Change) -> None:
        object = change.object
        self._made.forget(object.uid)
        claim = claim_of(object)
        users = self._users[f"{object.namespace}/{object.name}"]
        if isinstance(change, Deleted) or _has_another_owner(change):
            for pod in users:
                self._loop.add(Item("pod", Key.of(pod)))
        if isinstance(change, Deleted):
            if resource.shape.is_classic(claim):
                self._of_claims.forget(Key.of(object))
            for pod in self._blocked[f"{object.namespace}/{object.name}"]:
                self._loop.add(Item("pod", Key.of(pod)))
            return
        if isinstance(change, Added):
            for pod in users:
                self._look_at_superfluous(pod)
        if not self._of_claims.is_at_rest(object, is_new=isinstance(change, Added)):
            self._loop.add(Item("claim", Key.of(object)))
        if claim.status.allocation is not None:
            reserved = {one.uid for one in claim.status.reserved_for}
            for pod in users:
                if pod_of(pod).spec.node_name and pod.uid not in reserved:
                    self._loop.add(Item("pod", Key.of(pod)))

    def template_changed(self, change: Change) -> None:
        for pod in self._waiting[f"{change.object.namespace}/{change.object.name}"]:
            self._loop.add(Item("pod", Key.of(pod)))

    def class_changed(self, change: Change) -> None:
        """No claim is made while its class is missing."""
        if isinstance(change, Added):
            for template in self._of_class[change.object.name]:
                for pod in self._waiting[f"{template.namespace}/{template.name}"]:
                    self._loop.add(Item("pod", Key.of(pod)))

    def prepared_changed(self, change: Change) -> None:
        """What a node lists no more may have waited for that."""
        before = change.old if isinstance(change, Updated) else change.object
        still = () if isinstance(change, Deleted) else prepared_uids(change.object)
        for uid in prepared_uids(before):
            if uid not in still:
                self._look_at(self._by_uid[uid])

    def node_changed(self, change: Change, prepared: Informer) -> None:
        listed = prepared.cache.get(change.object.name) if isinstance(change, Deleted) else None
        for uid in prepared_uids(listed) if listed is not None else ():
            self._look_at(self._by_uid[uid])

    def _look_at_superfluous(self, pod: Object) -> None:
        """A second claim can be told from the right one when the pod's status names that one and
        that one is known, whichever of the three is heard of last."""
        names = pod_of(pod).claim_names
        self._look_at(one for one in self._owned[pod.uid] if one.name not in names)

    def _look_at(self, claims: Iterable[Object]) -> None:
        for claim in claims:
            self._loop.add(Item("claim", Key.of(claim)))


def _has_another_owner(change: Change) -> bool:
    """Whoever it was made for needs one anew."""
    return isinstance(change, Updated) and owner_uids(change.old) != owner_uids(change.object)


def _concern(object: Object) -> object:
    """What of a pod can change what has to be done."""
    pod = pod_of(object)
    status = (pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status)
    return pod.is_done, bool(pod.metadata.deletion_timestamp), pod.spec.node_name, status


def _reserved_uids(object: Object) -> tuple[str, ...]:
    return tuple(one.uid for one in claim_of(object).status.reserved_for)


def _uid(object: Object) -> tuple[str, ...]:
    return (object.uid,)


def _claim_names(object: Object) -> tuple[str, ...]:
    return tuple(f"{object.namespace}/{name}" for name in pod_of(object).claim_names)


def _template_names(object: Object) -> tuple[str, ...]:
    """Templates that a pod still needs a claim from."""
    return tuple(f"{object.namespace}/{one.resource_claim_template_name}" for one in _unmade(object))


def _classic_names(object: Object) -> tuple[str, ...]:
    """The names that those claims have if they are classic. What else has one is in the way until it goes."""
    return tuple(
        f"{object.namespace}/{classic.limits.claim_name(object.name, one.name)}" for one in _unmade(object)
    )


def _unmade(object: Object) -> list[PodClaim]:
    pod = pod_of(object)
    return [
        one
        for one in pod.spec.resource_claims
        if one.resource_claim_template_name and pod.recorded(one.name) is None
    ]


def _class_name(object: Object) -> tuple[str, ...]:
    name = generated.class_of(object.fields)
    return (name,) if name else ()
