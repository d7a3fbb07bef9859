"""What a ResourceClass may say."""

from collections.abc import Callable, Mapping
from typing import Any

from .. import errors, field, names, standard
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..quantity import Quantity
from . import limits, naming, numbers

_SPEC = Path("spec")
_MISSPELT = ("labelSelector", "resourceSelectorRequirements")
_SCOPES = (limits.NODE_SCOPE, limits.CLUSTER_SCOPE)
_COUNT_MAX = 1024
_INT32 = 2**31
_TOGETHER = "may not be set beside `members`"


def refuse_misspelt(body: Fields) -> None:
    """Selectors in spellings that KEP-14 has in examples only. Dropped as unknown fields they would widen the
    class to everything, so nobody may write them, strictly checked or not."""
    spec = body.get("spec")
    wrong = [name for name in _MISSPELT if isinstance(spec, dict) and name in spec]
    if wrong:
        name = (body.get("metadata") or {}).get("name") if isinstance(body.get("metadata"), dict) else ""
        said = [field.forbidden(_SPEC / one, "write `resourceSelector`") for one in wrong]
        refused: errors.Invalid = field.refusal(limits.GROUP, "ResourceClass", str(name or ""), said)
        raise refused


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    name = (new.get("metadata") or {}).get("name") or ""
    found = [field.invalid(Path("metadata.name"), name, wrong) for wrong in naming.wrong_class_name(name)]
    return found + _spec_errors(new.get("spec") or {})


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    """A class may change in every part: what was given out is written in the pods that have it."""
    return _spec_errors(new.get("spec") or {})


def unusable(stored: Mapping[str, Any]) -> str:
    """Why nobody may go by a class, in words; nothing if one may. Other servers store what ours refuses, and
    half a selector would select more than was meant."""
    found = _spec_errors(stored.get("spec") or {})
    return f"{found[0].path}: {found[0].text()}" if found else ""


def _spec_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    found: list[FieldError] = []
    if spec.get("scope") and spec["scope"] not in _SCOPES:
        found.append(field.unsupported(_SPEC / "scope", spec["scope"], _SCOPES))
    if not -_INT32 <= (spec.get("priority") or 0) < _INT32:
        found.append(field.invalid(_SPEC / "priority", spec["priority"], "must fit 32 bits"))
    if device_class := spec.get("deviceClassName"):
        found += _texts(_SPEC / "deviceClassName", device_class, names.subdomain)
    if spec.get("members"):
        return found + _group_errors(spec)
    if spec.get("sameProperty"):
        found.append(field.forbidden(_SPEC / "sameProperty", "may only be set beside `members`"))
    return found + _raw_errors(spec, _SPEC) + _selector_errors(spec, _SPEC)


def _raw_errors(holder: Mapping[str, Any], path: Path) -> list[FieldError]:
    raw = holder.get("resourceName") or ""
    if not raw:
        return [field.required(path / "resourceName")]
    return _texts(path / "resourceName", raw, naming.wrong_raw_name)


def _texts(path: Path, value: str, check: Callable[[str], list[str]]) -> list[FieldError]:
    return [field.invalid(path, value, wrong) for wrong in check(value)]


# Selectors


def _selector_errors(holder: Mapping[str, Any], path: Path) -> list[FieldError]:
    alternatives, at = holder.get("resourceSelector") or (), path / "resourceSelector"
    if len(alternatives) > limits.ALTERNATIVES_MAX:
        return [field.too_many(at, len(alternatives), limits.ALTERNATIVES_MAX)]
    found: list[FieldError] = []
    for index, alternative in enumerate(alternatives):
        needs, where = (alternative or {}).get("matchExpressions") or (), at[index] / "matchExpressions"
        if not needs:
            found.append(field.required(where, "must have an expression: without one it would say nothing"))
        elif len(needs) > limits.EXPRESSIONS_MAX:
            found.append(field.too_many(where, len(needs), limits.EXPRESSIONS_MAX))
        else:
            for one, need in enumerate(needs):
                found += _expression_errors(need or {}, where[one])
    return found


