"""Deployments: replicas of a pod, and how one generation of them gives way to the next."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ...field import FieldError, forbidden, invalid, required, unsupported
from ...kind import Column, Fields, Kind, Rules, Scale, Version, WriteContext
from ..numbers import is_zero, validate_at_most_all, validate_int_or_percent, validate_not_negative
from ..podspec import default_template, respelled_at
from ..reading import default, obj, section
from ..workloads import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    SELECTOR,
    SPEC,
    count,
    validate_counts,
    validate_long_running,
    validate_selected_template,
    validate_unchanged,
    wide_cells,
)  # fmt: skip

STRATEGIES = ("Recreate", "RollingUpdate")

COUNTS = ("updatedReplicas", "readyReplicas", "availableReplicas")


def _default(deployment: Fields, now: datetime) -> None:
    spec = section(deployment, "spec")
    for name, value in (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
        if spec.get(name) is None:
            spec[name] = value
    strategy = section(spec, "strategy")
    default(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = section(strategy, "rollingUpdate")
        for name in ("maxUnavailable", "maxSurge"):
            if rolling.get(name) is None:
                rolling[name] = "25%"
    default_template(section(spec, "template"))


def _validate(deployment: Fields) -> list[FieldError]:
    spec = obj(deployment, "spec")
    counts = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    found = [
        *validate_not_negative(spec, counts, SPEC),
        *validate_selected_template(spec, "deployment"),
        *validate_long_running(spec, "Deployment"),
        *_validate_strategy(obj(spec, "strategy")),
    ]
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        found.append(
            invalid(SPEC / "progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
        )
    return found


def _validate_strategy(strategy: Fields) -> list[FieldError]:
    path, kind, rolling = SPEC / "strategy", strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind not in STRATEGIES:
        return [unsupported(path / "type", kind, STRATEGIES)]
    if kind == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden(path / "rollingUpdate", text)] if rolling is not None else []
    if rolling is None:
        return [required(path / "rollingUpdate")]
    at = path / "rollingUpdate"
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    found = [
        *validate_int_or_percent(unavailable, at / "maxUnavailable"),
        *validate_int_or_percent(surge, at / "maxSurge"),
        *validate_at_most_all(unavailable, at / "maxUnavailable"),
    ]
    if is_zero(unavailable) and is_zero(surge):
        text = "may not be 0 when `maxSurge` is 0"
        found.append(invalid(at / "maxUnavailable", unavailable, text))
    return found


def _validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return [*_validate(new), *validate_unchanged(new, old, ("selector",))]


def _cells(deployment: Fields, age: str) -> Sequence[Any]:
    status = obj(deployment, "status")
    return [
        deployment["metadata"]["name"],
        f"{count(status, 'readyReplicas')}/{count(deployment, 'spec', 'replicas')}",
        count(status, "updatedReplicas"),
        count(status, "availableReplicas"),
        age,
        *wide_cells(deployment),
    ]


DEPLOYMENT = Kind(
    group="apps",
    kind="Deployment",
    plural="deployments",
    singular="deployment",
    short_names=("deploy",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.apps.v1.Deployment",
            default=_default,
            respell=respelled_at("spec", "template", "spec"),
        ),
    ),
    hub="v1",
    has_status=True,
    scale=Scale(selector="spec.selector"),
    counts_generation=True,
    rules=Rules(
        validate_create=lambda new, context: _validate(new),
        validate_update=_validate_update,
        validate_status=lambda new, old, context: validate_counts(new, old, COUNTS),
    ),
    columns=(
        NAME,
        Column("Ready", description="How many replicas are ready, of how many wanted."),
        Column("Up-to-date", description="How many replicas have the newest template."),
        Column("Available", description="How many replicas have been ready for long enough."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    cells=_cells,
)
