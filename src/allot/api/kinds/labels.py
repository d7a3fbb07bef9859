"""Labels and the selectors that look at them: are they well formed, and do they match?"""

from collections.abc import Mapping
from typing import Any

from .. import names
from ..field import FieldError, Path, forbidden, invalid, required
from .reading import items, obj


def validate_labels(labels: Mapping[str, Any], path: Path) -> list[FieldError]:
    found = []
    for key, value in labels.items():
        found += [invalid(path, key, wrong) for wrong in names.qualified(key)]
        found += [invalid(path, value, wrong) for wrong in names.label_value(str(value))]
    return found


def validate_selector(selector: Mapping[str, Any], path: Path) -> list[FieldError]:
    """A LabelSelector object. Where an empty one is not allowed the caller says so."""
    found = validate_labels(obj(selector, "matchLabels"), path / "matchLabels")
    for index, need in enumerate(items(selector, "matchExpressions")):
        found += _validate_requirement(need, (path / "matchExpressions")[index])
    return found


def _validate_requirement(need: Mapping[str, Any], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    operator, values = need.get("operator") or "", items(need, "values")
    if operator in ("In", "NotIn"):
        if not values:
            found.append(required(path / "values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            found.append(
                forbidden(
                    path / "values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
            )
    else:
        found.append(invalid(path / "operator", operator, "not a valid selector operator"))
    key = need.get("key") or ""
    found += [invalid(path / "key", key, wrong) for wrong in names.qualified(key)]
    for index, value in enumerate(values):
        found += [invalid((path / "values")[index], value, wrong) for wrong in names.label_value(value)]
    return found


def is_empty(selector: Mapping[str, Any]) -> bool:
    return not obj(selector, "matchLabels") and not items(selector, "matchExpressions")


def matches(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Does a LabelSelector object accept these labels? An empty one accepts all."""
    if any(labels.get(key) != value for key, value in obj(selector, "matchLabels").items()):
        return False
    return all(_accepts(need, labels) for need in items(selector, "matchExpressions"))


def _accepts(need: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    value = labels.get(need.get("key") or "")
    match need.get("operator"):
        case "In":
            return value in items(need, "values")
        case "NotIn":
            return value not in items(need, "values")
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A LabelSelector object as `kubectl get -o wide` and the scale subresource write it."""
    if not selector:
        return "<none>"
    parts = []
    for key, value in sorted(obj(selector, "matchLabels").items()):
        parts.append((key, f"{key}={value}"))
    for need in items(selector, "matchExpressions"):
        parts.append((need.get("key", ""), _requirement_text(need)))
    return ",".join(text for _, text in sorted(parts)) or "<none>"


def _requirement_text(need: Mapping[str, Any]) -> str:
    key, values = need.get("key", ""), ",".join(sorted(items(need, "values")))
    match need.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return str(key)
