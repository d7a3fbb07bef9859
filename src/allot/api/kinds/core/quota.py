"""Resource quotas and limit ranges: how much a namespace, a pod or a container may have."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ... import names
from ...field import FieldError, Path, duplicate, invalid, required, unsupported
from ...kind import Column, Fields, Kind, Rules, Version, WriteContext
from ..amounts import parse, validate_amount, validate_resource_name
from ..reading import items, obj, section
from ..workloads import AGE, NAME

SCOPES = (
    "BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass",
    "Terminating", "VolumeAttributesClass",
)  # fmt: skip
SCOPE_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
_EXISTS_ONLY = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_SPEC = Path("spec")


def _validate(quota: Fields, context: WriteContext) -> list[FieldError]:
    spec = obj(quota, "spec")
    return [*_validate_amounts(obj(spec, "hard"), _SPEC / "hard"), *_validate_scopes(spec)]


def _validate_amounts(amounts: Fields, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    for name, written in amounts.items():
        found += validate_resource_name(name, path[name]) + validate_amount(name, written, path[name])
    return found


def _validate_scopes(spec: Fields) -> list[FieldError]:
    path, scopes = _SPEC / "scopes", items(spec, "scopes")
    found: list[FieldError] = [unsupported(path, scope, SCOPES) for scope in scopes if scope not in SCOPES]
    for pair in _OPPOSITES:
        if set(pair) <= set(scopes):
            found.append(invalid(path, scopes, "conflicting scopes"))
    at = _SPEC / "scopeSelector" / "matchExpressions"
    for index, need in enumerate(items(spec, "scopeSelector", "matchExpressions")):
        found += _validate_scope_need(need, at[index])
    return found


def _validate_scope_need(need: Fields, path: Path) -> list[FieldError]:
    scope, operator = need.get("scopeName") or "", need.get("operator") or ""
    found: list[FieldError] = []
    if scope not in SCOPES:
        found.append(unsupported(path / "scopeName", scope, SCOPES))
    if operator not in SCOPE_OPERATORS:
        found.append(invalid(path / "operator", operator, "not a valid selector operator"))
    elif scope in _EXISTS_ONLY and operator != "Exists":
        text = f"must be 'Exist' when scope is any of {', '.join(_EXISTS_ONLY)}"
        found.append(invalid(path / "operator", operator, text))
    elif operator in ("In", "NotIn") and not items(need, "values"):
        found.append(
            required(path / "values", "must be at least one value when `operator` is 'In' or 'NotIn'")
        )
    elif operator in ("Exists", "DoesNotExist") and items(need, "values"):
        text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        found.append(invalid(path / "values", need["values"], text))
    return found


def _validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    found = _validate(new, context)
    if items(new, "spec", "scopes") != items(old, "spec", "scopes"):
        found.append(invalid(_SPEC / "scopes", items(new, "spec", "scopes"), "field is immutable"))
    return found


def _validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    path = Path("status")
    return [
        *_validate_amounts(obj(new, "status", "hard"), path / "hard"),
        *_validate_amounts(obj(new, "status", "used"), path / "used"),
    ]


def _quota_cells(quota: Fields, age: str) -> Sequence[Any]:
    hard, used = obj(quota, "status", "hard"), obj(quota, "status", "used")
    entries = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    requests = [entry for name, entry in entries.items() if not name.startswith("limits.")]
    limits = [entry for name, entry in entries.items() if name.startswith("limits.")]
    return [quota["metadata"]["name"], ", ".join(requests), ", ".join(limits), age]


RESOURCE_QUOTA = Kind(
    group="",
    kind="ResourceQuota",
    plural="resourcequotas",
    singular="resourcequota",
    short_names=("quota",),
    versions=(Version("v1", "io.k8s.api.core.v1.ResourceQuota"),),
    hub="v1",
    has_status=True,
    rules=Rules(
        validate_create=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
    ),
    columns=(
        NAME,
        Column("Request", description="What is asked for and counted, of how much."),
        Column("Limit", description="What may be used, of how much."),
        AGE,
    ),
    cells=_quota_cells,
)

# -- limit ranges -------------------------------------------------------------------------------

_BOUNDS = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")


def _default_limits(limit_range: Fields, now: datetime) -> None:
    """For containers, what is not said follows from what is: max -> default -> defaultRequest <- min."""
    for limit in items(limit_range, "spec", "limits"):
        if limit.get("type") != "Container":
            continue
        usual = {**obj(limit, "max"), **obj(limit, "default")}
        asked = {**obj(limit, "min"), **usual, **obj(limit, "defaultRequest")}
        if usual:
            limit["default"] = usual
        if asked:
            limit["defaultRequest"] = asked


def _validate_limits(limit_range: Fields) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, limit in enumerate(items(limit_range, "spec", "limits")):
        at, kind = (_SPEC / "limits")[index], limit.get("type") or ""
        found += [invalid(at / "type", kind, wrong) for wrong in names.qualified(kind)]
        if kind in seen:
            found.append(duplicate(at / "type", kind))
        seen.add(kind)
        for bound in _BOUNDS:
            for name, written in obj(limit, bound).items():
                found += validate_resource_name(name, (at / bound)[name])
                found += validate_amount(name, written, (at / bound)[name])
        found += _validate_order(limit, at)
    return found


def _validate_order(limit: Fields, path: Path) -> list[FieldError]:
    """min <= defaultRequest <= default <= max, wherever two of them are said."""
    order = ("min", "defaultRequest", "default", "max")
    found: list[FieldError] = []
    for low_at, low in enumerate(order):
        for high in order[low_at + 1 :]:
            for name in obj(limit, low).keys() & obj(limit, high).keys():
                lower, upper = parse(limit[low][name]), parse(limit[high][name])
                if lower is not None and upper is not None and lower > upper:
                    text = f"{low} value {limit[low][name]} is greater than {high} value {limit[high][name]}"
                    found.append(invalid((path / low)[name], limit[low][name], text))
    return found


LIMIT_RANGE = Kind(
    group="",
    kind="LimitRange",
    plural="limitranges",
    singular="limitrange",
    short_names=("limits",),
    versions=(Version("v1", "io.k8s.api.core.v1.LimitRange", default=_default_limits),),
    hub="v1",
    rules=Rules(
        validate_create=lambda new, context: _validate_limits(new),
        validate_update=lambda new, old, context: _validate_limits(new),
    ),
    columns=(NAME, Column("Created At", description="When the object was created.")),
    cells=lambda fields, age: [
        fields["metadata"]["name"], section(fields, "metadata").get("creationTimestamp", ""),
    ],
)  # fmt: skip
