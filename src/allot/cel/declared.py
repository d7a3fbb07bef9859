"""What the shape of a custom resource means to its rules: types, sizes, and values of those types.

    declare(shape)         the type of `self`, with the fields of every object in it
    size_of(shape)         how large a part of it can be, for the estimate of costs
    value_of(json, shape)  the value that a rule computes with

A property whose name is no identifier of the language is reached by an escaped name (`x-y` as `x__dash__y`,
`namespace` as `__namespace__`); one that cannot be escaped cannot be reached. Of metadata a rule sees the
name and the generated name alone. Objects that keep unknown fields and declare none are `dyn`.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, Final

from allot.api import schema

from . import types
from .errors import EvaluationError
from .hints import Path
from .library import times
from .span import Span
from .types import Kind, Type, list_of, map_of

Schema = schema.Schema
Shape = schema.Type

REQUEST_BYTES_MAX: Final = 3 * 1024 * 1024
"""What says nothing of its size is as large as a request can be."""

_METADATA = ("name", "generateName")
_RESERVED: Final = frozenset(
    ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
     "import", "let", "loop", "package", "namespace", "return", "var", "void", "while")
)  # fmt: skip
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_IDENTIFIER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_TEXTS: Final = {
    "date-time": types.TIMESTAMP,
    "date": types.TIMESTAMP,
    "duration": types.DURATION,
    "byte": types.BYTES,
}
_SCALARS: Final = {Shape.BOOLEAN: types.BOOL, Shape.INTEGER: types.INT, Shape.NUMBER: types.DOUBLE}


def escaped(name: str) -> str | None:
    """How a rule calls a property, or None if it cannot."""
    if name in _RESERVED:
        return f"__{name}__"
    for part, spelled in _ESCAPES:
        name = name.replace(part, spelled)
    return name if _IDENTIFIER.fullmatch(name) else None


def declare(shape: Schema, name: str = "selfType") -> tuple[Type, dict[Type, dict[str, Type]]]:
    fields: dict[Type, dict[str, Type]] = {}

    def typed(one: Schema, path: str, root: bool = False) -> Type:
        match one.type:
            case Shape.OBJECT:
                if not one.fields:
                    return types.DYN if one.preserves_unknown else map_of(types.STRING, types.DYN)
                made = Type(Kind.STRUCT, path)
                fields[made] = {}
                for field_name, member in one.fields.items():
                    called = escaped(field_name)
                    if called is not None:
                        fields[made][called] = (
                            metadata_type
                            if field_name == "metadata" and (root or one.embedded)
                            else typed(member, f"{path}.{field_name}")
                        )
                return made
            case Shape.LIST if one.element is not None:
                return list_of(typed(one.element, f"{path}.@items"))
            case Shape.MAP if one.element is not None:
                return map_of(types.STRING, typed(one.element, f"{path}.@values"))
            case Shape.STRING:
                return _TEXTS.get(one.format, types.STRING)
        return _SCALARS.get(one.type, types.DYN)

    metadata_type = Type(Kind.STRUCT, f"{name}.metadata")
    fields[metadata_type] = dict.fromkeys(_METADATA, types.STRING)
    return typed(shape, name, root=True), fields


# -- values -----------------------------------------------------------------------------------------


def value_of(value: Any, shape: Schema, root: bool = False) -> Any:
    """Raises EvaluationError for a text that is not what its format says."""
    if value is None:
        return None
    match shape.type:
        case Shape.OBJECT if isinstance(value, dict) and shape.fields:
            return {
                called: (
                    {key: member[key] for key in _METADATA if key in member}
                    if name == "metadata" and (root or shape.embedded) and isinstance(member, dict)
                    else value_of(member, shape.fields[name])
                )
                for name, member in value.items()
                if name in shape.fields and (called := escaped(name)) is not None
            }
        case Shape.MAP if isinstance(value, dict) and shape.element is not None:
            return {key: value_of(member, shape.element) for key, member in value.items()}
        case Shape.LIST if isinstance(value, list) and shape.element is not None:
            return [value_of(member, shape.element) for member in value]
        case Shape.NUMBER if type(value) is int:
            return float(value)
        case Shape.STRING if shape.format in _READERS:
            return _READERS[shape.format](value)
    return value


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("illegal base64 data") from None


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "date-time": times.parse_time,
    "date": lambda text: times.parse_time(f"{text}T00:00:00Z"),
    "duration": times.parse_duration,
    "byte": _bytes,
}


# -- sizes ------------------------------------------------------------------------------------------


def size_of(shape: Schema, path: Path) -> Span | None:
    """The size of what lies at a path below the variable of this shape."""
    if not path:
        most = most_of(shape)
        return None if most is None else Span(0, most)
    step, rest = path[0], path[1:]
    match shape.type:
        case Shape.OBJECT:
            inner = {escaped(name): member for name, member in shape.fields.items()}.get(step)
            return None if inner is None else size_of(inner, rest)
        case Shape.LIST if shape.element is not None and step == "@items":
            return size_of(shape.element, rest)
        case Shape.MAP if shape.element is not None:
            if step == "@keys":
                return Span(0, REQUEST_BYTES_MAX)
            return size_of(shape.element, rest)
    return None


def most_of(shape: Schema) -> int | None:
    """The most characters, elements or members that it can have."""
    said = shape.validation
    match shape.type:
        case Shape.STRING | Shape.INT_OR_STRING:
            longest = max((len(str(one)) for one in said.get("enum") or ()), default=None)
            return int(said.get("maxLength", REQUEST_BYTES_MAX if longest is None else longest))
        case Shape.LIST if shape.element is not None:
            return int(said.get("maxItems", REQUEST_BYTES_MAX // (least_bytes(shape.element) + 1)))
        case Shape.MAP if shape.element is not None:
            return int(said.get("maxProperties", REQUEST_BYTES_MAX // (least_bytes(shape.element) + 6)))
    return None


def least_bytes(shape: Schema, depth: int = 0) -> int:
    """The least that a value of this shape takes in a request."""
    match shape.type:
        case Shape.OBJECT if depth < 8:
            needed = ((name, member) for name, member in shape.fields.items() if name in shape.required)
            return 2 + sum(len(name) + 4 + least_bytes(member, depth + 1) for name, member in needed)
        case Shape.BOOLEAN:
            return 4
        case Shape.INTEGER | Shape.NUMBER:
            return 1
    return 2
