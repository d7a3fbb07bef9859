"""TaintToleration: nodes that are tainted take only pods that tolerate it, or take others last.

NoSchedule and NoExecute keep a pod away. PreferNoSchedule makes a node the less wanted
the more of such taints the pod does not tolerate: half as good with each.
"""

from collections.abc import Hashable

from allot.api import core

from ..framework import Checks, CycleState, Event, Rate, Rejection, Tier
from ..node import NodeInfo
from ..snapshot import Snapshot

NAME = "TaintToleration"
WEIGHT = 3.0
SCALE = 100.0
_HARD = ("NoSchedule", "NoExecute")
_SOFT = "PreferNoSchedule"

Taints = tuple[core.Taint, ...]
Tolerations = tuple[core.Toleration, ...]


class TaintToleration:
    name = NAME
    events = frozenset({Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_CHANGED})
    tier = Tier.WISH

    def __init__(self, weight: float = WEIGHT) -> None:
        self._weight = weight

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        return state.pod.spec.tolerations

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks:
        tolerations = state.pod.spec.tolerations

        def check(node: NodeInfo) -> Rejection | None:
            return _first_untolerated(node.taints, tolerations) if node.taints else None

        return Checks(check)

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate:
        tolerations, most = state.pod.spec.tolerations, self._weight * SCALE

        def rate(node: NodeInfo) -> float:
            return most * (1.0 - 0.5 ** _unwanted(node.taints, tolerations)) if node.taints else 0.0

        return rate


def _first_untolerated(taints: Taints, tolerations: Tolerations) -> Rejection | None:
    for taint in taints:
        if taint.effect in _HARD and not _is_tolerated(taint, tolerations):
            return Rejection(NAME, f"node(s) had untolerated taint(s) {{{taint.key}}}")
    return None


def _unwanted(taints: Taints, tolerations: Tolerations) -> int:
    return sum(taint.effect == _SOFT and not _is_tolerated(taint, tolerations) for taint in taints)


def _is_tolerated(taint: core.Taint, tolerations: Tolerations) -> bool:
    return any(taint.is_tolerated_by(one) for one in tolerations)
