"""Checks that several kinds of resource.k8s.io share: names, parameters, tolerations, taints."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from .. import field, names
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from . import limits
from .found import Found, each

# semver.org 2.0.0; the length is bounded before anything is made of the numbers.
_NUMBER = r"(?:0|[1-9][0-9]*)"
_PRERELEASE = r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def size(text: str) -> int:
    """Upstream counts bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def _report(found: Found, errors: list[FieldError], declared: bool) -> None:
    (found.declare if declared else found.add)(*errors)


def _invalid(path: Path, value: Any, texts: list[str]) -> list[FieldError]:
    return [field.invalid(path, value, text) for text in texts]


# Names


def driver_name(found: Found, name: str, path: Path, *, declared: bool = False) -> None:
    _report(found, _driver_name(name, path), declared)


def _driver_name(name: str, path: Path) -> list[FieldError]:
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, limits.DRIVER_NAME_MAX)] if size(name) > limits.DRIVER_NAME_MAX else []
    return errors + _invalid(path, name, names.subdomain(name.lower()))


def pool_name(found: Found, name: str, path: Path, *, declared: bool = False) -> None:
    _report(found, _pool_name(name, path), declared)


def _pool_name(name: str, path: Path) -> list[FieldError]:
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, limits.POOL_NAME_MAX)] if size(name) > limits.POOL_NAME_MAX else []
    for part in name.split("/"):
        errors += _invalid(path, part, names.subdomain(part))
    return errors


def device_name(found: Found, name: str, path: Path) -> None:
    found.texts(path, name, names.label_name(name))


def class_name(found: Found, name: str, path: Path, *, declared: bool = False) -> None:
    _report(found, _class_name(name, path), declared)


def _class_name(name: str, path: Path) -> list[FieldError]:
    return _invalid(path, name, names.subdomain(name)) if name else [field.required(path)]


def node_name(found: Found, name: str, path: Path) -> None:
    found.texts(path, name, names.subdomain(name))


def label_required(found: Found, name: str, path: Path) -> None:
    """A declared RFC 1123 label that must be there: counters and their sets."""
    if name:
        found.texts(path, name, names.label_name(name), declared=True)
    else:
        found.declare(field.required(path))


def qualified_name(found: Found, name: str, path: Path, *, declared: bool = False) -> None:
    _report(found, _qualified_name(name, path), declared)


def _qualified_name(name: str, path: Path) -> list[FieldError]:
    """`name` or `domain/name`. A second slash is let through: so is it upstream."""
    if len(name) <= limits.IDENTIFIER_MAX and _is_identifier(name):
        return []
    parts = name.split("/")
    if len(parts) == 1:
        return _identifier(name, path)
    if len(parts) > 2:
        return []
    domain, own = parts
    errors = (
        _driver_name(domain, path) if domain else [field.invalid(path, "", "the domain must not be empty")]
    )
    return errors + (
        _identifier(own, path) if own else [field.invalid(path, "", "the name must not be empty")]
    )


@lru_cache(maxsize=4096)
def _is_identifier(name: str) -> bool:
    """All devices of a fleet have the same few attributes, and slices have thousands of them."""
    return not names.c_identifier(name)


def full_name_errors(name: str, path: Path) -> list[FieldError]:
    errors = _qualified_name(name, path)
    if "/" not in name:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(field.invalid(path, name, text))
    return errors


def full_name(found: Found, name: str, path: Path) -> None:
    """A declared check: `domain/name`, the domain not left out."""
    found.declare(*full_name_errors(name, path))


def _identifier(name: str, path: Path) -> list[FieldError]:
    errors = [field.too_long(path, limits.IDENTIFIER_MAX)] if size(name) > limits.IDENTIFIER_MAX else []
    return errors + _invalid(path, name, names.c_identifier(name))


# Whether a name is fine: the checks above say what is wrong, these are quick to say that nothing is.
# A fleet has few names, which come back in every claim; long ones would only fill the memory.


def is_label(name: str) -> bool:
    return len(name) <= names.LABEL_MAX and _is_label(name)


def is_driver_name(name: str) -> bool:
    return len(name) <= limits.DRIVER_NAME_MAX and _is_driver_name(name)


def is_pool_name(name: str) -> bool:
    return len(name) <= limits.POOL_NAME_MAX and _is_pool_name(name)


def is_class_name(name: str) -> bool:
    return len(name) <= names.SUBDOMAIN_MAX and _is_class_name(name)


@lru_cache(maxsize=4096)
def _is_label(name: str) -> bool:
    return not names.label_name(name)


@lru_cache(maxsize=4096)
def _is_driver_name(name: str) -> bool:
    return not _driver_name(name, Path())


@lru_cache(maxsize=4096)
def _is_pool_name(name: str) -> bool:
    return not _pool_name(name, Path())


@lru_cache(maxsize=4096)
def _is_class_name(name: str) -> bool:
    return not _class_name(name, Path())


def share_id(found: Found, value: str | None, path: Path) -> None:
    if value is not None and not _UUID.fullmatch(value):
        found.declare(field.invalid(path, value, "must be a lowercase UUID in 8-4-4-4-12 format"))


def is_semver(text: str) -> bool:
    return len(text) <= 10 * limits.ATTRIBUTE_VALUE_MAX and _SEMVER.fullmatch(text) is not None


