"""NodeAffinity: the nodes that a pod selects by label or name, and those it would rather have.

A pod that names its nodes (as a DaemonSet's pods do) is never put to any other.
"""

from collections.abc import Hashable, Mapping

from allot.allocation import BadNodeSelector, Node, selects
from allot.api import core, meta

from ..framework import Checks, CycleState, Event, Rate, Rejection, Tier
from ..node import NodeInfo
from ..snapshot import Snapshot

NAME = "NodeAffinity"
NO_MATCH = Rejection(NAME, "node(s) didn't match Pod's node affinity/selector")
WEIGHT = 2.0
SCALE = 100.0
NOWHERE = Node("")


class NodeAffinity:
    name = NAME
    events = frozenset({Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_CHANGED})
    tier = Tier.WISH

    def __init__(self, weight: float = WEIGHT) -> None:
        self._weight = weight

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        labels, affinity = state.pod.spec.node_selector, _affinity(state.pod.spec)
        if not labels and affinity is None:
            return None
        return frozenset(labels.items()), affinity

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        labels, affinity = state.pod.spec.node_selector, _affinity(state.pod.spec)
        required = affinity.required if affinity is not None else None
        if not labels and required is None:
            return None
        why_not = _defect(required)
        if why_not is not None:
            return Checks(lambda node: why_not)

        def check(node: NodeInfo) -> Rejection | None:
            if _has_all(labels, node.labels) and (required is None or selects(required, node.place)):
                return None
            return NO_MATCH

        return Checks(check, _named(required))

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate | None:
        """How much of what was preferred the node lacks, by weight."""
        affinity = _affinity(state.pod.spec)
        terms = _readable(affinity.preferred if affinity is not None else ())
        most = sum(weight for weight, _ in terms)
        if not most:
            return None
        scale = self._weight * SCALE / most

        def rate(node: NodeInfo) -> float:
            return scale * sum(weight for weight, term in terms if not selects(term, node.place))

        return rate


def _affinity(spec: core.PodSpec) -> core.NodeAffinity | None:
    return spec.affinity.node_affinity if spec.affinity is not None else None


def _has_all(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())


def _defect(selector: meta.NodeSelector | None) -> Rejection | None:
    """What is wrong with a selector that no server should have accepted."""
    try:
        if selector is not None:
            selects(selector, NOWHERE)
    except BadNodeSelector as bad:
        return Rejection(NAME, f"{NO_MATCH.reason}, which cannot be read: {bad}")
    return None


def _named(selector: meta.NodeSelector | None) -> frozenset[str] | None:
    """The nodes that are left if every alternative names some; None where one of them does not."""
    if selector is None:
        return None
    found: set[str] = set()
    for term in selector.node_selector_terms:
        named = [set(one.values) for one in term.match_fields if one.operator == "In"]
        if not named and (term.match_fields or term.match_expressions):
            return None
        found |= set.intersection(*named) if named else set()
    return frozenset(found)


def _readable(preferred: tuple[core.PreferredNodes, ...]) -> list[tuple[int, meta.NodeSelector]]:
    """By weight. A preference that cannot be read, or that says nothing, is none."""
    found = []
    for one in preferred:
        selector = meta.NodeSelector(node_selector_terms=(one.preference,))
        says_something = one.preference.match_expressions or one.preference.match_fields
        if one.weight > 0 and says_something and _defect(selector) is None:
            found.append((one.weight, selector))
    return found
