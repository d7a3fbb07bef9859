"""A shape as a msgspec type, so that the usual answer - nothing is wrong - comes from C.

`fits(fields, schema)` says yes or no and nothing else; `walk` finds out what is
wrong, slowly, when the answer is no. The types are stricter than the rules: a
null, a quantity that could be shorter or a time with an offset also answers no, and
`walk` puts them into their usual form.

A type that contains itself cannot be written down without a name in some module;
the inner occurrence is therefore a marker class that msgspec hands back to `_again`.
So is a value that may have one of several shapes, of which msgspec unites only some.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from .node import Schema, Type

INT_RANGE: Mapping[str, tuple[int, int]] = {
    "int32": (-(2**31), 2**31 - 1),
    "": (-(2**63), 2**63 - 1),
}

PLAIN_QUANTITY = (
    r"^(?:0|[1-9][0-9]{0,2}(?:[KMGT]i)?|[1-9][0-9]{0,5}(?<!000)[kMGT]|[1-9][0-9]{0,14}(?<!000)[num]?)\Z"
)
"""Only spellings that are canonical beyond doubt; there are others."""

_DAYS = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
_DATE = rf"^[0-9]{{4}}-(?:{_DAYS})"
_TIME = r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
PLAIN_TIME = rf"{_DATE}{_TIME}Z\Z"
PLAIN_MICRO_TIME = rf"{_DATE}{_TIME}\.[0-9]{{6}}Z\Z"


def fits(value: Any, schema: Schema) -> bool:
    """Whether the value has this shape, with nothing unknown, unusual or null in it."""
    try:
        msgspec.convert(value, compiled(schema), dec_hook=_again)
    except msgspec.ValidationError:
        return False
    return True


def fits_encoded(value: bytes, schema: Schema) -> bool:
    """As `fits`, of JSON that nobody has decoded yet, in a third of the time; False for what is no JSON."""
    try:
        msgspec.json.decode(value, type=compiled(schema), dec_hook=_again)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def compiled(schema: Schema) -> Any:
    if schema.compiled is None:
        schema.compiled = _type(schema, ())
    return schema.compiled


class _Within:
    """Stands for a type inside itself, or for one of several shapes."""

    schema: Schema


def _again(marker: type, value: Any) -> Any:
    schema: Schema | None = marker.schema  # type: ignore[attr-defined]
    if schema is not None and schema.choices:
        schema = schema.choices.get(type(value))
    if schema is None:
        raise msgspec.ValidationError
    msgspec.convert(value, compiled(schema), dec_hook=_again)
    return marker()


def _type(schema: Schema, outside: tuple[Schema, ...]) -> Any:
    match schema.type:
        case Type.OBJECT if any(schema is one for one in outside):
            return type("Within", (_Within,), {"schema": schema})
        case Type.ANY if schema.choices:
            return type("Chosen", (_Within,), {"schema": schema})
        case Type.OBJECT:
            return _struct(schema, (*outside, schema))
        case Type.MAP:
            return dict[str, _element(schema, outside)]  # type: ignore[misc]
        case Type.LIST:
            return list[_element(schema, outside)]  # type: ignore[misc]
        case _:
            return _scalar(schema)


def _element(schema: Schema, outside: tuple[Schema, ...]) -> Any:
    return Any if schema.element is None else _nullable(schema.element, outside)


def _nullable(schema: Schema, outside: tuple[Schema, ...]) -> Any:
    made = _type(schema, outside)
    return made | None if schema.nullable and made is not Any else made


def _struct(schema: Schema, outside: tuple[Schema, ...]) -> Any:
    if schema.compiled is not None:
        return schema.compiled
    if not schema.fields and schema.preserves_unknown:
        return dict[str, Any]
    members = {f"f{i}": (name, field) for i, (name, field) in enumerate(schema.fields.items())}
    schema.compiled = msgspec.defstruct(
        "Shape",
        [(member, _nullable(field, outside), None) for member, (_, field) in members.items()],
        rename={member: name for member, (name, _) in members.items()},
        forbid_unknown_fields=not schema.preserves_unknown,
        gc=False,
    )
    return schema.compiled


def _scalar(schema: Schema) -> Any:
    match schema.type:
        case Type.STRING:
            return str
        case Type.BOOLEAN:
            return bool
        case Type.INTEGER:
            least, most = INT_RANGE.get(schema.format, INT_RANGE[""])
            return Annotated[int, msgspec.Meta(ge=least, le=most)]
        case Type.NUMBER:
            return float | int
        case Type.INT_OR_STRING:
            least, most = INT_RANGE["int32"]
            return Annotated[int, msgspec.Meta(ge=least, le=most)] | str
        case Type.QUANTITY:
            return Annotated[str, msgspec.Meta(pattern=PLAIN_QUANTITY)]
        case Type.TIME:
            return Annotated[str, msgspec.Meta(pattern=PLAIN_TIME)]
        case Type.MICRO_TIME:
            return Annotated[str, msgspec.Meta(pattern=PLAIN_MICRO_TIME)]
        case Type.BYTES:
            return bytes
    return Any