# Selectors and parameters


def selectors(found: Found, listed: Sequence[Fields], path: Path, context: WriteContext | None) -> None:
    """Without a context the expressions are stored ones, which nobody judges again."""
    each(found, listed, limits.SELECTORS_MAX, path, lambda one, at: _selector(found, one, at, context))


def _selector(found: Found, selector: Fields, path: Path, context: WriteContext | None) -> None:
    cel = selector.get("cel")
    if cel is None:
        found.add(field.required(path / "cel"))
    elif context is not None:
        _expression(found, cel.get("expression") or "", path / "cel" / "expression", context)


def _expression(found: Found, expression: str, path: Path, context: WriteContext) -> None:
    if size(expression) > limits.EXPRESSION_MAX:
        found.add(field.too_long(path, limits.EXPRESSION_MAX))
        return
    problem = context.check_selector(expression)
    if problem is not None:
        found.add(expression_error(path, expression, problem.wrong, problem.detail))


def expression_error(path: Path, expression: str, wrong: str, detail: str) -> FieldError:
    match wrong:
        case "too_long":
            return field.too_long(path, limits.EXPRESSION_MAX)
        case "forbidden":
            return field.forbidden(path, detail)
        case _:
            return field.invalid(path, expression, detail)


def opaque(found: Found, config: Fields, path: Path, *, stored: bool = False) -> None:
    parameters = config.get("opaque")
    if parameters is None:
        found.add(field.required(path / "opaque"))
        return
    driver_name(found, parameters.get("driver") or "", path / "opaque" / "driver", declared=True)
    raw_object(found, parameters.get("parameters"), path / "opaque" / "parameters", stored=stored)


def raw_object(found: Found, value: Any, path: Path, *, stored: bool = False) -> None:
    """A driver's own JSON: an object, and not too large when it is new."""
    if value is None:
        found.add(field.required(path))
    elif not stored and len(msgspec.json.encode(value)) > limits.OPAQUE_MAX:
        found.add(field.too_long(path, limits.OPAQUE_MAX))
    elif not isinstance(value, Mapping):
        found.add(field.invalid(path, "<value omitted>", "must be a valid JSON object"))


# Taints and tolerations


def taint(found: Found, taint: Fields, path: Path) -> None:
    key, value, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
    found.texts(path / "key", key, names.qualified(key))
    if value:
        found.texts(path / "value", value, names.label_value(value))
    if not effect:
        found.declare(field.required(path / "effect"))
    elif effect not in limits.TAINT_EFFECTS:
        found.declare(field.unsupported(path / "effect", effect, limits.TAINT_EFFECTS))


def tolerations(found: Found, listed: Sequence[Fields], path: Path) -> None:
    each(found, listed, None, path, lambda one, at: _toleration(found, one, at))


def _toleration(found: Found, toleration: Fields, path: Path) -> None:
    key, operator, value, effect = (
        toleration.get(name) or "" for name in ("key", "operator", "value", "effect")
    )
    if key:
        found.texts(path / "key", key, names.qualified(key), declared=True)
    if operator == "Exists":
        if value:
            found.add(field.invalid(path / "value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        found.texts(path / "value", value, names.label_value(value))
    else:
        found.declare(field.unsupported(path / "operator", operator, limits.TOLERATION_OPERATORS))
    if effect and effect not in limits.TAINT_EFFECTS:
        found.declare(field.unsupported(path / "effect", effect, limits.TAINT_EFFECTS))


# What devices and allocation results have in common


def binding_conditions(found: Found, holder: Fields, path: Path) -> None:
    wait_for, give_up_on = ("bindingConditions", "bindingFailureConditions")
    good, bad = holder.get(wait_for), holder.get(give_up_on)
    for name, listed in ((wait_for, good), (give_up_on, bad)):
        each(found, listed or (), limits.BINDING_CONDITIONS_MAX, path / name,
             lambda one, at: found.texts(at, one, names.qualified(one)))  # fmt: skip
    _no_duplicates(found, good or (), path / wait_for)
    _no_duplicates(found, bad or (), path / give_up_on)
    for at, condition in enumerate(bad or ()):
        if condition in (good or ()):
            text = f"{give_up_on} must not overlap with {wait_for}"
            found.add(field.invalid((path / give_up_on)[at], condition, text))
    for missing, present in ((wait_for, give_up_on), (give_up_on, wait_for)):
        if holder.get(present) and not holder.get(missing):
            text = f"{missing} are required to use {present}"
            found.add(field.invalid(path / missing, holder.get(missing), text))


def _no_duplicates(found: Found, listed: Sequence[str], path: Path) -> None:
    for at, one in enumerate(listed):
        if one in listed[:at]:
            found.add(field.duplicate(path[at], one))


def skip_node_operations(found: Found, listed: Sequence[str] | None, path: Path) -> None:
    skipped = listed or ()
    if "NodePrepareResources" in skipped and not {"NodeUnprepareResources", "*"} & set(skipped):
        text = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        found.add(field.invalid(path, list(skipped), text))
    for at, one in enumerate(skipped):
        if one not in limits.SKIPPABLE_NODE_OPERATIONS:
            found.declare(field.unsupported(path[at], one, limits.SKIPPABLE_NODE_OPERATIONS))
        if one in skipped[:at]:
            found.declare(field.duplicate(path[at], one))
