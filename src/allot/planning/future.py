"""A cluster to which something was done, before its pods have found their places again.

Objects come and go on a fork of the snapshot, the way news of them come into a scheduler's own. What must
leave its node is only named here: leaving frees devices, and that is the simulation's to work out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from msgspec.structs import replace

from allot import quota
from allot.api import Fields, Gates, Object, compute, core, encode, resource
from allot.informers import Added, Deleted, Key, ResourceId
from allot.scheduler import (
    CLAIMS,
    COMPUTE_LISTS,
    NODES,
    PODS,
    SLICES,
    SOURCES,
    Budgets,
    Gathered,
    Mirror,
    News,
    NodeInfo,
    PodInfo,
    Reading,
    reading_of,
)

from .changes import AddLike, Apply, BadChange, Change, Cordon, Delete, Drain, Fail, Remove, Taint, Untaint
from .dump import PRIORITIES, RESOURCES, TEMPLATES
from .fictional import free_names, imagined
from .manifests import copies, pods_of
from .quotas import Allowance

DELETED = "it is deleted"
MIRROR_POD = "kubernetes.io/config.mirror"
NO_EXECUTE = "NoExecute"


class Cluster:
    """What was read of one, with its objects by name."""

    def __init__(self, gathered: Gathered, gates: Gates) -> None:
        self.gates = gates
        self.reading: Reading = reading_of(gathered, gates)
        self.objects: dict[ResourceId, dict[Key, Object]] = {
            what: {Key.of(one): one for one in objects} for what, objects in gathered.objects.items()
        }

    @property
    def waiting(self) -> list[PodInfo]:
        return [pod for pod in self.reading.pods.values() if is_waiting(pod)]

    @property
    def nodes(self) -> Mapping[str, Object]:
        """With what is said of them elsewhere."""
        named = {
            what: {key.name: one for key, one in self.objects.get(what, {}).items()}
            for what in (NODES, COMPUTE_LISTS)
        }
        return whole(named[NODES], named[COMPUTE_LISTS])

    def get(self, what: ResourceId, key: Key) -> Object | None:
        return self.objects.get(what, {}).get(key)


def whole(nodes: Mapping[str, Object], lists: Mapping[str, Object]) -> Mapping[str, Object]:
    """Nodes by name, each with the compute resources that are said beside it."""
    if not lists:
        return nodes
    more = ((name, lists[name]) for name in lists.keys() & nodes.keys())
    return {**nodes, **{name: compute.listed.with_listed(nodes[name], one) for name, one in more}}


@dataclass(frozen=True, slots=True)
class Leaving:
    pod: PodInfo
    node: str
    why: str

    @property
    def comes_back(self) -> bool:
        return comes_back(self.pod)


@dataclass
class Future:
    reading: Reading
    gone: list[str] = field(default_factory=list)  # nodes
    leaving: dict[str, Leaving] = field(default_factory=dict)  # pods that are told to go, by uid
    deleted: set[str] = field(default_factory=set)  # pods that somebody ends for good, by uid
    coming: list[PodInfo] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # why something would not be admitted
    held: dict[str, str] = field(default_factory=dict)  # why a pod stays on a node that is drained, by name
    added: list[str] = field(default_factory=list)  # nodes
    notes: list[str] = field(default_factory=list)


def made(cluster: Cluster, changes: Iterable[Change]) -> Future:
    """Raises BadChange."""
    return _Making(cluster).done(changes)


def is_waiting(pod: PodInfo) -> bool:
    return not pod.spec.node_name and not pod.view.is_finished and not pod.is_deleting


def comes_back(pod: PodInfo) -> bool:
    """Whether somebody makes another one in its place, anywhere."""
    owner = _controller(pod)
    return owner is not None and owner.kind not in ("DaemonSet", "Node")


def belongs_to_node(pod: PodInfo) -> bool:
    """It is there because the node is: nobody moves it."""
    owner = _controller(pod)
    is_static = MIRROR_POD in (pod.object.metadata.annotations or {})
    return is_static or (owner is not None and owner.kind in ("DaemonSet", "Node"))


def _controller(pod: PodInfo) -> Any:
    return next((one for one in pod.view.metadata.owner_references if one.controller), None)


class _Making:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._snapshot = cluster.reading.snapshot.fork()
        self._mirror = Mirror(self._snapshot, self)
        self._objects = {what: dict(objects) for what, objects in cluster.objects.items()}
        self._future = Future(Reading(self._snapshot, cluster.reading.pods, cluster.reading.unread))
        self._arriving: list[Fields] = []

    def done(self, changes: Iterable[Change]) -> Future:
        for change in changes:
            self._do(change)
        allowance = self._allowance() if self._arriving else None
        for pod in self._arriving:
            assert allowance is not None
            self._arrive(pod, allowance)
        return self._future

    def _do(self, change: Change) -> None:
        match change:
            case Drain(node):
                self._drain(node)
            case Remove(node):
                self._remove(node)
            case Cordon(node, closed):
                self._put_node(replace(self._node(node), unschedulable=closed))
            case Taint(node, taint):
                known = self._node(node)
                self._put_node(replace(known, taints=(*known.taints, taint)))
                if taint.effect == NO_EXECUTE:
                    self._leave(node, f"taint {taint.key}", lambda pod: not _tolerates(pod, taint))
            case Untaint(node, key):
                known = self._node(node)
                kept = tuple(one for one in known.taints if one.key != key)
                if kept == known.taints:
                    raise BadChange(f"node {node} has no taint {key}")
                self._put_node(replace(known, taints=kept))
            case AddLike(node, count):
                self._add_like(node, count)
            case Apply(manifests, count):
                for manifest in manifests:
                    self._apply(manifest.what, manifest.object, count)
            case Delete(what, key):
                self._delete(what, key)
            case Fail():
                self._fail(change)
            case _:
                assert_never(change)

    # -- nodes ----------------------------------------------------------------------------------

    def _node(self, name: str) -> NodeInfo:
        node = self._snapshot.node(name)
        if node is None:
            raise BadChange(f"there is no node {name}")
        return node

    def _put_node(self, node: NodeInfo) -> None:
        self._snapshot.put_node(node)

    def _drain(self, name: str) -> None:
        node = self._node(name)
        self._put_node(replace(node, unschedulable=True))
        going = [pod for pod in node.pods.values() if not belongs_to_node(pod)]
        already = [one.pod for one in self._future.leaving.values()]
        budgets = Budgets(dict(self._snapshot.prospects.budgets.items()), already)
        stay = {pod.uid for pod in budgets.violating(going)}
        for pod in going:
            if pod.uid in stay:
                named = ", ".join(key.name for key in budgets.covering(pod))
                self._future.held[str(pod.key)] = f"disruption budget {named} lets no more pods go"
            else:
                self._future.leaving.setdefault(pod.uid, Leaving(pod, name, f"{name} is drained"))

    def _remove(self, name: str) -> None:
        for pod in self._node(name).pods.values():
            self._future.leaving.setdefault(pod.uid, Leaving(pod, name, f"{name} is gone"))
        self._future.gone.append(name)

    def _leave(self, name: str, why: str, goes: Callable[[PodInfo], bool]) -> None:
        for pod in self._node(name).pods.values():
            if goes(pod):
                self._future.leaving.setdefault(pod.uid, Leaving(pod, name, why))

    def _add_like(self, name: str, count: int) -> None:
        known = self._cluster.get(NODES, Key("", name))
        if known is None:
            raise BadChange(f"there is no node {name}")
        node = compute.listed.with_listed(known, self._cluster.get(COMPUTE_LISTS, Key("", name)))
        slices = [one.fields for one in self._objects.get(SLICES, {}).values()]
        for fresh in free_names(name, set(self._snapshot.node_names()), count):
            more = imagined(node.fields, slices, fresh)
            self._hear(NODES, more.node)
            for one in more.slices:
                self._hear(SLICES, one)
            self._future.added.append(fresh)

    # -- objects --------------------------------------------------------------------------------

    def _apply(self, what: ResourceId, object: Object, count: int) -> None:
        if what.plural == PODS.plural and not what.group:
            self._arriving += copies(dict(object.fields), count)
            return
        pods = pods_of(object)
        if pods:
            self._arriving += pods
            return
        known = next((one for one in RESOURCES if (one.group, one.plural) == (what.group, what.plural)), None)
        if known is None:
            raise BadChange(f"a {object.kind} decides nothing about where pods go")
        if known == NODES and self._snapshot.node(object.name) is None:
            self._future.added.append(object.name)
        self._hear(known, object)
        if object.kind == "DeviceTaintRule":
            self._tainted(object.view(resource.DeviceTaintRule))

    def _delete(self, what: ResourceId, key: Key) -> None:
        object = self._objects.get(what, {}).pop(key, None)
        if object is None:
            raise BadChange(f"there is no {what.plural.removesuffix('s')} {key}")
        if what == PODS:
            pod = self._future.reading.pods[key]
            self._future.deleted.add(pod.uid)
            if pod.spec.node_name:
                self._future.leaving[pod.uid] = Leaving(pod, pod.spec.node_name, DELETED)
        elif what in SOURCES:
            self._mirror.hear(News(what, Deleted(object)))

    def _fail(self, device: Fail) -> None:
        """A slice without it takes the place of the one that has it."""
        for key, object in self._objects.get(SLICES, {}).items():
            spec = object.fields.get("spec") or {}
            if spec.get("driver") != device.driver or spec["pool"]["name"] != device.pool:
                continue
            kept = [one for one in spec.get("devices") or () if one["name"] != device.device]
            if len(kept) == len(spec.get("devices") or ()):
                continue
            changed = Object(encode({**object.fields, "spec": {**spec, "devices": kept}}))
            self._objects[SLICES][key] = changed
            self._mirror.hear(News(SLICES, Added(changed)))
            self._holders(device)
            return
        raise BadChange(f"no slice has a device {device.driver}/{device.pool}/{device.device}")

    def _holders(self, device: Fail) -> None:
        for claim in self._snapshot.claims():
            hold = self._snapshot.ledger.hold(claim.uid)
            if hold is not None and any(one.device == tuple(device) for one in hold.devices):
                self._future.notes.append(f"claim {claim.key} keeps {device.device}, which is not published")

    def _tainted(self, rule: resource.DeviceTaintRule) -> None:
        """NoExecute ends pods whose claims hold such devices and do not tolerate it for good."""
        if rule.spec.taint.effect != NO_EXECUTE:
            return
        for claim in self._snapshot.claims():
            results = claim.allocation.devices.results if claim.allocation is not None else ()
            if not any(_hits(rule, one) for one in results):
                continue
            for user in claim.reserved_for:
                pod = self._snapshot.pod(user.uid)
                if pod is not None:
                    why = f"a device of claim {claim.key.name} is tainted"
                    self._future.leaving.setdefault(pod.uid, Leaving(pod, pod.spec.node_name, why))

    def _hear(self, what: ResourceId, object: Object) -> None:
        self._objects.setdefault(what, {})[Key.of(object)] = object
        if what in SOURCES:
            self._mirror.hear(News(what, Added(object)))

    def misread(self, what: ResourceId, object: Object, why: Exception) -> None:
        raise BadChange(f"{what.plural} {Key.of(object)}: {why}")

    def well(self, what: ResourceId, object: Object) -> None: ...

    # -- pods that come -------------------------------------------------------------------------

    def _allowance(self) -> Allowance:
        there = [
            quota.Subject(source, dict(one.fields))
            for what, source in ((PODS, quota.PODS), (CLAIMS, quota.CLAIMS))
            for one in self._objects.get(what, {}).values()
        ]
        classes = (one.view(resource.DeviceClass) for one in self._of("deviceclasses"))
        return Allowance(self._of("resourcequotas"), classes, there)

    def _of(self, plural: str) -> list[Object]:
        return [
            one
            for what, objects in self._objects.items()
            if what.plural == plural
            for one in objects.values()
        ]

    def _arrive(self, pod: Fields, allowance: Allowance) -> None:
        metadata, spec = pod["metadata"], {**pod["spec"]}
        if spec.get("priority") is None:
            spec["priority"] = self._priority(spec.get("priorityClassName") or "")
        pod = {**pod, "spec": spec}
        key = Key(metadata["namespace"], metadata["name"])
        why = allowance.admit(quota.Subject(quota.PODS, pod), key.namespace)
        if why is not None:
            self._future.refused[f"pod {key}"] = why
            return
        statuses = []
        for entry in spec.get("resourceClaims") or ():
            template = entry.get("resourceClaimTemplateName")
            if template:
                claim = self._claim(pod, entry["name"], template, allowance)
                statuses += [{"name": entry["name"], "resourceClaimName": claim}] if claim else []
        status = {**(pod.get("status") or {}), "resourceClaimStatuses": statuses}
        self._future.coming.append(PodInfo.of(Object(encode({**pod, "status": status}))))

    def _claim(self, pod: Fields, entry: str, template: str, allowance: Allowance) -> str:
        """The claim that would be made for a pod; "" where none would be."""
        metadata = pod["metadata"]
        namespace, name = metadata["namespace"], f"{metadata['name']}-{entry}"
        known = self._objects.get(TEMPLATES, {}).get(Key(namespace, template))
        if known is None:
            self._future.notes.append(f"there is no ResourceClaimTemplate {namespace}/{template}")
            return ""
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"<claims/{namespace}/{name}>",
                "annotations": {resource.limits.POD_CLAIM_NAME_ANNOTATION: entry},
                "ownerReferences": [owner],
            },
            "spec": (known.fields.get("spec") or {}).get("spec") or {},
        }
        why = allowance.admit(quota.Subject(quota.CLAIMS, claim), namespace)
        if why is not None:
            self._future.refused[f"claim {namespace}/{name}"] = why
            return ""
        self._hear(CLAIMS, Object(encode(claim)))
        return name

    def _priority(self, name: str) -> int:
        known: Mapping[Key, Object] = self._objects.get(PRIORITIES, {})
        found = (
            known.get(Key("", name))
            if name
            else next((one for one in known.values() if one.fields.get("globalDefault")), None)
        )
        return int(found.fields.get("value") or 0) if found is not None else 0


def _tolerates(pod: PodInfo, taint: core.Taint) -> bool:
    """For good: whoever tolerates it for a while leaves too."""
    return any(taint.is_tolerated_by(one) and one.toleration_seconds is None for one in pod.spec.tolerations)


def _hits(rule: resource.DeviceTaintRule, result: resource.DeviceRequestAllocationResult) -> bool:
    chosen, taint = rule.spec.device_selector, rule.spec.taint
    if chosen is not None and not (
        chosen.driver in (None, result.driver)
        and chosen.pool in (None, result.pool)
        and chosen.device in (None, result.device)
    ):
        return False
    return not any(one.lets_stay_with(taint) and one.toleration_seconds is None for one in result.tolerations)
