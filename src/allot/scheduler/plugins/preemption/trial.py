"""Would the pod fit, were these pods gone? A simulation with what preemption knows of the cluster.

`prepare` brings a node to where it is heading by itself: pods that are leaving have left, those
for whom room was made before have it, and claims whose last user is leaving have given back
their devices. Then candidates are evicted and restored (`scheduler.simulation`, WHATIF1 and WHATIF2).
What the pod for which room is sought uses itself stays as it is.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from allot.allocation import BadNodeSelector, PoolId

from ...framework import CycleState, Plugin
from ...pod import PodInfo
from ...simulation import Simulation, reservers
from ...snapshot import Snapshot

FAR_MAX = 16
"""Pods on other nodes that are considered for one node, because they hold devices that it could use."""


class Trial:
    def __init__(self, state: CycleState, snapshot: Snapshot, plugins: Sequence[Plugin]) -> None:
        self._real = snapshot
        self._pod = state.pod
        self._now = state.now
        own = (snapshot.claim(key) for key in state.pod.claims)
        self._own_claims = frozenset(claim.uid for claim in own if claim is not None)
        self.simulation = Simulation(snapshot, plugins, state.now, keeps=self._own_claims)
        self._far: dict[PoolId, list[PodInfo]] = {}  # evictable holders, by pools of several nodes
        self._better: set[str] = set()  # nodes to which devices come back by themselves
        self.asked = 0
        """How often a node was checked."""
        for key in snapshot.prospects.returning:
            claim = snapshot.claim(key)
            if claim is not None:
                self._give_back(claim.uid, reservers(claim))

    # -- asking ---------------------------------------------------------------------------------

    def fits(self, name: str) -> bool:
        self.asked += 1
        return self.simulation.fits(self._pod, (name,)) == name

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
            self.simulation.uses(pod, place)
            for pod in self.candidates(name)
            if (place := self._real.place_of(pod.uid)) is not None
        )

    def likeness(self, pod: PodInfo, name: str) -> Hashable:
        """Equal for candidates of a node that make the same difference to it."""
        place = self._real.place_of(pod.uid)
        if place is None:
            return None
        freed: Counter[Hashable] = Counter()
        for use in self.simulation.uses(pod, place):
            if use.users != {pod.uid}:
                freed[use.claim] += 1
            else:
                freed.update(self._kinds(use.claim, name))
        return place, frozenset(pod.requests.items()), frozenset(freed.items())

    # -- changing -------------------------------------------------------------------------------

    def evict(self, pod: PodInfo) -> None:
        self.simulation.evict(pod)

    def restore(self, pod: PodInfo) -> None:
        self.simulation.restore(pod)

    def reset(self) -> None:
        self.simulation.reset()

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
                self.simulation.squeeze_in(pod, name)  # room was made for it before
        return self.simulation.has_evicted or name in self._better

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
            users = reservers(claim)
            if not self._give_back(uid, users):
                staying = [user for user in users if not self._is_out(user) and not self._is_leaving(user)]
                pods = [pod for user in staying if (pod := self._real.pod(user)) and self._is_evictable(pod)]
                found.extend(pods if len(pods) == len(staying) else ())

    def _give_back(self, claim: str, users: frozenset[str]) -> bool:
        """Free a claim for good, if all who use it have left or are leaving."""
        hold = self.simulation.snapshot.ledger.hold(claim)
        if hold is None or not users or claim in self._own_claims:
            return False
        if not all(self._is_out(user) or self._is_leaving(user) for user in users):
            return False
        self.simulation.give_back(claim)
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

    def _is_evictable(self, pod: PodInfo) -> bool:
        return (
            pod.priority < self._pod.priority
            and not pod.is_deleting
            and not self._real.prospects.is_leaving(pod, self._now)
        )

    def _is_out(self, uid: str) -> bool:
        return self.simulation.is_out(uid)

    def _is_leaving(self, uid: str) -> bool:
        pod = self._real.pod(uid)
        return pod is not None and self._real.prospects.is_leaving(pod, self._now)
