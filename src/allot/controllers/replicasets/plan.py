"""How many pods a replica set lacks or has too many, which of them go, and how it stands. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allot.api import Object, age

from ..workloads import deletion_order, is_active, is_available, is_ready, wait_s
from .views import set_of

BURST = 500
"""The most that is made or deleted in one go."""


@dataclass(frozen=True, slots=True)
class ReplicaSetPlan:
    create: int = 0
    delete: tuple[Object, ...] = ()


def plan(replica_set: Object, pods: Sequence[Object], related: Sequence[Object]) -> ReplicaSetPlan:
    """`pods` are those it owns; `related` those of every set with the same owner, its own included."""
    if replica_set.metadata.deletion_timestamp is not None:
        return ReplicaSetPlan()
    active = [pod for pod in pods if is_active(pod)]
    lacking = set_of(replica_set).spec.replicas - len(active)
    if lacking >= 0:
        return ReplicaSetPlan(create=min(lacking, BURST))
    count = min(-lacking, BURST)
    if count == len(active):
        return ReplicaSetPlan(delete=tuple(active))
    return ReplicaSetPlan(delete=tuple(deletion_order(active, related)[:count]))


@dataclass(frozen=True, slots=True)
class Failure:
    """Pods could not be made or deleted."""

    reason: str  # FailedCreate, FailedDelete
    message: str


def status(replica_set: Object, pods: Sequence[Object], failure: Failure | None, now: datetime) -> Any:
    """The status as it should be, or None when it already is."""
    view = set_of(replica_set)
    active = [pod for pod in pods if is_active(pod)]
    template = ((replica_set.fields["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    counts = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(_has(pod, template) for pod in active),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(is_available(pod, view.spec.min_ready_seconds, now) for pod in active),
        "observedGeneration": view.metadata.generation,
    }
    conditions = _conditions(replica_set, failure, age.timestamp(now))
    before = replica_set.fields.get("status") or {}
    same = all((before.get(name) or 0) == value for name, value in counts.items())
    if same and (before.get("conditions") or []) == conditions:
        return None
    return {**counts, "conditions": conditions or None}


def look_again_s(replica_set: Object, pods: Sequence[Object], now: datetime) -> float | None:
    """When the next ready pod has been ready for long enough, if one waits for that."""
    min_ready_s = set_of(replica_set).spec.min_ready_seconds
    waits = [wait_s(pod, min_ready_s, now) for pod in pods if is_active(pod) and is_ready(pod)]
    return min((one for one in waits if one > 0), default=None)


def _has(pod: Object, labels: dict[str, str]) -> bool:
    own = pod.metadata.labels or {}
    return all(own.get(key) == value for key, value in labels.items())


def _conditions(replica_set: Object, failure: Failure | None, now: str) -> list[Any]:
    """A failure that is known stays as it was first told. Its message names a pod that is another one
    each time: to tell it again would be news of the set, for which the next attempt would not wait."""
    shown = list((replica_set.fields.get("status") or {}).get("conditions") or ())
    others = [one for one in shown if one.get("type") != "ReplicaFailure"]
    if failure is None:
        return others
    known: dict[str, Any] = next((one for one in shown if one.get("type") == "ReplicaFailure"), {})
    if (known.get("status"), known.get("reason")) == ("True", failure.reason):
        return shown
    since = known.get("lastTransitionTime") if known.get("status") == "True" else None
    failed = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": failure.reason,
        "message": failure.message,
        "lastTransitionTime": since or now,
    }
    return [*others, failed]
