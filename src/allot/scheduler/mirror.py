"""How each resource enters a snapshot: the cluster as it is told, brought into one picture.

Where it sits
    `intake` feeds it what the informers tell and gives what happened to the queue; `reading`
    feeds it what it has listed. It changes the snapshot and nothing else, so whoever wants to
    follow the cluster needs one of these and no scheduler. A resource is a line in `SOURCES`.

What it promises
    MIRROR1  An object that cannot be read ends nothing and is used by nobody, and what it held
             stays held; of taint rules and budgets, which forbid, the last that was understood
             stays in force. The reader of the cluster is told of it, and when it reads well again.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from allot.api import Object, classic, compute, core, numeric, resource
from allot.base import InvariantBroken
from allot.informers import Added, Change, Deleted, Key, ResourceId

from .framework import Event
from .node import NodeInfo
from .pod import PodInfo
from .snapshot import Snapshot
from .talk import Talk

log = logging.getLogger(__name__)

GROUP = resource.limits.GROUP
PODS = ResourceId("", "v1", "pods")
NODES = ResourceId("", "v1", "nodes", namespaced=False)
CLAIMS = ResourceId(GROUP, "v1", "resourceclaims")
SLICES = ResourceId(GROUP, "v1", "resourceslices", namespaced=False)
CLASSES = ResourceId(GROUP, "v1", "deviceclasses", namespaced=False)
TAINT_RULES = ResourceId(GROUP, "v1", "devicetaintrules", namespaced=False)
RESOURCE_CLASSES = ResourceId(GROUP, classic.limits.VERSION, "resourceclasses", namespaced=False)
CAPACITY = ResourceId(GROUP, numeric.limits.VERSION, "noderesourcecapacities", namespaced=False)
TALKS = ResourceId(GROUP, classic.limits.VERSION, "podschedulings")
COMPUTE_CLASSES = ResourceId(
    compute.limits.GROUP, compute.limits.VERSION, "resourceclasses", namespaced=False
)
COMPUTE_LISTS = ResourceId(
    compute.limits.GROUP, compute.limits.VERSION, compute.limits.LISTS, namespaced=False
)
BUDGETS = ResourceId("policy", "v1", "poddisruptionbudgets")


CLASSIC = (RESOURCE_CLASSES, TALKS, CAPACITY)
"""What is not followed where it may not be read (`rights`): pods without classic claims need none of it."""

OPTIONAL = (*CLASSIC, COMPUTE_CLASSES, COMPUTE_LISTS)

ELSEWHERE = (COMPUTE_LISTS,)
"""What our own server has no need of, and does not serve: whoever misses it there misses nothing."""


class News(NamedTuple):
    what: ResourceId
    change: Change
    of_parameters: bool = False  # heard because classes name the kind, whatever else it may be followed for


# -- what came of it ------------------------------------------------------------------------------


class Noticed(NamedTuple):
    """Something that may help a pod that waits."""

    event: Event
    about: Key | None = None  # the claim that it is about; None: it may concern anybody


class Stands(Enum):
    """How a pod stands."""

    WAITING = "it has no node, and wants one"
    ON_ITS_WAY = "it was sent to a node, and the server had not heard of it"
    BOUND = "it has its node"
    OVER = "it has ended, is gone, or will never run"


class PodTold(NamedTuple):
    pod: PodInfo
    stands: Stands


class PodMisread(NamedTuple):
    """Nobody knows how it stands."""

    uid: str


class Answered(NamedTuple):
    """A driver said something about a pod."""

    pod: str  # its uid


class TalkedOut(NamedTuple):
    """A PodScheduling is there, and its pod has its node or does not wait (P5)."""

    key: Key


Happened = Noticed | PodTold | PodMisread | Answered | TalkedOut
Heard = tuple[Happened, ...]

NOTHING: Heard = ()
ROOM_FREED: Heard = (Noticed(Event.DEVICES_FREED), Noticed(Event.POD_GONE))
"""Room that was meant for one pod is there for the others, and so are the devices in it."""
DEVICES_FREED: Heard = (Noticed(Event.DEVICES_FREED),)
USERS_LEFT: Heard = (Noticed(Event.USERS_LEFT),)
POD_GONE: Heard = (Noticed(Event.POD_GONE),)
NODE_ADDED: Heard = (Noticed(Event.NODE_ADDED),)
NODE_CHANGED: Heard = (Noticed(Event.NODE_CHANGED),)
NODE_GONE: Heard = (Noticed(Event.NODE_GONE),)
SLICE_CHANGED: Heard = (Noticed(Event.SLICE_CHANGED),)
CLASS_CHANGED: Heard = (Noticed(Event.CLASS_CHANGED),)
CAPACITY_CHANGED: Heard = (Noticed(Event.CAPACITY_CHANGED),)
PARAMETERS_CHANGED: Heard = (Noticed(Event.PARAMETERS_CHANGED),)
TAINT_RULE_CHANGED: Heard = (Noticed(Event.TAINT_RULE_CHANGED),)


# -- taking it in ---------------------------------------------------------------------------------


class Reader(Protocol):
    """Who reads the cluster, and hears which objects cannot be read (MIRROR1)."""

    def misread(self, what: ResourceId, object: Object, why: Exception) -> None: ...

    def well(self, what: ResourceId, object: Object) -> None:
        """It reads well, or is gone."""


class Mirror:
    def __init__(
        self,
        snapshot: Snapshot,
        reader: Reader,
        names: Collection[str] = (),
        waiting: Callable[[str], PodInfo | None] = lambda uid: None,
    ) -> None:
        """Room that is nominated is kept for pods, but for those of the schedulers of these `names`: whoever
        decides about them knows better. `waiting` is what is known of a pod that waits, by its uid."""
        self.snapshot = snapshot
        self.names = frozenset(names)
        self._reader = reader
        self._waiting = waiting

    def hear(self, news: News) -> Heard:
        source, change = _parameters(news.what) if news.of_parameters else SOURCES[news.what], news.change
        is_gone = isinstance(change, Deleted)
        try:
            happened = source.drop(self, change.object) if is_gone else source.put(self, change)
        except InvariantBroken:
            raise
        except Exception as why:
            if is_gone:
                self._reader.well(news.what, change.object)
            else:
                self._reader.misread(news.what, change.object, why)
            return source.omit(self, change.object, is_gone)
        self._reader.well(news.what, change.object)
        return happened

    def is_waiting(self, uid: str) -> bool:
        return self._waiting(uid) is not None

    def read_pod(self, object: Object) -> PodInfo:
        return PodInfo.of(object, self._waiting(object.uid) or self.snapshot.pod(object.uid))


class Source(NamedTuple):
    put: Callable[[Mirror, Change], Heard]
    drop: Callable[[Mirror, Object], Heard]
    omit: Callable[[Mirror, Object, bool], Heard]
    """What cannot be read, and whether it is gone."""


# -- pods -----------------------------------------------------------------------------------------


def _put_pod(mirror: Mirror, change: Change) -> Heard:
    pod, snapshot = mirror.read_pod(change.object), mirror.snapshot
    if pod.view.is_finished:
        return _pod_over(pod, snapshot)
    if pod.spec.node_name:
        freed = _keep_no_room(pod, snapshot)
        snapshot.place(pod, pod.spec.node_name)
        if snapshot.talk_of(pod) is not None and pod.scheduler in mirror.names:
            return (PodTold(pod, Stands.BOUND), *freed, TalkedOut(pod.key))
        return (PodTold(pod, Stands.BOUND), *freed)
    if snapshot.place_of(pod.uid) is not None:
        return (PodTold(pod, Stands.ON_ITS_WAY),)  # this was said before that was known (P4)
    if pod.is_deleting:
        return (PodTold(pod, Stands.OVER), *_keep_no_room(pod, snapshot))
    if pod.scheduler in mirror.names:
        return (PodTold(pod, Stands.WAITING),)
    return (PodTold(pod, Stands.WAITING), *_nominated(pod, snapshot))


def _drop_pod(mirror: Mirror, object: Object) -> Heard:
    return _pod_over(mirror.read_pod(object), mirror.snapshot)


def _pod_over(pod: PodInfo, snapshot: Snapshot) -> Heard:
    told = (PodTold(pod, Stands.OVER), *_keep_no_room(pod, snapshot))
    if snapshot.talk_of(pod) is not None:
        told = (*told, TalkedOut(pod.key))
    if snapshot.remove(pod.uid) or (pod.spec.node_name and pod.is_deleting):
        snapshot.prospects.leave(pod.uid, pod.claims)
        return (*told, *POD_GONE)
    return told


def _nominated(pod: PodInfo, snapshot: Snapshot) -> Heard:
    """Its scheduler makes room for it, and says where."""
    node = pod.status.nominated_node_name or None
    if node == snapshot.prospects.nomination(pod.uid):
        return NOTHING
    freed = _keep_no_room(pod, snapshot)
    if node is not None:
        snapshot.nominate(pod, node)
    return freed


def _keep_no_room(pod: PodInfo, snapshot: Snapshot) -> Heard:
    return ROOM_FREED if snapshot.unnominate(pod.uid) else NOTHING


def _omit_pod(mirror: Mirror, object: Object, is_gone: bool) -> Heard:
    """Where it is known to be on a node it stays counted there."""
    if is_gone and mirror.snapshot.remove(object.uid):
        return (PodMisread(object.uid), *POD_GONE)
    return (PodMisread(object.uid),)


# -- nodes ----------------------------------------------------------------------------------------


def _put_node(mirror: Mirror, change: Change) -> Heard:
    is_new = mirror.snapshot.node(change.object.name) is None
    if not mirror.snapshot.put_node(NodeInfo.of(change.object, mirror.snapshot.listed(change.object.name))):
        return NOTHING
    return NODE_ADDED if is_new else NODE_CHANGED


def _drop_node(mirror: Mirror, object: Object, is_gone: bool = True) -> Heard:
    mirror.snapshot.drop_node(object.name)
    return NODE_GONE


# -- claims ---------------------------------------------------------------------------------------


def _put_claim(mirror: Mirror, change: Change) -> Heard:
    snapshot, object = mirror.snapshot, change.object
    held, before = snapshot.ledger.hold(object.uid), snapshot.claim_with(object.uid)
    claim = snapshot.put_claim(object)
    if claim is None:
        return NOTHING
    event = Event.CLAIM_ADDED if isinstance(change, Added) else Event.CLAIM_CHANGED
    concerns = Noticed(event, claim.key)
    if held is not None and held.settled and claim.allocation is None:
        return (*DEVICES_FREED, concerns)
    if before is not None and len(claim.reserved_for) < len(before.reserved_for):
        return (*USERS_LEFT, concerns)
    return (concerns,)


def _drop_claim(mirror: Mirror, object: Object) -> Heard:
    key = Key.of(object)
    if not mirror.snapshot.drop_claim(key, object.uid):
        return NOTHING
    return (*DEVICES_FREED, Noticed(Event.CLAIM_CHANGED, key))


def _omit_claim(mirror: Mirror, object: Object, is_gone: bool) -> Heard:
    if is_gone:
        return NOTHING
    mirror.snapshot.put_unreadable(object)
    return (Noticed(Event.CLAIM_CHANGED, Key.of(object)),)


# -- devices --------------------------------------------------------------------------------------


def _put_slice(mirror: Mirror, change: Change) -> Heard:
    mirror.snapshot.inventory.apply(change.object.view(resource.ResourceSlice))
    return SLICE_CHANGED


def _drop_slice(mirror: Mirror, object: Object, is_gone: bool = True) -> Heard:
    mirror.snapshot.inventory.remove(object.name)
    return SLICE_CHANGED


def _put_class(mirror: Mirror, change: Change) -> Heard:
    mirror.snapshot.put_class(change.object.view(resource.DeviceClass))
    return CLASS_CHANGED


def _drop_class(mirror: Mirror, object: Object, is_gone: bool = True) -> Heard:
    mirror.snapshot.drop_class(object.name)
    return CLASS_CHANGED


def _put_taint_rule(mirror: Mirror, change: Change) -> Heard:
    mirror.snapshot.inventory.apply_taint_rule(change.object.view(resource.DeviceTaintRule))
    return TAINT_RULE_CHANGED


def _drop_taint_rule(mirror: Mirror, object: Object) -> Heard:
    mirror.snapshot.inventory.remove_taint_rule(object.name)
    return TAINT_RULE_CHANGED


# -- classic claims -------------------------------------------------------------------------------


def _put_resource_class(mirror: Mirror, change: Change) -> Heard:
    snapshot, name = mirror.snapshot, change.object.name
    before = snapshot.resource_classes.get(name)
    snapshot.put_resource_class(change.object)
    return (*CLASS_CHANGED, *_allocated_otherwise(name, before, snapshot))


def _drop_resource_class(mirror: Mirror, object: Object, is_gone: bool = True) -> Heard:
    before = mirror.snapshot.resource_classes.get(object.name)
    mirror.snapshot.drop_resource_class(object.name)
    return (*CLASS_CHANGED, *_allocated_otherwise(object.name, before, mirror.snapshot))


def _allocated_otherwise(name: str, before: classic.ResourceClass | None, snapshot: Snapshot) -> Heard:
    """Claims of a class that was its driver's to allocate and is the scheduler's now, or the other way round:
    pods that name them may be tried, or not any more."""
    now = snapshot.resource_classes.get(name)
    if _is_numeric(before) == _is_numeric(now):
        return NOTHING
    return tuple(
        [
            Noticed(Event.CLAIM_CHANGED, claim.key)
            for claim in snapshot.claims()
            if claim.view.spec.resource_class_name == name and claim.allocation is None
        ]
    )


def _is_numeric(resource_class: classic.ResourceClass | None) -> bool:
    return resource_class is not None and bool(resource_class.numeric_parameters)


# -- numeric parameters ---------------------------------------------------------------------------


def _put_capacity(mirror: Mirror, change: Change) -> Heard:
    read = mirror.snapshot.capacity.put(change.object.view(numeric.NodeResourceCapacity))
    for one in read.unreadable:
        text = "instance %s of driver %s on node %s is not used: %s"
        log.warning(text, one.id, read.driver, read.node, one.why)
    for id, counts in mirror.snapshot.capacity.twice(change.object.name):
        text = "instance %s of driver %s on node %s is published twice: as %s has it, it counts"
        log.warning(text, id, read.driver, read.node, counts)
    return CAPACITY_CHANGED


def _drop_capacity(mirror: Mirror, object: Object, is_gone: bool = True) -> Heard:
    mirror.snapshot.capacity.drop(object.name)
    return CAPACITY_CHANGED


def _parameters(what: ResourceId) -> "Source":
    """Of whichever kind: classes name them while we run."""

    def put(mirror: Mirror, change: Change) -> Heard:
        mirror.snapshot.parameters.put(what, change.object)
        return PARAMETERS_CHANGED

    def drop(mirror: Mirror, object: Object, is_gone: bool = True) -> Heard:
        mirror.snapshot.parameters.drop(what, Key.of(object))
        return PARAMETERS_CHANGED

    return Source(put, drop, drop)


def _put_talk(mirror: Mirror, change: Change) -> Heard:
    talk, snapshot = Talk.of(change.object), mirror.snapshot
    before = snapshot.talk_at(talk.key)
    snapshot.put_talk(talk)
    pod = snapshot.pod(talk.pod)
    if pod is not None and pod.spec.node_name:
        return (TalkedOut(talk.key),) if pod.scheduler in mirror.names else NOTHING
    if pod is None and mirror.names and not mirror.is_waiting(talk.pod):
        return (TalkedOut(talk.key),)  # of a pod that has ended, perhaps: who sweeps asks
    is_said = before is None or before.uid != talk.uid or before.answers != talk.answers
    return (Answered(talk.pod),) if is_said and talk.pod else NOTHING


def _drop_talk(mirror: Mirror, object: Object, is_gone: bool = True) -> Heard:
    """What it said is not known any more: the pod may be tried where it was refused."""
    known = mirror.snapshot.talk_at(Key.of(object))
    mirror.snapshot.drop_talk(Key.of(object), object.uid)
    return (Answered(known.pod),) if known is not None and known.uid == object.uid and known.pod else NOTHING


# -- compute resources ----------------------------------------------------------------------------


def _put_compute_list(mirror: Mirror, change: Change) -> Heard:
    is_moved = mirror.snapshot.list_compute(change.object.name, compute.listed.read(change.object))
    return NODE_CHANGED if is_moved else NOTHING


def _drop_compute_list(mirror: Mirror, object: Object, is_gone: bool = True) -> Heard:
    return NODE_CHANGED if mirror.snapshot.list_compute(object.name, ()) else NOTHING


def _put_compute_class(mirror: Mirror, change: Change) -> Heard:
    view = change.object.view(compute.ResourceClass)
    if wrong := compute.unusable(change.object.fields):
        raise ValueError(wrong)
    mirror.snapshot.put_compute_class(view)
    return CLASS_CHANGED


def _drop_compute_class(mirror: Mirror, object: Object, is_gone: bool = True) -> Heard:
    mirror.snapshot.drop_compute_class(object.name)
    return CLASS_CHANGED


# -- budgets --------------------------------------------------------------------------------------


def _put_budget(mirror: Mirror, change: Change) -> Heard:
    """They protect pods from preemption; no pod fits because of one."""
    budget = change.object.view(core.PodDisruptionBudget)
    mirror.snapshot.prospects.budgets.set(Key.of(change.object), budget)
    return NOTHING


def _drop_budget(mirror: Mirror, object: Object) -> Heard:
    mirror.snapshot.prospects.budgets.drop(Key.of(object))
    return NOTHING


def _keep(mirror: Mirror, object: Object, is_gone: bool) -> Heard:
    """What forbids stays in force as it was understood last."""
    return NOTHING


SOURCES: Mapping[ResourceId, Source] = {
    CLASSES: Source(_put_class, _drop_class, _drop_class),
    COMPUTE_LISTS: Source(_put_compute_list, _drop_compute_list, _drop_compute_list),
    NODES: Source(_put_node, _drop_node, _drop_node),
    SLICES: Source(_put_slice, _drop_slice, _drop_slice),
    TAINT_RULES: Source(_put_taint_rule, _drop_taint_rule, _keep),
    RESOURCE_CLASSES: Source(_put_resource_class, _drop_resource_class, _drop_resource_class),
    COMPUTE_CLASSES: Source(_put_compute_class, _drop_compute_class, _drop_compute_class),
    CAPACITY: Source(_put_capacity, _drop_capacity, _drop_capacity),
    TALKS: Source(_put_talk, _drop_talk, _drop_talk),
    CLAIMS: Source(_put_claim, _drop_claim, _omit_claim),
    PODS: Source(_put_pod, _drop_pod, _omit_pod),
    BUDGETS: Source(_put_budget, _drop_budget, _keep),
}
