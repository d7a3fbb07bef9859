"""How a deployment stands: counts, and the conditions that `kubectl rollout status` and `wait` read.

Available       enough pods are available
Progressing     the rollout moves, is done, has stopped (paused) or took too long
ReplicaFailure  a replica set cannot make its pods
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allot.api import Object, age

from .views import Deployment, DeploymentCondition, deployment_of, set_of

DONE, TOO_LATE = "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"


@dataclass(frozen=True, slots=True)
class Counts:
    replicas: int
    updated: int
    ready: int
    available: int
    unavailable: int

    @property
    def old(self) -> int:
        return self.replicas - self.updated


def counts(new: Object | None, sets: Sequence[Object]) -> Counts:
    views = [set_of(one) for one in sets]
    available = sum(one.status.available_replicas for one in views)
    return Counts(
        sum(one.status.replicas for one in views),
        set_of(new).status.replicas if new is not None else 0,
        sum(one.status.ready_replicas for one in views),
        available,
        max(0, sum(one.spec.replicas for one in views) - available),
    )


def is_complete(wish: Deployment, now: Counts) -> bool:
    return now.updated == now.replicas == now.available == wish.spec.replicas


def status(
    deployment: Object, new: Object | None, sets: Sequence[Object], is_made: bool, now: datetime
) -> dict[str, Any] | None:
    """The status as it should be, or None when it already is. `is_made`: the newest set is new."""
    wish, found = deployment_of(deployment), counts(new, sets)
    shown = {
        "observedGeneration": wish.metadata.generation,
        "replicas": found.replicas,
        "updatedReplicas": found.updated,
        "readyReplicas": found.ready,
        "availableReplicas": found.available,
        "unavailableReplicas": found.unavailable,
    }
    before = deployment.fields.get("status") or {}
    conditions = _conditions(wish, found, new, sets, is_made, now)
    same = all((before.get(name) or 0) == value for name, value in shown.items())
    if same and wish.status.conditions == conditions:
        return None
    return {**shown, "conditions": [_shown(one) for one in conditions] or None}


def deadline_in_s(deployment: Object, now: datetime) -> float | None:
    """When it will be too late, if nothing moves until then."""
    wish = deployment_of(deployment)
    current = _find(wish.status.conditions, "Progressing")
    if wish.deadline_s is None or wish.spec.paused or current is None:
        return None
    if current.reason in (DONE, TOO_LATE):
        return None
    return max(0.0, _left_s(current, wish.deadline_s, now)) + 1.0  # times are whole seconds


def _conditions(
    wish: Deployment,
    found: Counts,
    new: Object | None,
    sets: Sequence[Object],
    is_made: bool,
    now: datetime,
) -> tuple[DeploymentCondition, ...]:
    before, when = wish.status.conditions, age.timestamp(now)
    enough = found.available >= wish.spec.replicas - wish.unavailable
    reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    amount = "enough" if enough else "too few"
    message = f"{amount} replicas are available"
    ours = [_set(before, "Available", "True" if enough else "False", reason, message, when)]
    progressing = _progressing(wish, found, new, is_made, now)
    if progressing is not None:
        ours.append(progressing)
    failure = next(
        (c for one in sets for c in set_of(one).status.conditions if c.type == "ReplicaFailure"), None
    )
    if failure is not None:
        ours.append(_set(before, "ReplicaFailure", failure.status, failure.reason, failure.message, when))
    known = ("Available", "Progressing", "ReplicaFailure")
    return (*(one for one in before if one.type not in known), *ours)


def _progressing(
    wish: Deployment, found: Counts, new: Object | None, is_made: bool, now: datetime
) -> DeploymentCondition | None:
    current, when = _find(wish.status.conditions, "Progressing"), age.timestamp(now)
    if wish.deadline_s is None:
        return None

    def moved(status: str, reason: str, message: str) -> DeploymentCondition:
        since = current.last_transition_time if current is not None and current.status == status else when
        return DeploymentCondition(
            type="Progressing",
            status=status,
            reason=reason,
            message=message,
            last_update_time=when,
            last_transition_time=since,
        )

    if wish.spec.paused:
        if current is not None and current.reason in (PAUSED, TOO_LATE):
            return current
        return moved("Unknown", PAUSED, "the rollout is paused")
    if current is not None and current.reason == PAUSED:
        current = moved("Unknown", RESUMED, "the rollout goes on")
    name = new.name if new is not None else ""
    if is_made:
        return moved("True", "NewReplicaSetCreated", f"replica set {name} was created")
    if current is None:
        if new is None:
            return None
        current = moved("True", "FoundNewReplicaSet", f"replica set {name} was found")
    if current.reason == DONE and found.replicas == found.updated:
        return current  # a pod that fails later is no rollout
    if is_complete(wish, found):
        return moved("True", DONE, f"replica set {name} has all its pods available")
    if _has_moved(wish, found):
        return moved("True", "ReplicaSetUpdated", f"replica set {name} is on its way")
    if current.reason not in (DONE, TOO_LATE) and _left_s(current, wish.deadline_s, now) < 0:
        return moved("False", TOO_LATE, f"replica set {name} has made no progress for {wish.deadline_s} s")
    return current


def _has_moved(wish: Deployment, found: Counts) -> bool:
    before = wish.status
    return (
        found.updated > before.updated_replicas
        or found.old < before.replicas - before.updated_replicas
        or found.ready > before.ready_replicas
        or found.available > before.available_replicas
    )


def _left_s(current: DeploymentCondition, deadline_s: int, now: datetime) -> float:
    since = age.moment(current.last_update_time or current.last_transition_time) or now
    return deadline_s - (now - since).total_seconds()


def _find(conditions: Sequence[DeploymentCondition], type: str) -> DeploymentCondition | None:
    return next((one for one in conditions if one.type == type), None)


def _set(
    before: Sequence[DeploymentCondition], type: str, status: str, reason: str, message: str, when: str
) -> DeploymentCondition:
    """A condition that says the same keeps its times."""
    known = _find(before, type)
    if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
        return known
    since = known.last_transition_time if known is not None and known.status == status else when
    return DeploymentCondition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_update_time=when,
        last_transition_time=since,
    )


def _shown(one: DeploymentCondition) -> dict[str, str]:
    return {
        "type": one.type,
        "status": one.status,
        "reason": one.reason,
        "message": one.message,
        "lastUpdateTime": one.last_update_time,
        "lastTransitionTime": one.last_transition_time,
    }
