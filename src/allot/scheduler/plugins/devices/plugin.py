"""The plugins that the cycle knows."""

from collections.abc import Callable, Hashable, Iterable, Mapping

from allot.allocation import LEAST_WASTE, Explanation, Policy
from allot.base import Ids

from ...framework import Checks, CycleState, Event, Rate, Rejection, Sentence, Tier
from ...node import NodeInfo
from ...snapshot import Snapshot
from ...writes import Write
from ..claims import claims_in, stays
from .asking import NO_DEVICES, DeviceAsk, read_ask
from .checking import NAME, Asked, DeviceCheck
from .reserving import reserve, unreserve
from .telling import explained, tell

BUDGET_STEPS = 5_000
"""Of the search on one node: some tens of milliseconds at most, so that no node holds up a pod."""

THOROUGH_STEPS = 100_000
"""Where nothing else fits."""

ALTERNATIVES_MAX = 8
WEIGHT = 2.0


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
    ) -> None:
        self._ids = ids
        self._policy = policy
        self._budget = budget

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable | Rejection:
        claims = claims_in(state)
        ask = read_ask(state.pod, claims, snapshot)
        if claims.earlier is not None and not ask.extended.names:  # no class serves them any more
            return Rejection(NAME, stays(claims.earlier, state.pod))
        state.read[NAME] = ask
        state.classes |= snapshot.classes.revisions(ask.names)
        return ask.signature

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        ask: DeviceAsk = state.read[NAME]
        if ask is NO_DEVICES:
            return None
        budget = THOROUGH_STEPS if state.thorough else self._budget
        check = DeviceCheck(ask, Asked(ask, state.pod, snapshot), snapshot, self._policy, budget)
        state.made[NAME] = check
        return Checks(check)

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate | None:
        """How far down its lists of alternatives the pod would have to go."""
        ask: DeviceAsk = state.read[NAME]
        check: DeviceCheck | None = state.made.get(NAME)
        if check is None or not ask.pending:
            return None
        lists = sum(
            1 for claim in ask.pending for one in claim.view.spec.devices.requests if one.first_available
        )
        if not lists:
            return None
        scale = WEIGHT * 100 / (ALTERNATIVES_MAX * lists)
        found = check.found

        def rate(node: NodeInfo) -> float:
            outline = found.get(node.name)
            return scale * outline.preference if outline is not None else 0.0

        return rate

    def tell(self, state: CycleState, rejections: Iterable[tuple[str, Rejection]]) -> Sentence | None:
        return tell(state, rejections)

    def explain(
        self,
        state: CycleState,
        snapshot: Snapshot,
        rejections: Iterable[tuple[str, Rejection]],
        named: Callable[[str], str],
    ) -> Mapping[str, Explanation]:
        return explained(state, snapshot, rejections, named)

    def reserve(self, state: CycleState, node: NodeInfo, snapshot: Snapshot) -> tuple[Write, ...] | Rejection:
        ask: DeviceAsk = state.read[NAME]
        if ask is NO_DEVICES:
            return ()
        return reserve(state.pod, ask, state.made[NAME], node, snapshot, self._ids)

    def unreserve(self, state: CycleState, snapshot: Snapshot) -> None:
        ask: DeviceAsk | None = state.read.get(NAME)
        if ask is not None:
            unreserve(state.pod, ask, snapshot)


class DeviceFit:
    """Spend devices where that leaves most for others, as the policy counts it."""

    name = "DeviceFit"
    tier = Tier.DEVICES

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        return None  # what DynamicResources signs says it all

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate | None:
        ask: DeviceAsk = state.read[NAME]
        check: DeviceCheck | None = state.made.get(NAME)
        if check is None or not ask.wants_devices:
            return None
        found = check.found

        def rate(node: NodeInfo) -> tuple[float, ...]:
            outline = found.get(node.name)
            return outline.cost if outline is not None else ()

        return rate
