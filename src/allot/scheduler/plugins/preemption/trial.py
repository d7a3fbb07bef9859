"""What if these pods were gone? A fork of the snapshot, in which pods leave and come back.

A pod that leaves frees what it requests and, of its claims, those that nobody else uses: a
claim's devices come back when the last pod that has reserved it is out. What the pod for
which room is sought uses itself stays as it is.

The checks are the cycle's own, made once for the fork, so what was found out on one node
serves the next one that is like it. `prepare` brings a node to where it is heading by
itself: pods that are leaving have left, and those for whom room was made before have it.

What it promises
    T1  `fits` is what the cycle would find, were the pods that are out gone.
    T2  After `reset` the fork is as it was.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from allot.allocation import BadNodeSelector, Hold, PoolId

from ...board import first_rejection
from ...claim import ClaimInfo
from ...extended import in_memory_uid
from ...framework import Check, CycleState, FilterPlugin, Plugin, Rejection, ReservePlugin, SignPlugin
from ...node import NodeInfo
from ...pod import PodInfo, claims_of
from ...snapshot import Snapshot

FAR_MAX = 16
"""Pods on other nodes that are considered for one node, because they hold devices that it could use."""


class Use(NamedTuple):
    """A claim that holds devices, and the pods that use it."""

    claim: str
    users: frozenset[str]


class Trial:
    def __init__(self, state: CycleState, snapshot: Snapshot, plugins: Sequence[Plugin]) -> None:
        self._real = snapshot
        self._fork = snapshot.fork()
        self._pod = state.pod
        self._now = state.now
        self._plugins = plugins
        checks = self._checks_of(CycleState(state.pod, state.now))
        self._checks = (_nowhere,) if checks is None else checks
        self._removed: dict[str, tuple[PodInfo, str]] = {}
        self._released: dict[str, Hold] = {}
        self._guests: list[CycleState] = []
        self._known_uses: dict[str, tuple[Use, ...]] = {}  # by pod uid
        self._far: dict[PoolId, list[PodInfo]] = {}  # evictable holders, by pools of several nodes
        self._better: set[str] = set()  # nodes to which devices come back by themselves
        self.asked = 0
        """How often a node was checked."""
        for key in snapshot.prospects.returning:
            claim = snapshot.claim(key)
            if claim is not None:
                self._give_back(Use(claim.uid, _reservers(claim)))

    # -- asking ---------------------------------------------------------------------------------

    def fits(self, name: str) -> bool:
        self.asked += 1
        node = self._fork.node(name)
        return node is not None and first_rejection(self._checks, node) is None

    def candidates(self, name: str) -> list[PodInfo]:
        """Pods that may be evicted, and whose absence could make a difference on the node."""
        node = self._real.node(name)
        if node is None:
            return []
        near = [pod for pod in node.pods.values() if self._is_evictable(pod)]
        known = {pod.uid for pod in near}
        far = [pod for pod in self._holders_far_from(name) if pod.uid not in known]
        return near + far

    def may_free_devices(self, name: str) -> bool:
        """Whether any pod that may be evicted for the node holds devices at all."""
        return any(
            self._uses(pod, place)
            for pod in self.candidates(name)
            if (place := self._real.place_of(pod.uid)) is not None
        )

    def likeness(self, pod: PodInfo, name: str) -> Hashable:
        """Equal for candidates of a node that make the same difference to it."""
        place = self._real.place_of(pod.uid)
        if place is None:
            return None
        freed: Counter[Hashable] = Counter()
        for use in self._uses(pod, place):
            if use.users != {pod.uid}:
                freed[use.claim] += 1
            else:
                freed.update(self._kinds(use.claim, name))
        return place, frozenset(pod.requests.items()), frozenset(freed.items())

    # -- changing -------------------------------------------------------------------------------

    def evict(self, pod: PodInfo) -> None:
        name = self._fork.place_of(pod.uid)
        if name is None:
            return
        self._removed[pod.uid] = (pod, name)
        self._fork.remove(pod.uid)
        for use in self._uses(pod, name):
            if all(self._is_out(user) for user in use.users):
                self._release(use.claim)

    def restore(self, pod: PodInfo) -> None:
        _, name = self._removed.pop(pod.uid)
        for use in self._uses(pod, name):
            self._hold_again(use.claim)
        self._fork.place(pod, name)

    def prepare(self, name: str) -> bool:
        """Make the node what it will be without our doing. False when it is that already."""
        for pool in self._shared_pools(name):
            self._look_into(pool)
        node = self._real.node(name)
        for pod in node.pods.values() if node is not None else ():
            if self._real.prospects.is_leaving(pod, self._now):
                self.evict(pod)
        for pod in self._real.prospects.nominees(name):
            if pod.uid != self._pod.uid and pod.priority >= self._pod.priority:
                self._welcome(pod, name)
        return bool(self._removed) or name in self._better

    def reset(self) -> None:
        for state in reversed(self._guests):
            for plugin in self._plugins:
                if isinstance(plugin, ReservePlugin):
                    plugin.unreserve(state, self._fork)
            self._fork.remove(state.pod.uid)
        self._guests.clear()
        for claim in list(self._released):
            self._hold_again(claim)
        for pod, name in self._removed.values():
            self._fork.place(pod, name)
        self._removed.clear()

    def _welcome(self, pod: PodInfo, name: str) -> None:
        """A pod that was nominated earlier takes what it needs, as far as that is there."""
        state = CycleState(pod, self._now)
        node = self._fork.node(name)
        if node is None or self._checks_of(state) is None:
            return
        self._guests.append(state)
        for plugin in self._plugins:
            if isinstance(plugin, ReservePlugin):
                plugin.reserve(state, node, self._fork)
        self._fork.place(pod, name)

    def _release(self, claim: str) -> None:
        hold = self._fork.ledger.hold(claim)
        if hold is not None and claim not in self._own_claims:
            self._released[claim] = hold
            self._fork.ledger.release(claim)

    def _hold_again(self, claim: str) -> None:
        hold = self._released.pop(claim, None)
        if hold is None:
            return
        if hold.settled:
            self._fork.ledger.settle(claim, hold.devices)
        else:
            self._fork.ledger.fly(claim, hold.devices)  # what is in flight can still be given up (T2)

    def _kinds(self, claim: str, name: str) -> Iterator[Hashable]:
        """The devices of a claim, as the node sees them, without their names."""
        hold, node = self._real.ledger.hold(claim), self._real.node(name)
        try:
            view = self._real.inventory.view(node.place) if node is not None else None
        except BadNodeSelector:
            view = None
        for taken in hold.devices if hold is not None else ():
            at = view.index.get(taken.device) if view is not None else None
            if view is None or at is None:
                yield taken.device
            else:
                consumed = frozenset(taken.consumed.items())
                yield taken.device.pool_id, view.devices[at].kind, taken.share is None, consumed

    # -- who uses what --------------------------------------------------------------------------

    def _uses(self, pod: PodInfo, name: str) -> tuple[Use, ...]:
        """The claims of a pod on a node that hold devices."""
        found = self._known_uses.get(pod.uid)
        if found is None:
            found = self._known_uses[pod.uid] = tuple(self._read_uses(pod, name))
        return found

    def _read_uses(self, pod: PodInfo, name: str) -> Iterator[Use]:
        for key in claims_of(pod):
            claim = self._real.claim(key)
            if claim is not None and self._holds(claim.uid):
                yield Use(claim.uid, _reservers(claim) | self._sharers(claim, name) | {pod.uid})
        extended = self._real.extended_claim_of(pod.uid)
        if extended is not None and self._holds(extended.uid):
            yield Use(extended.uid, _reservers(extended) | {pod.uid})  # others may be listed by hand (C12)
        if self._holds(in_memory_uid(pod.uid)):
            yield Use(in_memory_uid(pod.uid), frozenset({pod.uid}))

    def _sharers(self, claim: ClaimInfo, name: str) -> frozenset[str]:
        """Pods on the node that use a claim, also those whose reservation is not written yet."""
        node = self._real.node(name)
        pods: Iterable[PodInfo] = node.pods.values() if node is not None else ()
        return frozenset(pod.uid for pod in pods if pod.spec.resource_claims and claim.key in claims_of(pod))

    # -- devices that several nodes reach -------------------------------------------------------

    def _shared_pools(self, name: str) -> Iterator[PoolId]:
        inventory = self._real.inventory
        return (pool for pool in inventory.pool_ids(name) if inventory.nodes_of(pool) != frozenset({name}))

    def _look_into(self, pool: PoolId) -> None:
        """What comes back to the pool by itself, and who could be evicted for the rest. Once a pool."""
        if pool in self._far:
            return
        found = self._far[pool] = []
        usages = self._real.ledger.usage(pool).values()
        for uid in sorted({uid for usage in usages for uid in (*usage.owners, *usage.sharers)}):
            claim = self._real.claim_with(uid)
            if claim is None:
                continue
            users = _reservers(claim)
            if not self._give_back(Use(uid, users)):
                staying = [user for user in users if not self._is_out(user) and not self._is_leaving(user)]
                pods = [pod for user in staying if (pod := self._real.pod(user)) and self._is_evictable(pod)]
                found.extend(pods if len(pods) == len(staying) else ())

    def _give_back(self, use: Use) -> bool:
        """Free a claim for good, if all who use it have left or are leaving."""
        hold = self._fork.ledger.hold(use.claim)
        if hold is None or not use.users or use.claim in self._own_claims:
            return False
        if not all(self._is_out(user) or self._is_leaving(user) for user in use.users):
            return False
        self._fork.ledger.release(use.claim)
        for pool in {taken.device.pool_id for taken in hold.devices}:
            nodes = self._real.inventory.nodes_of(pool)
            self._better.update(self._real.node_names() if nodes is None else nodes)
        return True

    def _holders_far_from(self, name: str) -> list[PodInfo]:
        """Pods on other nodes with devices that are within reach of this one, the least important first."""
        found: dict[str, PodInfo] = {}
        for pool in self._shared_pools(name):
            self._look_into(pool)
            for pod in self._far[pool]:
                if self._real.place_of(pod.uid) != name:
                    found[pod.uid] = pod
        return sorted(found.values(), key=lambda pod: (pod.priority, pod.uid))[:FAR_MAX]

    # -- who is who -----------------------------------------------------------------------------

    def _holds(self, claim: str) -> bool:
        return self._real.ledger.hold(claim) is not None

    @cached_property
    def _own_claims(self) -> frozenset[str]:
        known = (self._real.claim(key) for key in claims_of(self._pod))
        return frozenset(claim.uid for claim in known if claim is not None)

    def _is_evictable(self, pod: PodInfo) -> bool:
        return (
            pod.priority < self._pod.priority
            and not pod.is_deleting
            and not self._real.prospects.is_leaving(pod, self._now)
        )

    def _is_out(self, uid: str) -> bool:
        return uid in self._removed or self._real.prospects.has_left(uid)

    def _is_leaving(self, uid: str) -> bool:
        pod = self._real.pod(uid)
        return pod is not None and self._real.prospects.is_leaving(pod, self._now)

    # -- the cycle's checks ---------------------------------------------------------------------

    def _checks_of(self, state: CycleState) -> Sequence[Check] | None:
        """None where a plugin cannot even read the pod."""
        signs = (one for one in self._plugins if isinstance(one, SignPlugin))
        if any(isinstance(one.sign(state, self._fork), Rejection) for one in signs):
            return None
        filters = (one for one in self._plugins if isinstance(one, FilterPlugin))
        made = (one.pre_filter(state, self._fork) for one in filters)
        return tuple(one.check for one in made if one is not None)


def _reservers(claim: ClaimInfo) -> frozenset[str]:
    return frozenset(one.uid for one in claim.reserved_for)


def _nowhere(node: NodeInfo) -> Rejection:
    return Rejection("", "the pod cannot be read")
