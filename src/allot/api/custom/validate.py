"""An object against the validation keywords of its schema."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from .. import names
from ..field import FieldError, Path, Wrong, duplicate, invalid, required, too_many, unsupported
from ..schema import BY_KEY, SET, Schema, Type
from .patterns import compiled

ERRORS_MAX = 64
"""A client needs to see some of what is wrong, not all of it."""


def validate(value: Any, schema: Schema) -> list[FieldError]:
    found = []
    for error in _visit(value, schema, Path()):
        found.append(error)
        if len(found) == ERRORS_MAX:
            break
    return found


def _visit(value: Any, schema: Schema, path: Path) -> Iterator[FieldError]:
    if value is None:
        if not schema.nullable:
            yield FieldError(Wrong.TYPE_INVALID, path, f"must be of type {schema.type.value}: null", "null")
        return
    yield from _keywords(value, schema.validation, path)
    yield from _format(value, schema.format, path)
    if schema.type is Type.OBJECT and isinstance(value, dict):
        for name in sorted(schema.required):
            if name not in value:
                yield required(path / name)
        for name, member in value.items():
            inner = schema.fields.get(name)
            # Metadata has rules of its own, for every kind.
            if inner is not None and not (name == "metadata" and str(path) == ""):
                yield from _visit(member, inner, path / name)
    elif schema.type is Type.MAP and isinstance(value, dict) and schema.element is not None:
        for name, member in value.items():
            yield from _visit(member, schema.element, path / name)
    elif schema.type is Type.LIST and isinstance(value, list):
        yield from _list(value, schema, path)


def _list(value: list[Any], schema: Schema, path: Path) -> Iterator[FieldError]:
    if schema.list_type in (SET, BY_KEY):
        seen: set[str] = set()
        for at, member in enumerate(value):
            identity = member
            if schema.list_type == BY_KEY and isinstance(member, dict):
                identity = {key: member.get(key) for key in schema.keys}
            text = repr(identity)
            if text in seen:
                yield duplicate(path[at], identity)
            seen.add(text)
    for at, member in enumerate(value):
        if schema.element is not None:
            yield from _visit(member, schema.element, path[at])


def _keywords(value: Any, rules: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if not rules:
        return
    if "enum" in rules and value not in rules["enum"]:
        yield unsupported(path, value, [str(one) for one in rules["enum"]])
    if isinstance(value, bool):
        pass
    elif isinstance(value, int | float):
        yield from _number(value, rules, path)
    elif isinstance(value, str):
        yield from _string(value, rules, path)
    elif isinstance(value, list):
        yield from _size(len(value), rules, path, "minItems", "maxItems", "items")
    elif isinstance(value, dict):
        yield from _size(len(value), rules, path, "minProperties", "maxProperties", "properties")
    yield from _logic(value, rules, path)


def _number(value: float, rules: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    least, most = rules.get("minimum"), rules.get("maximum")
    if least is not None and (value < least or (rules.get("exclusiveMinimum") and value == least)):
        than = "greater than" if rules.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid(path, value, f"should be {than} {least}")
    if most is not None and (value > most or (rules.get("exclusiveMaximum") and value == most)):
        than = "less than" if rules.get("exclusiveMaximum") else "less than or equal to"
        yield invalid(path, value, f"should be {than} {most}")
    step = rules.get("multipleOf")
    if step and not _is_multiple(value, step):
        yield invalid(path, value, f"should be a multiple of {step}")


def _is_multiple(value: float, step: float) -> bool:
    quotient = value / step
    # Beyond what a float holds every number is taken for a multiple.
    return not math.isfinite(quotient) or math.isclose(quotient, round(quotient), abs_tol=1e-9)


def _string(value: str, rules: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if len(value) < rules.get("minLength", 0):
        yield invalid(path, value, f"should be at least {rules['minLength']} chars long")
    most = rules.get("maxLength")
    if most is not None and len(value) > most:
        yield FieldError(Wrong.TOO_LONG, path, f"may not be more than {most} chars")
    pattern = rules.get("pattern")
    if pattern is not None:
        searched = compiled(pattern)
        if searched is None or not searched.search(value):
            yield invalid(path, value, f"should match '{pattern}'")


def _size(
    size: int, rules: Mapping[str, Any], path: Path, least: str, most: str, what: str
) -> Iterator[FieldError]:
    if size < rules.get(least, 0):
        yield invalid(path, size, f"should have at least {rules[least]} {what}")
    if rules.get(most) is not None and size > rules[most]:
        yield too_many(path, size, rules[most])


def _logic(value: Any, rules: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for branch in rules.get("allOf") or ():
        yield from _branch(value, branch, path)
    if rules.get("anyOf") and not any(_accepts(value, branch, path) for branch in rules["anyOf"]):
        yield invalid(path, value, "must validate at least one schema (anyOf)")
    if rules.get("oneOf"):
        accepted = sum(_accepts(value, branch, path) for branch in rules["oneOf"])
        if accepted != 1:
            yield invalid(path, value, f"must validate one and only one schema (oneOf), not {accepted}")
    if rules.get("not") is not None and _accepts(value, rules["not"], path):
        yield invalid(path, value, "must not validate the schema (not)")


def _accepts(value: Any, branch: Mapping[str, Any], path: Path) -> bool:
    return next(_branch(value, branch, path), None) is None


def _branch(value: Any, branch: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """A branch of a logical keyword: rules without a shape of their own."""
    type_ = branch.get("type")
    if type_ and not _is(value, type_):
        yield invalid(path, value, f"must be of type {type_}")
        return
    yield from _keywords(value, branch, path)
    if isinstance(value, dict):
        for name in branch.get("required") or ():
            if name not in value:
                yield required(path / name)
        for name, inner in (branch.get("properties") or {}).items():
            if name in value:
                yield from _branch(value[name], inner, path / name)
    elif isinstance(value, list) and isinstance(branch.get("items"), Mapping):
        for at, member in enumerate(value):
            yield from _branch(member, branch["items"], path[at])


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list, "boolean": bool, "integer": int, "number": (int, float), "object": dict, "string": str,
}  # fmt: skip


def _is(value: Any, type_: str) -> bool:
    if isinstance(value, bool):
        return type_ == "boolean"
    return isinstance(value, _TYPES.get(type_, object))


_UUID = re.compile("^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$")


def _format(value: Any, format_: str, path: Path) -> Iterator[FieldError]:
    if not format_ or not isinstance(value, str):
        return
    wrong = False
    match format_:
        case "date-time":
            wrong = not _is_date_time(value)
        case "date":
            wrong = not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value)
        case "uuid":
            wrong = not _UUID.match(value)
        case "ipv4" | "ipv6":
            wrong = not _is_address(value, 4 if format_ == "ipv4" else 6)
        case "hostname":
            wrong = bool(names.subdomain(value.lower()))
    if wrong:
        yield invalid(path, value, f"must be a valid {format_}")


def _is_date_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return "T" in value


def _is_address(value: str, version: int) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(value).version == version
    except ValueError:
        return False
