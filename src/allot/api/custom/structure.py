"""Is a schema structural?

A structural schema says a type for every value that it mentions, outside of the
logical keywords, so that a server knows the shape of an object before it
validates it. Only then can unknown fields be pruned and defaults be set.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..field import FieldError, Path, forbidden, invalid, required, unsupported
from .patterns import compiled

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES = ("atomic", "set", "map")
_LOGICAL = ("allOf", "anyOf", "oneOf", "not")
_INSIDE_LOGIC_FORBIDDEN = ("additionalProperties", "default", "nullable", "type", "title", "description")
_DEPTH_MAX = 100


def check_structural(schema: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Everything that keeps a root schema from being structural."""
    if schema.get("type") != "object":
        return [invalid(path / "type", schema.get("type", ""), "must be object at the root")]
    return [*_check_metadata(schema, path), *_check(schema, path, 0)]


def _check_metadata(schema: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Metadata is the same for every kind; a schema may narrow the name and nothing else."""
    metadata = (schema.get("properties") or {}).get("metadata")
    said = (metadata.get("properties") or {}) if isinstance(metadata, Mapping) else {}
    if [name for name in said if name not in ("name", "generateName")]:
        text = "must not specify anything other than name and generateName"
        yield forbidden((path / "properties")["metadata"], text)


def _check(schema: Any, path: Path, depth: int) -> Iterator[FieldError]:
    if not isinstance(schema, Mapping) or depth > _DEPTH_MAX:
        yield invalid(path, None, "must be a schema, nested less than a hundred levels")
        return
    yield from _check_type(schema, path)
    yield from _check_list(schema, path)
    if schema.get("uniqueItems"):
        yield forbidden(path / "uniqueItems", "uniqueItems cannot be set to true: checking it costs too much")
    if "$ref" in schema:
        yield forbidden(path / "$ref", "$ref is not supported")
    if schema.get("properties") and schema.get("additionalProperties") is not None:
        yield forbidden(
            path / "additionalProperties", "additionalProperties and properties exclude each other"
        )
    yield from _check_pattern(schema, path)
    yield from _check_default(schema, path)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _check(inner, (path / "properties")[name], depth + 1)
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _check(schema["additionalProperties"], path / "additionalProperties", depth + 1)
    if schema.get("items") is not None:
        yield from _check(schema["items"], path / "items", depth + 1)
    yield from _check_logic(schema, path)


def _check_type(schema: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    type_ = schema.get("type", "")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not type_ and not free:
        yield required(path / "type", "must not be empty for specified object fields")
    elif type_ and type_ not in _TYPES:
        yield unsupported(path / "type", type_, _TYPES)
    if type_ and schema.get("x-kubernetes-int-or-string"):
        yield invalid(path / "type", type_, "must be empty if x-kubernetes-int-or-string is true")
    if schema.get("x-kubernetes-embedded-resource") and type_ != "object":
        yield invalid(path / "type", type_, "must be object if x-kubernetes-embedded-resource is true")


_SHAPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "string": str,
}


def _check_default(schema: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """A default is written into objects, so it must be what the schema asks of them."""
    default, type_ = schema.get("default"), schema.get("type", "")
    if default is None or type_ not in _SHAPES:
        return
    fits = isinstance(default, _SHAPES[type_]) and isinstance(default, bool) == (type_ == "boolean")
    if not fits:
        yield invalid(path / "default", default, f"must be of type {type_}")


def _check_list(schema: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if schema.get("type") == "array" and schema.get("items") is None:
        yield required(path / "items", "must be specified")
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if kind is not None and kind not in _LIST_TYPES:
        yield unsupported(path / "x-kubernetes-list-type", kind, _LIST_TYPES)
    if kind is not None and schema.get("type") != "array":
        yield invalid(
            path / "type", schema.get("type", ""), "must be array if x-kubernetes-list-type is specified"
        )
    if kind == "map" and not keys:
        yield required(
            path / "x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map"
        )
    if keys and kind != "map":
        yield invalid(path / "x-kubernetes-list-type", kind or "", "must be map if list-map-keys are set")
    items = schema.get("items")
    inner = (items.get("properties") or {}) if isinstance(items, Mapping) else {}
    for at, key in enumerate(keys):
        if kind == "map" and key not in inner:
            yield invalid((path / "x-kubernetes-list-map-keys")[at], key, "must be a property of the items")


def _check_logic(schema: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for keyword in _LOGICAL:
        inner = schema.get(keyword)
        branches = inner if isinstance(inner, list) else [inner] if inner is not None else []
        for at, branch in enumerate(branches):
            where = path / keyword if keyword == "not" else (path / keyword)[at]
            for name in _INSIDE_LOGIC_FORBIDDEN if isinstance(branch, Mapping) else ():
                if name in branch and not (schema.get("x-kubernetes-int-or-string") and name == "type"):
                    yield forbidden(where / name, "must be empty to be structural")
            yield from _check_branch(branch, where, 0)


def _check_branch(branch: Any, path: Path, depth: int) -> Iterator[FieldError]:
    """Within a logical keyword only what will be searched with matters."""
    if not isinstance(branch, Mapping) or depth > _DEPTH_MAX:
        yield invalid(path, None, "must be a schema, nested less than a hundred levels")
        return
    yield from _check_pattern(branch, path)
    for name, inner in (branch.get("properties") or {}).items():
        yield from _check_branch(inner, (path / "properties")[name], depth + 1)
    for name in ("items", "not"):
        if branch.get(name) is not None:
            yield from _check_branch(branch[name], path / name, depth + 1)
    for name in ("allOf", "anyOf", "oneOf"):
        for at, inner in enumerate(branch.get(name) or ()):
            yield from _check_branch(inner, (path / name)[at], depth + 1)


def _check_pattern(schema: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and compiled(pattern) is None:
        yield invalid(path / "pattern", pattern, "must be a valid regular expression, but isn't")
