"""What if? A fork of the snapshot on which pods come and go, and nodes too, decided by the real plugins.

Where it sits
    Preemption asks what would fit were some pods gone, capacity answers how many more would.
    Both are deeds on a fork, followed by the question that a cycle asks. Nothing is written,
    and nobody is told: what `reserve` says must be written is done to the fork instead.

What a deed means
    bind    the pod is on the node: its claims have devices there and list it as a user
    evict   the pod is gone: of its claims, those that nobody else uses have no devices
    nodes   one is added with what its drivers publish, or goes with it and with its pods

What it promises
    WHATIF1  `fits` is what the cycle would find in a cluster to which the deeds had really happened.
    WHATIF2  After `reset` the fork is as it was.
    WHATIF3  The snapshot that it began with never notices.

Why checks are made once
    A check is made for a signature and reads the fork when it is asked (PLUGIN2). So what was found
    out on one node serves the next one that is like it, through all that happens in between.
    Those on the boards of a running scheduler read its own snapshot and are of no use here.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple, assert_never

from allot.allocation import Hold, taken_by
from allot.api import Object, resource
from allot.base import require

from .board import first_rejection
from .capacity_of_nodes import SOURCE
from .claim import ClaimInfo
from .cycle import Cycle, Outcome, Unplaced
from .extended import in_memory_uid, owner_of
from .framework import Check, CycleState, Plugin, Rejection, ReservePlugin, offering
from .node import NodeInfo
from .pod import PodInfo
from .snapshot import Snapshot
from .writes import (
    AllocateClaim,
    CreateExtendedClaim,
    EndTalk,
    KeepExtendedClaim,
    Negotiate,
    ReserveClaim,
    TakeCompute,
    Write,
    as_placed,
)

Rejections = Mapping[str, Rejection]
"""Why nodes do not take a pod, by name."""


class Use(NamedTuple):
    """A claim that holds devices, and the pods that use it."""

    claim: str
    users: frozenset[str]


class _Whole(NamedTuple):
    """A claim as it is while nobody is evicted."""

    claim: ClaimInfo | None  # None: what is held for extended resources, before there is a claim
    hold: Hold


class _Known(NamedTuple):
    """What was made for a signature."""

    checks: Sequence[Check]
    made: dict[str, Any]  # what the plugins keep for it


class _Asked(NamedTuple):
    state: CycleState
    checks: Sequence[Check]


class Simulation:
    def __init__(
        self, snapshot: Snapshot, plugins: Sequence[Plugin], now: datetime, *, keeps: Collection[str] = ()
    ) -> None:
        """`keeps` are claims, by uid, that have their devices whoever leaves. Leave `snapshot` alone
        while the simulation is used."""
        self._real = snapshot
        self._now = now
        self._keeps = frozenset(keeps)
        self._plugins = plugins
        self._reserves = offering(plugins, ReservePlugin)
        self._given_back: dict[str, None] = {}  # claims, by uid
        self._added: dict[str, ClaimInfo] = {}
        self._begin()

    def _begin(self) -> None:
        self.snapshot = self._real.fork()
        """The fork. Read it; change it by deeds alone."""
        self._cycle = Cycle(self._plugins)  # its boards are made here, and read this fork
        self._known: dict[Hashable, _Known] = {}  # by signature
        self._out: dict[str, tuple[PodInfo, str]] = {}  # evicted, with their nodes, by uid
        self._whole: dict[str, _Whole] = {}  # claims that evicted pods used, by uid
        self._uses: dict[str, tuple[Use, ...]] = {}  # by pod uid
        self._pods_before: dict[str, tuple[PodInfo, str | None]] = {}  # of those that moved, by uid
        self._claims_before: dict[str, ClaimInfo] = {}  # of those that changed, by uid
        self._holds_before: dict[str, Hold | None] = {}
        self.negotiated: dict[str, frozenset[str]] = {}
        """Drivers whose word is needed for where pods are, by uid of the pod."""
        self._has_other_nodes = False
        for claim in self._added.values():
            self.snapshot.revise_claim(claim)
        for uid in self._given_back:
            self._free(self.snapshot.claim_with(uid), uid)

    # -- asking ---------------------------------------------------------------------------------

    def fits(self, pod: PodInfo, nodes: Iterable[str]) -> str | Rejections:
        """The first of the nodes that takes the pod, or why none of them does."""
        asked = self._asked(pod)
        found: dict[str, Rejection] = {}
        for name in nodes:
            why = asked if isinstance(asked, Rejection) else self._look(asked, name)
            if why is None:
                return name
            found[name] = why
        return found

    def gate(self, pod: PodInfo) -> str | None:
        """Why the pod could not even be tried."""
        return self._cycle.gate(pod, self.snapshot)

    def signature(self, pod: PodInfo) -> Hashable | Rejection:
        """All that decides where the pod fits; or why it fits nowhere."""
        return self._cycle.sign(CycleState(pod, self._now), self.snapshot)

    def fork(self) -> "Simulation":
        """What else, if all this had happened? Leave this one alone while that one is used."""
        return Simulation(self.snapshot, self._plugins, self._now, keeps=self._keeps)

    def is_out(self, uid: str) -> bool:
        """Whether a pod that may be listed as a user somewhere is no more."""
        return uid in self._out or self._real.prospects.has_left(uid)

    @property
    def has_evicted(self) -> bool:
        return bool(self._out)

    def uses(self, pod: PodInfo, name: str) -> tuple[Use, ...]:
        """The claims of a pod on a node that hold devices, and all who use them, evicted ones included."""
        found = self._uses.get(pod.uid)
        if found is None:
            found = self._uses[pod.uid] = tuple(self._read_uses(pod, name))
        return found

    # -- pods -----------------------------------------------------------------------------------

    def bind(self, pod: PodInfo, name: str) -> Rejection | None:
        """The pod goes to the node, if it fits: otherwise nothing has changed, and this is why."""
        asked = self._asked(pod)
        if isinstance(asked, Rejection):
            return asked
        rejection = self._look(asked, name)  # also brings up to date what the plugins know of the node
        if rejection is not None:
            return rejection
        node = self.snapshot.node(name)
        assert node is not None  # it was looked at
        writes = self._cycle.reserve(asked.state, node, self.snapshot)
        if isinstance(writes, Rejection):
            return writes
        self._place(pod, name, writes)
        return None

    def place(self, pod: PodInfo) -> str | Unplaced:
        """The pod goes where a cycle would send it: the best of all nodes. Or what a cycle would find
        instead, of which nothing has been done."""
        cycle = self._cycle.schedule_one(CycleState(pod, self._now), self.snapshot)
        try:
            while True:
                aside = next(cycle)
                if aside is not None:
                    aside()
        except StopIteration as end:
            outcome: Outcome = end.value
        if isinstance(outcome, Unplaced):
            return outcome
        self._settle(pod, outcome.writes)
        return outcome.node

    def squeeze_in(self, pod: PodInfo, name: str) -> None:
        """The pod goes to the node whatever the checks say, and takes what there is of what it needs.

        Nothing happens where it cannot even be read, or is on its way already.
        """
        node = self.snapshot.node(name)
        if node is None or self.snapshot.place_of(pod.uid) is not None:
            return
        asked = self._asked(pod, afresh=True)
        if isinstance(asked, Rejection):
            return
        writes: tuple[Write, ...] = ()
        for plugin in self._reserves:
            held = plugin.reserve(asked.state, node, self.snapshot)
            writes += () if isinstance(held, Rejection) else held
        self._place(pod, name, writes)

    def evict(self, pod: PodInfo) -> None:
        """The pod leaves its node. Nothing happens where it is on none."""
        name = self.snapshot.place_of(pod.uid)
        if name is None:
            return
        uses = self.uses(pod, name)
        self._pods_before.setdefault(pod.uid, (pod, name))
        self._out[pod.uid] = (pod, name)
        self.negotiated.pop(pod.uid, None)
        self.snapshot.remove(pod.uid)
        for use in uses:
            self._recount(use)

    def restore(self, pod: PodInfo) -> None:
        """An evicted pod is back where it was, with what it had: nobody must have taken it meanwhile."""
        _, name = self._out.pop(pod.uid)
        for use in self.uses(pod, name):
            self._recount(use)
        self.snapshot.place(pod, name)

    def give_back(self, claim: str) -> None:
        """A claim, by uid, has no devices any more. It stays so: `reset` is about pods and nodes."""
        self._given_back[claim] = None
        for known in (self._whole, self._claims_before, self._holds_before):
            known.pop(claim, None)
        self._free(self.snapshot.claim_with(claim), claim)

    def add_claim(self, claim: ClaimInfo) -> None:
        """A claim that is not there yet, without devices. It stays: `reset` is about pods and nodes."""
        self._added[claim.uid] = claim
        self.snapshot.revise_claim(claim)

    # -- nodes ----------------------------------------------------------------------------------

    def add_node(self, node: Object, slices: Sequence[Object] = ()) -> None:
        """A node that is not there yet, with what is published for it, and the numeric capacity of the node
        that its annotation names. Raises BadSlice, or ValueError where something of that name is there."""
        published = [one.view(resource.ResourceSlice) for one in slices]
        if self.snapshot.node(node.name) is not None:
            raise ValueError(f"node {node.name} is there already")
        for one in published:
            if one.metadata.name in self.snapshot.inventory:
                raise ValueError(f"slice {one.metadata.name} is there already")
        self._has_other_nodes = True
        for one in published:
            self.snapshot.inventory.apply(one)
        self.snapshot.capacity.imagine(node.name, (node.metadata.annotations or {}).get(SOURCE, ""))
        self.snapshot.put_node(NodeInfo.of(node))

    def change_node(self, node: NodeInfo) -> None:
        """A node has other labels, taints or capacity. Its pods stay."""
        self._has_other_nodes = True
        self.snapshot.put_node(node)

    def remove_node(self, name: str) -> tuple[PodInfo, ...]:
        """The node is gone, with what is published for it alone. Its pods are evicted: these."""
        node = self.snapshot.node(name)
        if node is None:
            return ()
        self._has_other_nodes = True
        pods = tuple(node.pods.values())
        for pod in pods:
            self.evict(pod)
        for key in self.snapshot.inventory.published_for(name):
            self.snapshot.inventory.remove(key)
        self.snapshot.capacity.leave(name)
        self.snapshot.drop_node(name)
        return pods

    # -- back to the beginning ------------------------------------------------------------------

    def reset(self) -> None:
        """Nothing has happened (WHATIF2). What was found out about nodes that did not move stays known."""
        if self._has_other_nodes:
            self._begin()
            return
        for uid in self._pods_before:
            self.snapshot.remove(uid)
        for uid in self._holds_before:
            self.snapshot.ledger.release(uid)
        for claim in self._claims_before.values():
            self.snapshot.revise_claim(claim)
        for uid, hold in self._holds_before.items():
            if hold is not None:
                self._hold(uid, hold)
        for pod, name in self._pods_before.values():
            if name is not None:
                self.snapshot.place(pod, name)
        self.negotiated.clear()
        self._out.clear()
        self._whole.clear()
        self._uses.clear()
        self._pods_before.clear()
        self._claims_before.clear()
        self._holds_before.clear()

    # -- the question of a cycle ----------------------------------------------------------------

    def _asked(self, pod: PodInfo, *, afresh: bool = False) -> _Asked | Rejection:
        """The checks of a pod: those of an earlier one with the same signature, unless made `afresh`."""
        state = CycleState(pod, self._now)
        signature = self._cycle.sign(state, self.snapshot)
        if isinstance(signature, Rejection):
            return signature
        known = None if afresh else self._known.get(signature)
        if known is None:
            checks, _ = self._cycle.checks(state, self.snapshot)
            known = _Known(checks, state.made)
            if not afresh:
                self._known[signature] = known
        state.made = known.made
        return _Asked(state, known.checks)

    def _look(self, asked: _Asked, name: str) -> Rejection | None:
        node = self.snapshot.node(name)
        return NO_NODE if node is None else first_rejection(asked.checks, node)

    # -- what a binding would write, done to the fork -------------------------------------------

    def _place(self, pod: PodInfo, name: str, writes: Iterable[Write]) -> None:
        before = self.snapshot.place_of(pod.uid)
        require(before is None, f"WHATIF1: pod {pod.key} goes to node {name} and is on node {before}")
        writes = tuple(writes)
        self._settle(pod, writes)
        self.snapshot.place(as_placed(pod, writes), name)

    def _settle(self, pod: PodInfo, writes: Iterable[Write]) -> None:
        for write in writes:
            self._carry_out(write, pod)
        self._pods_before.setdefault(pod.uid, (pod, None))
        self._out.pop(pod.uid, None)
        self._uses = {uid: self._uses[uid] for uid in self._out if uid in self._uses}  # the rest is as it was

    def _carry_out(self, write: Write, pod: PodInfo) -> None:
        match write:
            case AllocateClaim(claim, allocation):
                self._claims_before.setdefault(claim.uid, claim)
                self._holds_before.setdefault(claim.uid, None)
                self._whole.pop(claim.uid, None)
                self.snapshot.revise_claim(claim.allocated(allocation).used_by(pod.uid, pod.key.name))
                self.snapshot.ledger.settle(claim.uid, taken_by(allocation))
            case ReserveClaim(claim):
                self._claims_before.setdefault(claim.uid, claim)
                self.snapshot.revise_claim(claim.used_by(pod.uid, pod.key.name))
                whole = self._whole.get(claim.uid)
                if whole is not None and whole.claim is not None:
                    listed = whole.claim.used_by(pod.uid, pod.key.name)
                    self._whole[claim.uid] = _Whole(listed, whole.hold)
            case CreateExtendedClaim(uid):
                self._holds_before.setdefault(uid, None)  # held until there is a claim: counted alike
            case TakeCompute() | KeepExtendedClaim() | EndTalk():
                pass  # it is the pod's already, or will be where it is placed
            case Negotiate(wants):
                self.negotiated[pod.uid] = frozenset(want.driver for want in wants)
                for want in wants:  # what a driver would say nobody knows: it is held for the pod
                    self._holds_before.setdefault(want.claim.uid, None)
            case _:
                assert_never(write)

    # -- who uses what --------------------------------------------------------------------------

    def _recount(self, use: Use) -> None:
        """A user has left a claim, or is back."""
        whole = self._whole.get(use.claim) or self._as_it_is(use.claim)
        if whole is None:
            return  # it has been given back, or is somebody else's now
        users = use.users if whole.claim is None else use.users | reservers(whole.claim)
        if use.claim not in self._keeps and all(self.is_out(user) for user in users):
            self._free(whole.claim, use.claim)
            return
        if whole.claim is not None:
            self.snapshot.revise_claim(whole.claim.without_users(self._out))
        if self.snapshot.ledger.hold(use.claim) is None:
            self._hold(use.claim, whole.hold)

    def _as_it_is(self, uid: str) -> _Whole | None:
        hold = self.snapshot.ledger.hold(uid)
        if hold is None:
            return None
        claim = self.snapshot.claim_with(uid)
        if claim is not None:
            self._claims_before.setdefault(uid, claim)
        self._holds_before.setdefault(uid, hold)
        whole = self._whole[uid] = _Whole(claim, hold)
        return whole

    def _free(self, claim: ClaimInfo | None, uid: str) -> None:
        """Nobody uses it, so its devices are free; what was made for extended resources goes altogether."""
        if claim is not None and owner_of(claim.view.metadata) is not None:
            self.snapshot.withdraw_claim(claim)
        elif claim is not None:
            self.snapshot.revise_claim(claim.unused())
        self.snapshot.ledger.release(uid)

    def _hold(self, uid: str, hold: Hold) -> None:
        if hold.settled:
            self.snapshot.ledger.settle(uid, hold.devices)
        else:
            self.snapshot.ledger.fly(uid, hold.devices)  # what is in flight can still be given up (WHATIF2)

    def _read_uses(self, pod: PodInfo, name: str) -> Iterator[Use]:
        for key in pod.claims:
            claim = self._unreduced(self.snapshot.claim(key))
            if claim is not None and self._holds(claim.uid):
                yield Use(claim.uid, reservers(claim) | self._sharers(claim, name) | {pod.uid})
        extended = self._unreduced(self.snapshot.extended_claim_of(pod.uid))
        if extended is not None and self._holds(extended.uid):
            yield Use(extended.uid, reservers(extended) | {pod.uid})  # others may be listed by hand (C12)
        if self._holds(in_memory_uid(pod.uid)):
            yield Use(in_memory_uid(pod.uid), frozenset({pod.uid}))

    def _unreduced(self, claim: ClaimInfo | None) -> ClaimInfo | None:
        """With those among its users who are evicted: they may come back."""
        whole = self._whole.get(claim.uid) if claim is not None else None
        return claim if whole is None else whole.claim

    def _holds(self, claim: str) -> bool:
        return claim in self._whole or self.snapshot.ledger.hold(claim) is not None

    def _sharers(self, claim: ClaimInfo, name: str) -> frozenset[str]:
        """Pods on the node that use a claim, also those whose reservation is not written yet."""
        node = self.snapshot.node(name)
        here: Iterable[PodInfo] = node.pods.values() if node is not None else ()
        evicted = (pod for pod, place in self._out.values() if place == name)
        return frozenset(
            pod.uid for pod in chain(here, evicted) if pod.spec.resource_claims and claim.key in pod.claims
        )


NO_NODE = Rejection("", "there is no such node")


def reservers(claim: ClaimInfo) -> frozenset[str]:
    return frozenset(one.uid for one in claim.reserved_for)
