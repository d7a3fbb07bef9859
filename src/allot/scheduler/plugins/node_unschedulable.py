"""NodeUnschedulable: a cordoned node takes only pods that tolerate it."""

from collections.abc import Hashable

from allot.api import core

from ..framework import Checks, CycleState, Event, Rejection
from ..node import NodeInfo
from ..snapshot import Snapshot

NAME = "NodeUnschedulable"
CORDONED = Rejection(NAME, "node(s) were unschedulable")
CORDON = core.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that a cordoned node has, or will have as soon as the node controller has seen it."""


class NodeUnschedulable:
    name = NAME
    events = frozenset({Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_CHANGED})

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        return _tolerates_cordon(state.pod.spec)

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        return None if _tolerates_cordon(state.pod.spec) else Checks(_check)


def _tolerates_cordon(spec: core.PodSpec) -> bool:
    return any(CORDON.is_tolerated_by(one) for one in spec.tolerations)


def _check(node: NodeInfo) -> Rejection | None:
    return CORDONED if node.unschedulable else None
