"""The plugins that the cycle knows."""

from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass

from allot.allocation import LEAST_WASTE, Policy
from allot.api import resource
from allot.base import Ids

from ...claim import ClaimInfo
from ...framework import Checks, CycleState, Event, Rate, Rejection, Tier
from ...node import NodeInfo
from ...pod import PodInfo
from ...reach import is_reachable
from ...settings import BINDING_TIMEOUT_S
from ...snapshot import Snapshot
from ...writes import Deallocate, DeleteClaim, Remedy, Write
from .asking import NO_DEVICES, DeviceAsk, Missing, read_ask, resolve
from .checking import NAME, Asked, DeviceCheck, unusable
from .reserving import reserve, unreserve

BUDGET_STEPS = 5_000
"""Of the search on one node: some tens of milliseconds at most, so that no node holds up a pod."""

THOROUGH_STEPS = 100_000
"""Where nothing else fits."""

USERS_MAX = resource.limits.RESERVED_FOR_MAX
USERS_TOLD = 4
ALTERNATIVES_MAX = 8
WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class Read:
    """What the plugin knows of the pod in this cycle."""

    ask: DeviceAsk
    unusable: frozenset[str]


class DynamicResources:
    name = NAME
    events = frozenset(
        {
            Event.NODE_ADDED,
            Event.NODE_CHANGED,
            Event.POD_CHANGED,
            Event.CLAIM_ADDED,
            Event.CLAIM_CHANGED,
            Event.DEVICES_FREED,
            Event.USERS_LEFT,
            Event.SLICE_CHANGED,
            Event.CLASS_CHANGED,
            Event.TAINT_RULE_CHANGED,
        }
    )
    tier = Tier.WISH

    def __init__(
        self,
        ids: Ids,
        policy: Policy = LEAST_WASTE,
        *,
        budget: int = BUDGET_STEPS,
        binding_timeout_s: float = BINDING_TIMEOUT_S,
    ) -> None:
        self._ids = ids
        self._policy = policy
        self._budget = budget
        self._binding_timeout_s = binding_timeout_s

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> str | None:
        if snapshot.extended_claim_of(pod.uid) is not None:
            return None  # what an earlier attempt left is removed, whatever else is missing (C5)
        missing = (one for one in resolve(pod, snapshot) if isinstance(one, Missing))
        return next((one.why for one in missing), None)

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable | Rejection:
        ask = read_ask(state.pod, snapshot)
        if isinstance(ask, Missing):
            return Rejection(NAME, ask.why)
        late = unusable(ask.held, state.now, self._binding_timeout_s) if ask.held else frozenset()
        state.read[NAME] = Read(ask, late)
        if ask.leftover is not None:
            return Rejection(NAME, _stays(ask.leftover, state.pod))
        full = next((one for one in ask.allocated if _is_full(one, state.pod)), None)
        if full is not None:
            why = f'resourceclaim "{full.key.name}" has {USERS_MAX} users, the most there can be'
            return Rejection(NAME, why)
        return ask.signature

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        read: Read = state.read[NAME]
        if read.ask is NO_DEVICES:
            return None
        asked = Asked(read.ask, state.pod, snapshot)
        budget = THOROUGH_STEPS if state.thorough else self._budget
        check = DeviceCheck(read.ask, asked, snapshot, self._policy, budget, read.unusable)
        state.made[NAME] = check
        return check.checks()

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate | None:
        """How far down its lists of alternatives the pod would have to go."""
        read: Read = state.read[NAME]
        check: DeviceCheck | None = state.made.get(NAME)
        if check is None or not read.ask.pending:
            return None
        lists = sum(
            1 for claim in read.ask.pending for one in claim.view.spec.devices.requests if one.first_available
        )
        if not lists:
            return None
        scale = WEIGHT * 100 / (ALTERNATIVES_MAX * lists)
        found = check.found

        def rate(node: NodeInfo) -> float:
            outline = found.get(node.name)
            return scale * outline.preference if outline is not None else 0.0

        return rate

    def post_filter(
        self, state: CycleState, snapshot: Snapshot, rejections: Sequence[tuple[str, Rejection]]
    ) -> Generator[None, None, Remedy | None]:
        """Before anybody is evicted: what is held for nobody, in the wrong place."""
        yield
        read: Read | None = state.read.get(NAME)
        if read is None:
            return None
        stale = read.ask.leftover or read.ask.earlier
        if stale is not None and not stale.users_besides(state.pod.uid):  # C12
            return DeleteClaim(stale)
        for claim in read.ask.allocated:
            if _is_idle(claim, state.pod) and self._is_in_the_way(claim, read, snapshot):
                return Deallocate(claim)
        return None

    def reserve(self, state: CycleState, node: NodeInfo, snapshot: Snapshot) -> tuple[Write, ...] | Rejection:
        read: Read = state.read[NAME]
        if read.ask is NO_DEVICES:
            return ()
        return reserve(state.pod, read.ask, state.made[NAME], node, snapshot, self._ids)

    def unreserve(self, state: CycleState, snapshot: Snapshot) -> None:
        read: Read | None = state.read.get(NAME)
        if read is not None:
            unreserve(state.pod, read.ask, snapshot)

    def _is_in_the_way(self, claim: ClaimInfo, read: Read, snapshot: Snapshot) -> bool:
        """Whether the pod could go elsewhere if the claim were allocated anew."""
        return claim.uid in read.unusable or any(
            not is_reachable(claim, node.place) for node in snapshot.nodes()
        )


def _stays(leftover: ClaimInfo, pod: PodInfo) -> str:
    others = leftover.users_besides(pod.uid)
    if not others:
        return "the claim of an earlier attempt must be removed first"
    users = ", ".join(others[:USERS_TOLD]) + (", ..." if len(others) > USERS_TOLD else "")
    return f'resourceclaim "{leftover.key.name}" of an earlier attempt is also used by {users}, and stays'


def _is_idle(claim: ClaimInfo, pod: PodInfo) -> bool:
    return all(one.uid == pod.uid for one in claim.reserved_for)


def _is_full(claim: ClaimInfo, pod: PodInfo) -> bool:
    return len(claim.reserved_for) >= USERS_MAX and not claim.is_reserved_for(pod.uid)


class DeviceFit:
    """Spend devices where that leaves most for others, as the policy counts it."""

    name = "DeviceFit"
    tier = Tier.DEVICES

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        return None  # what DynamicResources signs says it all

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate | None:
        read: Read = state.read[NAME]
        check: DeviceCheck | None = state.made.get(NAME)
        if check is None or not read.ask.wants_devices:
            return None
        found = check.found

        def rate(node: NodeInfo) -> tuple[float, ...]:
            outline = found.get(node.name)
            return outline.cost if outline is not None else ()

        return rate
