"""Daemon sets: one pod on every node that suits."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ...field import FieldError, invalid, unsupported
from ...kind import Column, Fields, Kind, Rules, Version
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
    validate_long_running,
    validate_selected_template,
    validate_unchanged,
    wide_cells,
)  # fmt: skip

STRATEGIES = ("OnDelete", "RollingUpdate")


def _default(daemon_set: Fields, now: datetime) -> None:
    spec = section(daemon_set, "spec")
    strategy = section(spec, "updateStrategy")
    default(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = section(strategy, "rollingUpdate")
        for name, value in (("maxUnavailable", 1), ("maxSurge", 0)):
            if rolling.get(name) is None:
                rolling[name] = value
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    default_template(section(spec, "template"))


def _validate(daemon_set: Fields) -> list[FieldError]:
    spec = obj(daemon_set, "spec")
    return [
        *validate_not_negative(spec, ("minReadySeconds", "revisionHistoryLimit"), SPEC),
        *validate_selected_template(spec, "daemonset"),
        *validate_long_running(spec, "DaemonSet"),
        *_validate_strategy(obj(spec, "updateStrategy")),
    ]


def _validate_strategy(strategy: Fields) -> list[FieldError]:
    path, kind = SPEC / "updateStrategy", strategy.get("type") or ""
    if kind not in STRATEGIES:
        return [unsupported(path / "type", kind, STRATEGIES)]
    if kind == "OnDelete":
        return []
    rolling, at = obj(strategy, "rollingUpdate"), path / "rollingUpdate"
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    found = []
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        found += validate_int_or_percent(value, at / name) + validate_at_most_all(value, at / name)
    if is_zero(unavailable) and is_zero(surge):
        text = "cannot be 0 when maxSurge is 0"
        found.append(invalid(at / "maxUnavailable", unavailable, text))
    elif not is_zero(unavailable) and not is_zero(surge):
        text = "may not be set when maxUnavailable is non-zero"
        found.append(invalid(at / "maxSurge", surge, text))
    return found


def _cells(daemon_set: Fields, age: str) -> Sequence[Any]:
    status = obj(daemon_set, "status")
    wanted_on = obj(daemon_set, "spec", "template", "spec", "nodeSelector")
    return [
        daemon_set["metadata"]["name"],
        count(status, "desiredNumberScheduled"),
        count(status, "currentNumberScheduled"),
        count(status, "numberReady"),
        count(status, "updatedNumberScheduled"),
        count(status, "numberAvailable"),
        ",".join(f"{key}={value}" for key, value in sorted(wanted_on.items())) or "<none>",
        age,
        *wide_cells(daemon_set),
    ]


DAEMON_SET = Kind(
    group="apps",
    kind="DaemonSet",
    plural="daemonsets",
    singular="daemonset",
    short_names=("ds",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.apps.v1.DaemonSet",
            default=_default,
            respell=respelled_at("spec", "template", "spec"),
        ),
    ),
    hub="v1",
    has_status=True,
    counts_generation=True,
    rules=Rules(
        validate_create=lambda new, context: _validate(new),
        validate_update=lambda new, old, context: [
            *_validate(new),
            *validate_unchanged(new, old, ("selector",)),
        ],
    ),
    columns=(
        NAME,
        Column("Desired", "integer", description="How many nodes suit."),
        Column("Current", "integer", description="How many of them have the pod."),
        Column("Ready", "integer", description="How many of the pods are ready."),
        Column("Up-to-date", "integer", description="How many pods have the newest template."),
        Column("Available", "integer", description="How many pods have been ready for long enough."),
        Column("Node Selector", description="Which nodes suit."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    cells=_cells,
)
