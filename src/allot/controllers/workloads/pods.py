"""How a pod stands, and which of many is missed least.

Pods are deleted in this order: those without a node; those that are pending before
those that run; not ready before ready; lower `controller.kubernetes.io/pod-deletion-cost`
first; from nodes with many of their kind; ready only recently; restarted often; young.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from allot.api import Object, age, core, meta

NODE_INDEX = "node name"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


def view_of(pod: Object) -> core.Pod:
    return pod.view(core.Pod)


def node_name(pod: Object) -> tuple[str, ...]:
    """An index function: pods by the node they are bound to. `cache.index(NODE_INDEX, ...)`."""
    name = view_of(pod).spec.node_name
    return (name,) if name else ()


def is_active(pod: Object) -> bool:
    """It runs or will run, and nobody has asked it to end."""
    return not view_of(pod).is_finished and pod.metadata.deletion_timestamp is None


def is_ready(pod: Object) -> bool:
    return view_of(pod).is_ready


def is_available(pod: Object, min_ready_s: int, now: datetime) -> bool:
    """It has been ready for long enough."""
    return is_ready(pod) and wait_s(pod, min_ready_s, now) <= 0


def wait_s(pod: Object, min_ready_s: int, now: datetime) -> float:
    """How long until a ready pod is available; not more than 0 if it is."""
    if not min_ready_s:
        return 0.0
    condition = _ready_condition(pod)
    since = age.moment(condition.last_transition_time) if condition is not None else None
    return min_ready_s - (now - since).total_seconds() if since is not None else float(min_ready_s)


def deletion_order(pods: Iterable[Object], related: Iterable[Object]) -> list[Object]:
    """Whom to delete first. `related` are the pods of all sets that serve the same purpose."""
    crowd = Counter(view_of(pod).spec.node_name for pod in related if is_active(pod))
    return sorted(pods, key=lambda pod: _worth(pod, crowd))


def _worth(pod: Object, crowd: Counter[str]) -> tuple[float | str, ...]:
    """Less is deleted first."""
    view = view_of(pod)
    condition = _ready_condition(pod)
    ready = condition is not None and condition.status == "True"
    since = age.moment(condition.last_transition_time) if ready and condition is not None else None
    return (
        bool(view.spec.node_name),
        _PHASES.get(view.status.phase, 0),
        ready,
        _cost(view.metadata),
        -crowd[view.spec.node_name],
        -_seconds(since),
        -max((one.restart_count for one in view.status.container_statuses), default=0),
        -_seconds(age.moment(view.metadata.creation_timestamp)),
        pod.name,
    )


def _ready_condition(pod: Object) -> meta.Condition | None:
    return next((one for one in view_of(pod).status.conditions if one.type == "Ready"), None)


def _cost(known: meta.ObjectMeta) -> int:
    written = known.annotations.get(DELETION_COST, "0")
    return int(written) if written.removeprefix("-").isdigit() and len(written) < 12 else 0


def _seconds(moment: datetime | None) -> float:
    return ((moment or _LONG_AGO) - _LONG_AGO).total_seconds()
