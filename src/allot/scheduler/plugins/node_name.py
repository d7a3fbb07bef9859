"""NodeName: a pod that names its node goes there or nowhere."""

from collections.abc import Hashable

from ..framework import Checks, CycleState, Event, Rejection
from ..node import NodeInfo
from ..snapshot import Snapshot

NAME = "NodeName"
OTHER_NODE = Rejection(NAME, "node(s) didn't match the requested node name")


class NodeName:
    name = NAME
    events = frozenset({Event.NODE_ADDED})

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        return state.pod.spec.node_name

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        wanted = state.pod.spec.node_name
        if not wanted:
            return None

        def check(node: NodeInfo) -> Rejection | None:
            return None if node.name == wanted else OTHER_NODE

        return Checks(check, frozenset({wanted}))
