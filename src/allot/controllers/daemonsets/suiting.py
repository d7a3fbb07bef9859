"""Which nodes a daemon set is for, and how its pods find them. Pure.

A daemon's pod is made for one node: it asks the scheduler for that node by name, and
tolerates what nodes have when they are not well, for daemons are what makes them well.
"""

from enum import Enum
from typing import Any

from allot.allocation import BadNodeSelector, Node, selects
from allot.api import Object, core

_NAME = "metadata.name"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_WITHOUT_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class Suits(Enum):
    YES = "yes"
    KEEPS = "keeps"  # no new pod, and one that is there stays
    NO = "no"


def _tolerated(is_on_host_network: bool) -> tuple[tuple[str, str], ...]:
    return (*_TOLERATED, _WITHOUT_NETWORK) if is_on_host_network else _TOLERATED


def tolerations(spec: core.PodSpec, is_on_host_network: bool) -> list[core.Toleration]:
    tolerated = _tolerated(is_on_host_network)
    added = [core.Toleration(key=key, operator="Exists", effect=effect) for key, effect in tolerated]
    return [*spec.tolerations, *added]


def suits(spec: core.PodSpec, is_on_host_network: bool, node: Object) -> Suits:
    view = node.view(core.Node)
    if spec.node_name and spec.node_name != node.name:
        return Suits.NO
    labels = view.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return Suits.NO
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is not None and affinity.required is not None:
        try:
            if not selects(affinity.required, Node.read(node.fields)):
                return Suits.NO
        except BadNodeSelector:
            return Suits.NO
    tolerated = tolerations(spec, is_on_host_network)
    against = [taint for taint in view.spec.taints if not any(map(taint.is_tolerated_by, tolerated))]
    effects = {taint.effect for taint in against}
    if "NoExecute" in effects:
        return Suits.NO
    return Suits.KEEPS if "NoSchedule" in effects else Suits.YES


def for_node(spec: dict[str, Any], node: str) -> dict[str, Any]:
    """The pod's spec, bound for a node. Terms of its affinity stay: the scheduler checks them too."""
    wanted = {"key": _NAME, "operator": "In", "values": [node]}
    affinity = spec.get("affinity") or {}
    near = affinity.get("nodeAffinity") or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = (near.get(required) or {}).get("nodeSelectorTerms") or [{}]
    bound = [{**term, "matchFields": [wanted]} for term in terms]
    more = [
        {"key": key, "operator": "Exists", "effect": effect}
        for key, effect in _tolerated(bool(spec.get("hostNetwork")))
    ]
    kept = [one for one in spec.get("tolerations") or () if one not in more]
    return {
        **spec,
        "affinity": {**affinity, "nodeAffinity": {**near, required: {"nodeSelectorTerms": bound}}},
        "tolerations": [*kept, *more],
    }


def node_of(pod: Object) -> str:
    """The node that a pod is on, or is meant for."""
    spec = pod.view(core.Pod).spec
    if spec.node_name:
        return spec.node_name
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required else ()
    for term in terms:
        for field in term.match_fields:
            if field.key == _NAME and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return ""
