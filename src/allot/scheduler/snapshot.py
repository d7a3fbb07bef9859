"""The cluster as one cycle sees it.

Where it sits
    `mirror` tells it what the server said, the cycle tells it what was decided, and
    plugins ask it. It is owned by the scheduling task: nothing changes while a pod is
    being placed, and what is decided is visible to the next pod at once.

What it promises
    SNAP1  What the server accepted and what was decided and not yet written are one
           picture: a node's pods include those on their way to it, the ledger's holds
           include flights.
    SNAP2  `moved_since` names every node about which anything that a plugin may read has
           changed; heartbeats change nothing. Cost follows what changed.
    SNAP3  A fork costs what is changed on it, and its parent never notices. Preemption,
           capacity answers and what-if questions are forks.
    SNAP4  News of a claim that is older than what is known of it is ignored, that it is gone
           included: answers to writes and the watch may cross.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from allot.allocation import Features, Inventory, Ledger, Taken, taken_by
from allot.api import Gates, Object, classic, compute, numeric, resource
from allot.base import Journal, Overlay, Recent
from allot.informers import Key
from allot.numeric import Registry, load_models

from .capacity_of_nodes import CapacityOfNodes
from .claim import ClaimInfo, devices_named, is_newer
from .classes import Classes
from .compute import ComputeClasses
from .extended import ExtendedResources, in_memory_uid, owner_of
from .node import NodeInfo
from .parameters import ParameterObjects
from .pod import PodInfo
from .prospects import Prospects
from .talk import Talk

log = logging.getLogger(__name__)

GONE_MAX = 4096


class Mark(NamedTuple):
    """A moment in the life of a snapshot."""

    nodes: int
    inventory: int
    ledger: int
    capacity: int


NO_MODELS = Registry(())


class Snapshot:
    def __init__(
        self,
        features: Features,
        *,
        extended: bool = True,
        heeds_classic: bool = True,
        heeds_compute: bool = True,
        heeds_numeric: bool = True,
        models: Registry = NO_MODELS,
    ) -> None:
        """Without `extended`, no class serves an extended resource (the gate DRAExtendedResource is off);
        without `heeds_classic`, pods are placed as if they had no classic claims (their gate is off); without
        `heeds_compute`, no name stands for a class of compute resources (likewise); without `heeds_numeric`,
        claims with numeric parameters, which `models` read, are not allocated."""
        self.features = features
        self.heeds_classic = heeds_classic
        self.heeds_compute = heeds_compute
        self.heeds_numeric = heeds_numeric
        self._serves_extended = extended
        self.inventory = Inventory(features)
        self.ledger = Ledger()
        self.extended = ExtendedResources()
        self.classes: Classes[resource.DeviceClass] = Classes(lambda one: one.spec)
        self.resource_classes: Classes[classic.ResourceClass] = Classes(_said_by_resource_class)
        self.compute = ComputeClasses()
        self.exported: Counter[str] = Counter()  # raw names of compute resources, by number of nodes
        self._class_objects: Overlay[str, Object] = Overlay()  # resource classes, as they are
        self.capacity = CapacityOfNodes(models)
        self.parameters = ParameterObjects()
        self._talks: Overlay[Key, Talk] = Overlay()
        self._nodes: Overlay[str, NodeInfo] = Overlay()
        self._listed: Overlay[str, compute.listed.Entries] = Overlay()  # compute resources, beside the Node
        self._claims: Overlay[Key, ClaimInfo] = Overlay()
        self._claim_keys: Overlay[str, Key] = Overlay()  # by uid
        self.unreadable: Overlay[Key, Object] = Overlay()  # claims that nobody can use
        self._extended_claims: Overlay[str, frozenset[Key]] = Overlay()  # by pod uid
        self._places: Overlay[str, str] = Overlay()  # node by pod uid
        self._homeless: Overlay[str, dict[str, PodInfo]] = Overlay()  # pods by a node that is not known
        self._gone: Recent[str] = Recent(GONE_MAX)  # claims, by uid
        self._priorities: Counter[int] = Counter()  # how many pods that are on nodes have them
        self.prospects = Prospects()
        self._journal: Journal[str] = Journal()

    def fork(self) -> "Snapshot":
        """A copy that pays for its own changes only. Leave the parent alone while it is used."""
        child = Snapshot.__new__(Snapshot)
        child.features = self.features
        child.heeds_classic = self.heeds_classic
        child.heeds_compute = self.heeds_compute
        child.heeds_numeric = self.heeds_numeric
        child._serves_extended = self._serves_extended
        child.inventory = self.inventory.fork()
        child.ledger = self.ledger.fork()
        child.extended = self.extended.fork()
        child.classes = self.classes.fork()
        child.resource_classes = self.resource_classes.fork()
        child.compute = self.compute.fork()
        child.exported = self.exported.copy()
        child._class_objects = self._class_objects.fork()
        child.capacity = self.capacity.fork()
        child.parameters = self.parameters.fork()
        child._talks = self._talks.fork()
        child._nodes = self._nodes.fork()
        child._listed = self._listed.fork()
        child._claims = self._claims.fork()
        child._claim_keys = self._claim_keys.fork()
        child.unreadable = self.unreadable.fork()
        child._extended_claims = self._extended_claims.fork()
        child._places = self._places.fork()
        child._homeless = self._homeless.fork()
        child._gone = self._gone.fork()
        child._priorities = self._priorities.copy()
        child.prospects = self.prospects.fork()
        child._journal = Journal(self._journal.revision)
        return child

    # -- questions ------------------------------------------------------------------------------

    def node(self, name: str) -> NodeInfo | None:
        return self._nodes.get(name)

    def nodes(self) -> Iterator[NodeInfo]:
        for _, node in self._nodes.items():
            yield node

    def node_names(self) -> Iterator[str]:
        return iter(self._nodes)

    def claim(self, key: Key) -> ClaimInfo | None:
        return self._claims.get(key)

    def claim_with(self, uid: str) -> ClaimInfo | None:
        key = self._claim_keys.get(uid)
        return self._claims.get(key) if key is not None else None

    def claims(self) -> Iterator[ClaimInfo]:
        for _, claim in self._claims.items():
            yield claim

    def extended_claims_of(self, pod_uid: str) -> list[ClaimInfo]:
        """The claims that serve a pod's extended resources. There should be one at most (C5), but others
        may have left more."""
        keys = self._extended_claims.get(pod_uid)
        return [one for key in sorted(keys) if (one := self._claims.get(key)) is not None] if keys else []

    def extended_claim_of(self, pod_uid: str) -> ClaimInfo | None:
        return next(iter(self.extended_claims_of(pod_uid)), None)

    def talk_of(self, pod: PodInfo) -> Talk | None:
        """What the pod and the drivers of its claims have said; an object of another pod is none (P5)."""
        talk = self._talks.get(pod.key)
        return talk if talk is not None and talk.pod == pod.uid else None

    def talk_at(self, key: Key) -> Talk | None:
        """The one that has this name, whosoever it is."""
        return self._talks.get(key)

    def place_of(self, uid: str) -> str | None:
        """The node that a pod is on, or on its way to."""
        return self._places.get(uid)

    def pod(self, uid: str) -> PodInfo | None:
        """A pod that is on a node, or on its way to it."""
        name = self._places.get(uid)
        if name is None:
            return None
        node = self._nodes.get(name)
        return (node.pods if node is not None else self._homeless.get(name) or {}).get(uid)

    @property
    def lowest_priority(self) -> int | None:
        """Of the pods that are on nodes."""
        return min(self._priorities, default=None)

    def mark(self) -> Mark:
        return Mark(
            self._journal.revision, self.inventory.revision, self.ledger.revision, self.capacity.revision
        )

    def moved_since(self, mark: Mark) -> frozenset[str] | None:
        """Nodes about which something changed; None when it may be any (SNAP2)."""
        moved = self._journal.since(mark.nodes)
        seen = self.inventory.moved_since(mark.inventory)
        pools = self.ledger.moved_since(mark.ledger)
        offered = self.capacity.moved_since(mark.capacity)
        if moved is None or seen is None or pools is None or offered is None:
            return None
        reached: set[str] = set(offered)
        for pool in pools:
            if (only := numeric.limits.node_of(pool.name)) is not None:
                reached.add(only)  # and whatever else is published under this name
            nodes = self.inventory.nodes_of(pool)
            if nodes is None:
                return None
            reached |= nodes
        return moved | seen | reached

    # -- nodes and pods -------------------------------------------------------------------------

    def put_node(self, node: NodeInfo) -> bool:
        """A node was added or changed. False when scheduling cannot tell the difference."""
        before = self._nodes.get(node.name)
        if before is not None:
            if node.like(before):
                return False
            node = node.with_pods_of(before)
        else:
            for pod in (self._homeless.get(node.name) or {}).values():
                node = node.with_pod(pod)
            self._homeless.drop(node.name)
        self._export(before, node)
        self._set(node)
        return True

    def listed(self, name: str) -> compute.listed.Entries:
        return self._listed.get(name) or ()

    def list_compute(self, name: str, listed: compute.listed.Entries) -> bool:
        """Compute resources of a node, said beside it. False when scheduling cannot tell the difference."""
        self._listed.set(name, listed) if listed else self._listed.drop(name)
        node = self._nodes.get(name)
        return node is not None and self.put_node(node.listing(listed))

    def drop_node(self, name: str) -> None:
        """A node is gone. Its pods stay until they are gone too: it may come back."""
        node = self._nodes.get(name)
        if node is None:
            return
        if node.pods:
            self._homeless.set(name, dict(node.pods))
        self._export(node, None)
        self._nodes.drop(name)
        self._journal.add(name)

    def _export(self, before: NodeInfo | None, after: NodeInfo | None) -> None:
        if before is not None and before.compute:
            self.exported -= Counter({one.raw for one in before.compute})
        if after is not None and after.compute:
            self.exported += Counter({one.raw for one in after.compute})

    def place(self, pod: PodInfo, name: str) -> None:
        """A pod is on a node, or was just sent there."""
        before = self._places.get(pod.uid)
        if before is not None and before != name:
            self.remove(pod.uid)
        if before != name:
            self._priorities[pod.priority] += 1
        self._places.set(pod.uid, name)
        node = self._nodes.get(name)
        known = node.pods.get(pod.uid) if node is not None else None
        if node is not None and known is not None and known.requests == pod.requests:
            self._nodes.set(name, node.with_pod(pod))  # as was decided: nothing moves (SNAP2)
            return
        if node is None:
            self._homeless.set(name, {**(self._homeless.get(name) or {}), pod.uid: pod})
            return
        self._set(node.with_pod(pod))

    def remove(self, uid: str) -> bool:
        """A pod takes nothing any more. False when it took nothing."""
        name = self._places.get(uid)
        if name is None:
            return False
        self._uncount(uid)
        self._places.drop(uid)
        node = self._nodes.get(name)
        if node is not None:
            self._set(node.without_pod(uid))
        else:
            rest = {one: pod for one, pod in (self._homeless.get(name) or {}).items() if one != uid}
            self._homeless.set(name, rest) if rest else self._homeless.drop(name)
        return True

    def _uncount(self, uid: str) -> None:
        pod = self.pod(uid)
        if pod is not None:
            self._priorities[pod.priority] -= 1
            if self._priorities[pod.priority] <= 0:
                del self._priorities[pod.priority]

    def nominate(self, pod: PodInfo, name: str) -> None:
        """Room on a node is meant for a pod: those of lower priority stay away."""
        self.unnominate(pod.uid)
        self.prospects.nominate(pod, name)
        self._journal.add(name)

    def unnominate(self, uid: str) -> bool:
        """The pod has a place, or needs none. False when it was not waiting for one."""
        name = self.prospects.unnominate(uid)
        if name is not None:
            self._journal.add(name)
        return name is not None

    def _set(self, node: NodeInfo) -> None:
        self._nodes.set(node.name, node)
        self._journal.add(node.name)

    # -- claims ---------------------------------------------------------------------------------

    def put_claim(self, object: Object) -> ClaimInfo | None:
        """What the server says of a claim. None when that is old news (SNAP4)."""
        if object.uid in self._gone:
            return None
        before = self._claims.get(Key.of(object))
        latest = before.object if before is not None else self.unreadable.get(Key.of(object))
        if latest is not None and not is_newer(object, latest):
            return None
        claim = ClaimInfo.of(object)
        taken = taken_by(claim.allocation) if claim.allocation is not None else None
        self.unreadable.drop(claim.key)
        if before is not None and before.uid != claim.uid:
            self._gone.add(before.uid)
            self.ledger.release(before.uid)
            self.withdraw_claim(before)
        self.revise_claim(claim)
        if taken is not None:
            self._land(claim, taken)
            self.ledger.settle(claim.uid, taken)
        else:
            self._let_go(claim.uid)
            self.prospects.returned(claim.key)
        return claim

    def _land(self, claim: ClaimInfo, taken: tuple[Taken, ...]) -> None:
        """A claim for extended resources may be heard of before the answer to its creation is. If it has what
        is in flight for it, that flight is its own."""
        owner = owner_of(claim.view.metadata)
        if owner is None:
            return
        flight = self.ledger.hold(in_memory_uid(owner))
        if flight is not None and flight.devices == taken:
            self.ledger.rename(in_memory_uid(owner), claim.uid)

    def put_unreadable(self, object: Object) -> None:
        """A claim that cannot be read. Nobody uses it; whatever devices it names or held stay held (D1)."""
        key, hold = Key.of(object), self.ledger.hold(object.uid)
        known = self._claims.get(key)
        if known is not None:
            self.withdraw_claim(known)
        self.unreadable.set(key, object)
        held = {one.device: one for one in hold.devices} if hold is not None else {}
        self.ledger.settle(object.uid, (held | {one.device: one for one in devices_named(object)}).values())

    def drop_claim(self, key: Key, uid: str) -> bool:
        """A claim is gone. False when that was known."""
        self._gone.add(uid)
        unreadable = self.unreadable.get(key)
        if unreadable is not None and unreadable.uid == uid:
            self.unreadable.drop(key)
        known = self._claims.get(key)
        if known is not None and known.uid == uid:
            self.withdraw_claim(known)
            self.prospects.returned(key)
        held = self.ledger.hold(uid)
        self.ledger.release(uid)
        return held is not None or (known is not None and known.uid == uid)

    def revise_claim(self, claim: ClaimInfo) -> None:
        """How a claim is to be seen. What it holds is the ledger's affair, and is not touched."""
        self._claims.set(claim.key, claim)
        self._claim_keys.set(claim.uid, claim.key)
        owner = owner_of(claim.view.metadata)
        if owner is not None:
            others = self._extended_claims.get(owner) or frozenset()
            self._extended_claims.set(owner, others | {claim.key})

    def withdraw_claim(self, claim: ClaimInfo) -> None:
        """A claim is not to be seen any more. What it holds is not touched, and it may come back."""
        self._claims.drop(claim.key)
        self._claim_keys.drop(claim.uid)
        owner = owner_of(claim.view.metadata)
        if owner is None:
            return
        others = (self._extended_claims.get(owner) or frozenset()) - {claim.key}
        if others:
            self._extended_claims.set(owner, others)
        else:
            self._extended_claims.drop(owner)

    def rename_flight(self, old: str, new: str) -> None:
        """A claim that was held for before it existed has got its uid from the server. Nothing is held any
        more for one that is known to be gone (SNAP4)."""
        if new in self._gone:
            self.ledger.cancel(old)
        else:
            self.ledger.rename(old, new)

    def _let_go(self, uid: str) -> None:
        """The server says that the claim has no allocation: what is in flight is still in flight (SNAP1)."""
        hold = self.ledger.hold(uid)
        if hold is not None and hold.settled:
            self.ledger.release(uid)

    # -- classes --------------------------------------------------------------------------------

    def put_class(self, view: resource.DeviceClass) -> None:
        self.classes.put(view)
        if self._serves_extended:
            self.classes.revise(*self.extended.put(view))

    def drop_class(self, name: str) -> None:
        self.classes.drop(name)
        self.classes.revise(*self.extended.remove(name))

    def put_compute_class(self, view: compute.ResourceClass) -> None:
        self.compute.classes.put(view)
        if self._serves_extended and self.heeds_compute:
            self._bridge(view.metadata.name, view.spec.device_class_name)

    def drop_compute_class(self, name: str) -> None:
        self.compute.classes.drop(name)
        self._bridge(name, "")

    def _bridge(self, name: str, device_class: str) -> None:
        for one in (name, compute.limits.QUALIFIED + name):
            self.classes.revise(*self.extended.bridge(one, device_class))

    def put_resource_class(self, object: Object) -> None:
        self.resource_classes.put(object.view(classic.ResourceClass))
        self._class_objects.set(object.name, object)

    def drop_resource_class(self, name: str) -> None:
        self.resource_classes.drop(name)
        self._class_objects.drop(name)

    def class_object(self, name: str) -> Object:
        """A resource class that is known, whole."""
        found = self._class_objects.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def is_numeric(self, claim: ClaimInfo) -> bool:
        """Whether the class of a claim that is not allocated leaves it to the scheduler to do so."""
        known = self.resource_classes.get(claim.view.spec.resource_class_name)
        return known is not None and bool(known.numeric_parameters)

    # -- talks with drivers ---------------------------------------------------------------------

    def put_talk(self, talk: Talk) -> None:
        """Moves no node: what is said about one pod holds for no other (PLUGIN5)."""
        self._talks.set(talk.key, talk)

    def drop_talk(self, key: Key, uid: str) -> None:
        known = self._talks.get(key)
        if known is not None and known.uid == uid:
            self._talks.drop(key)


def _said_by_resource_class(view: classic.ResourceClass) -> object:
    return view.driver_name, view.suitable_nodes, view.numeric_parameters, view.parameters_ref


def snapshot_for(gates: Gates) -> Snapshot:
    """An empty one, for a cluster with these gates."""
    return Snapshot(
        Features.from_gates(gates),
        extended=gates["DRAExtendedResource"],
        heeds_classic=gates[classic.limits.GATE],
        heeds_compute=gates[compute.limits.GATE],
        heeds_numeric=gates[numeric.limits.GATE],
        models=load_models(gates, log.warning),
    )
