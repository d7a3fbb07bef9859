"""How a disruption budget stands: how many of its pods must be healthy, are, and may still go. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from allot.api import Object, age, core

from ..workloads import count_of, is_active, is_ready, view_of

DELETED_WITHIN_S = 120.0
"""A pod that was evicted and is still there after this time is taken to stay (PDB3)."""
_ALLOWED = "DisruptionAllowed"


@dataclass(frozen=True, slots=True)
class Uncounted:
    """Nobody can say how many pods there should be (PDB4)."""

    why: str


@dataclass(frozen=True, slots=True)
class BudgetCount:
    """The numbers of a budget, and whom it takes to be going."""

    expected: int
    desired: int
    healthy: int
    going: Mapping[str, str]  # pod -> when its eviction was allowed
    problem: str = ""  # why it could not be counted
    nobody: str = ""  # why no pods are expected although there are some

    @property
    def allowed(self) -> int:
        """Where no pods are expected nothing is allowed: the first may come before this is counted again."""
        return max(0, self.healthy - self.desired) if self.expected > 0 and not self.problem else 0


def budget_of(object: Object) -> core.PodDisruptionBudget:
    return object.view(core.PodDisruptionBudget)


def covered(budget: core.PodDisruptionBudget, pods: Sequence[Object]) -> list[Object]:
    """`pods` are those of its namespace."""
    return [pod for pod in pods if budget.covers(pod.metadata.labels or {})]


def asks_owners(spec: core.PodDisruptionBudgetSpec) -> bool:
    """Whether it is about the pods that there should be, and not only about those that there are."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def count(
    budget: core.PodDisruptionBudget,
    pods: Sequence[Object],
    wanted: int | Uncounted,
    now: datetime,
    *,
    is_current: bool = True,
) -> BudgetCount:
    """`pods` are those it covers; `wanted` is what their owners want, where it asks them.
    `is_current`: the pods are at least as new as the budget, so that one that is not there is gone."""
    found = _counted(budget, pods, wanted, now, is_current)
    if found.expected or found.problem or not pods:
        return found
    return replace(found, nobody=_why_nobody(budget.spec, pods))


def _counted(
    budget: core.PodDisruptionBudget,
    pods: Sequence[Object],
    wanted: int | Uncounted,
    now: datetime,
    is_current: bool,
) -> BudgetCount:
    going = _going(budget.status.disrupted_pods, pods, now, is_current)
    healthy = sum(is_active(pod) and is_ready(pod) and pod.name not in going for pod in pods)
    spec = budget.spec
    if isinstance(wanted, Uncounted):
        return BudgetCount(0, 0, healthy, going, wanted.why)
    if spec.max_unavailable is not None:
        return BudgetCount(wanted, max(0, wanted - count_of(spec.max_unavailable, wanted)), healthy, going)
    if isinstance(spec.min_available, str):
        return BudgetCount(wanted, count_of(spec.min_available, wanted), healthy, going)
    if spec.min_available is not None:
        return BudgetCount(len(pods), spec.min_available, healthy, going)
    return BudgetCount(0, 0, healthy, going)


def _why_nobody(spec: core.PodDisruptionBudgetSpec, pods: Sequence[Object]) -> str:
    if not asks_owners(spec):
        return "it sets neither minAvailable nor maxUnavailable"
    if any(view_of(pod).metadata.controller is not None for pod in pods):
        return "the controllers of its pods want none"
    return "its pods have no controller that says how many there should be"


def status(budget: Object, stands: BudgetCount, now: datetime) -> Any:
    """The status as it should be, or None when it already is."""
    generation = budget_of(budget).metadata.generation
    wanted = {
        "observedGeneration": generation,
        "disruptionsAllowed": stands.allowed,
        "currentHealthy": stands.healthy,
        "desiredHealthy": stands.desired,
        "expectedPods": stands.expected,
        "disruptedPods": dict(stands.going),
        "conditions": _conditions(budget, stands, generation, age.timestamp(now)),
    }
    before = budget.fields.get("status") or {}
    if all((before.get(name) or type(value)()) == value for name, value in wanted.items()):
        return None
    return {name: value for name, value in wanted.items() if value != {}}


def look_again_s(stands: BudgetCount, now: datetime) -> float | None:
    """When the next of those that were to go is taken to stay."""
    return min((_left_s(at, now) for at in stands.going.values()), default=None)


def matters(pod: Object) -> tuple[object, ...]:
    """All of a pod that a budget may depend on."""
    view = view_of(pod)
    return (
        view.metadata.labels,
        view.metadata.controller,
        view.is_ready,
        view.is_finished,
        bool(view.metadata.deletion_timestamp),
    )


def _going(
    noted: Mapping[str, str], pods: Sequence[Object], now: datetime, is_current: bool
) -> dict[str, str]:
    """Those whose end is allowed and not seen yet. Who is gone, or told to end, is not counted anyway."""
    there = {pod.name: pod for pod in pods if pod.name in noted}

    def is_due(name: str) -> bool:
        pod = there.get(name)
        return not is_current if pod is None else pod.metadata.deletion_timestamp is None

    return {name: at for name, at in noted.items() if is_due(name) and _left_s(at, now) > 0}


def _left_s(noted: str, now: datetime) -> float:
    at = age.moment(noted)
    if at is None:
        return 0.0
    return (at - now).total_seconds() + DELETED_WITHIN_S


def _conditions(budget: Object, stands: BudgetCount, generation: int, now: str) -> list[Any]:
    shown = list((budget.fields.get("status") or {}).get("conditions") or ())
    said = "True" if stands.allowed > 0 else "False"
    before: Mapping[str, Any] = next((one for one in shown if one.get("type") == _ALLOWED), {})
    condition = {
        "type": _ALLOWED,
        "status": said,
        "reason": _reason(stands),
        "message": stands.problem or (f"no pods are expected: {stands.nobody}" if stands.nobody else ""),
        "observedGeneration": generation,
        "lastTransitionTime": before.get("lastTransitionTime") if before.get("status") == said else now,
    }
    if condition == before:
        return shown
    return [*(one for one in shown if one.get("type") != _ALLOWED), condition]


def _reason(stands: BudgetCount) -> str:
    if stands.problem:
        return "SyncFailed"
    return "SufficientPods" if stands.allowed > 0 else "InsufficientPods"
