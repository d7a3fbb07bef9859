"""policy/v1: how many pods of a group may be away at once."""

from collections.abc import Sequence
from typing import Any

from ..field import FieldError, Path, invalid, unsupported
from ..kind import Column, Fields, Kind, Rules, Version
from .labels import validate_selector
from .numbers import validate_at_most_all, validate_int_or_percent, validate_not_negative
from .reading import obj
from .workloads import AGE, NAME, count

UNHEALTHY = ("AlwaysAllow", "IfHealthyBudget")
_SPEC = Path("spec")
_STATUS = Path("status")


def _validate(budget: Fields) -> list[FieldError]:
    spec = obj(budget, "spec")
    found: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        found.append(invalid(_SPEC, spec, text))
    for name in ("minAvailable", "maxUnavailable"):
        if spec.get(name) is not None:
            found += validate_int_or_percent(spec[name], _SPEC / name)
            found += validate_at_most_all(spec[name], _SPEC / name)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in UNHEALTHY:
        found.append(unsupported(_SPEC / "unhealthyPodEvictionPolicy", policy, UNHEALTHY))
    return found + validate_selector(obj(spec, "selector"), _SPEC / "selector")


def _validate_status(budget: Fields) -> list[FieldError]:
    names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return validate_not_negative(obj(budget, "status"), names, _STATUS)


def _cells(budget: Fields, age: str) -> Sequence[Any]:
    spec = obj(budget, "spec")
    return [
        budget["metadata"]["name"],
        *(
            "N/A" if spec.get(name) is None else str(spec[name])
            for name in ("minAvailable", "maxUnavailable")
        ),
        count(budget, "status", "disruptionsAllowed"),
        age,
    ]


POD_DISRUPTION_BUDGET = Kind(
    group="policy",
    kind="PodDisruptionBudget",
    plural="poddisruptionbudgets",
    singular="poddisruptionbudget",
    short_names=("pdb",),
    versions=(Version("v1", "io.k8s.api.policy.v1.PodDisruptionBudget"),),
    hub="v1",
    has_status=True,
    counts_generation=True,
    rules=Rules(
        validate_create=lambda new, context: _validate(new),
        validate_update=lambda new, old, context: _validate(new),
        validate_status=lambda new, old, context: _validate_status(new),
    ),
    columns=(
        NAME,
        Column("Min Available", description="How many must stay."),
        Column("Max Unavailable", description="How many may be away."),
        Column("Allowed Disruptions", "integer", description="How many more may go now."),
        AGE,
    ),
    cells=_cells,
)

KINDS = (POD_DISRUPTION_BUDGET,)
