"""Which pods nobody will end. Pure."""

from collections.abc import Iterable
from enum import Enum

from allot.api import Object, core

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
FINISHED_MAX = 12_500


class Fate(Enum):
    NONE = "none"
    LOST = "lost"  # if the server confirms that the node is gone
    UNSCHEDULED = "unscheduled"
    SHUT_DOWN = "shut down"


def fate(pod: Object, node: Object | None) -> Fate:
    """`node` is the one that the pod is bound to, if the cache shows it."""
    view = pod.view(core.Pod)
    leaving = pod.metadata.deletion_timestamp is not None
    if not view.spec.node_name:
        return Fate.UNSCHEDULED if leaving else Fate.NONE
    if node is None:
        return Fate.LOST
    seen = node.view(core.Node)
    out = any(taint.key == OUT_OF_SERVICE for taint in seen.spec.taints) and not seen.is_ready
    return Fate.SHUT_DOWN if leaving and out else Fate.NONE


def surplus(finished: Iterable[Object], most: int) -> list[Object]:
    """The oldest finished pods beyond the number that is kept; evicted ones first."""
    pods = sorted(finished, key=_worth)
    return pods[: max(0, len(pods) - most)]


def _worth(pod: Object) -> tuple[bool, str, str]:
    evicted = pod.view(core.Pod).status.reason == "Evicted"
    return not evicted, pod.metadata.creation_timestamp or "", pod.name