_VALUES = {
    "In": (1, limits.VALUES_MAX),
    "NotIn": (1, limits.VALUES_MAX),
    "Exists": (0, 0),
    "DoesNotExist": (0, 0),
    "Gt": (1, 1),
    "Lt": (1, 1),
}
"""Operator -> how many values it takes."""


def _expression_errors(need: Fields, path: Path) -> list[FieldError]:
    key, operator = need.get("key") or "", need.get("operator") or ""
    values: list[str] = need.get("values") or []
    found = _texts(path / "key", key, names.qualified) if key else [field.required(path / "key")]
    if not operator:
        return [*found, field.required(path / "operator")]
    if operator not in _VALUES:
        return [*found, field.unsupported(path / "operator", operator, tuple(_VALUES))]
    least, most = _VALUES[operator]
    if len(values) > most:
        wrong = "may not be specified" if most == 0 else f"must be no more than {most} for `{operator}`"
        return [*found, field.invalid(path / "values", values, wrong)]
    if len(values) < least:
        return [*found, field.required(path / "values", f"must be specified for `{operator}`")]
    if operator in ("Gt", "Lt") and numbers.parse(values[0]) is None:
        wrong = "must be a number, with a unit if need be, as 15G or 40GBPS"
        found.append(field.invalid((path / "values")[0], values[0], wrong))
    return found


# Groups


def _group_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    members, path = spec["members"], _SPEC / "members"
    found = [
        field.forbidden(_SPEC / part, _TOGETHER)
        for part in ("resourceName", "resourceSelector", "deviceClassName")
        if spec.get(part)
    ]
    if spec.get("scope") == limits.CLUSTER_SCOPE:
        found.append(field.forbidden(_SPEC / "scope", "a group is of one node"))
    if len(members) > limits.MEMBERS_MAX:
        return [*found, field.too_many(path, len(members), limits.MEMBERS_MAX)]
    for index, member in enumerate(members):
        found += _member_errors(member or {}, path[index])
    if not any("/" in ((member or {}).get("resourceName") or "") for member in members):
        found.append(field.invalid(path, members, "must have a member that is a device"))
    shared = spec.get("sameProperty") or ()
    if len(shared) > limits.SHARED_MAX:
        return [*found, field.too_many(_SPEC / "sameProperty", len(shared), limits.SHARED_MAX)]
    for index, key in enumerate(shared):
        found += _texts((_SPEC / "sameProperty")[index], key, names.qualified)
    return found


def _member_errors(member: Fields, path: Path) -> list[FieldError]:
    raw = member.get("resourceName") or ""
    if "/" in raw or not raw:
        found = _raw_errors(member, path) + _selector_errors(member, path)
        if member.get("amount"):
            found.append(field.forbidden(path / "amount", "is for native resources; devices have a `count`"))
        if not 1 <= (1 if member.get("count") is None else member["count"]) <= _COUNT_MAX:
            wrong = f"must be between 1 and {_COUNT_MAX}, inclusive"
            found.append(field.invalid(path / "count", member["count"], wrong))
        return found
    found = [
        field.forbidden(path / part, "is for devices; native resources have an `amount`")
        for part in ("count", "resourceSelector")
        if member.get(part)
    ]
    if raw not in standard.CONTAINER and not raw.startswith(standard.HUGE_PAGES):
        found.append(field.unsupported(path / "resourceName", raw, standard.CONTAINER))
    return found + _amount_errors(member.get("amount"), path / "amount")


def _amount_errors(written: Any, path: Path) -> list[FieldError]:
    if not written:
        return [field.required(path)]
    try:
        amount = Quantity.parse(written)
    except ValueError:
        return [field.invalid(path, written, "must be a quantity, as 1G or 500m")]
    return [] if amount.sign > 0 else [field.invalid(path, written, "must be greater than 0")]
