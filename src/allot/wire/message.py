"""Messages as frozen values, and their protobuf bytes.

A contract is written as classes whose fields carry protobuf's numbers; names do not travel.

    class Claim(Message, frozen=True):
        namespace: Annotated[str, 1] = ""
        uid: Annotated[str, 2] = ""

    str bool int bytes float  what is zero or empty is not sent; a float is a `double`
    X | None                an `optional` field, or a message that may be missing: sent unless None
    tuple[X, ...]           a repeated field; numbers are sent packed and read either way
    dict[str, X]            a map
    an IntEnum              an open enum: a number that it does not have is read as its zero

What it promises
    MSG1  The bytes are those that any protobuf library makes of the same numbers and values.
    MSG2  A field with a number that a message does not have is skipped, so that newer peers are understood.
    MSG3  What is not such a message is a `Malformed` that names message and field, never another error.
"""

import struct
from enum import IntEnum
from functools import cache
from math import copysign
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

import msgspec

from allot.base import wireformat

Malformed = wireformat.Malformed
DOUBLE_BYTES: Final = 8
UNSIGNED: Final = "unsigned"
"""Beside a number's field number: 64 bits without a sign."""


class Message(msgspec.Struct, frozen=True):
    def encode(self) -> bytes:
        return bytes(_encoded(self))

    @classmethod
    def decode(cls, data: bytes) -> Self:
        message: Self = _decoded(cls, memoryview(data))
        return message


class _Field(NamedTuple):
    name: str
    number: int
    shape: str  # "one", "optional", "many" or "map"
    type: Any  # of one value
    unsigned: bool


@cache
def _fields(message: type[Message]) -> tuple[_Field, ...]:
    hints = get_type_hints(message, include_extras=True)
    return tuple(_field(name, hints[name]) for name in message.__struct_fields__)


@cache
def _by_number(message: type[Message]) -> dict[int, _Field]:
    return {field.number: field for field in _fields(message)}


def _field(name: str, hint: Any) -> _Field:
    declared, number, *more = get_args(hint) if get_origin(hint) is Annotated else (hint, None)
    if not isinstance(number, int):
        raise TypeError(f"the field {name} has no number")
    origin, inner = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        shape, declared = "optional", next(one for one in inner if one is not NoneType)
    elif origin is tuple:
        shape, declared = "many", inner[0]
    elif origin is dict:
        shape, declared = "map", inner[1]
    else:
        shape = "one"
    return _Field(name, number, shape, declared, UNSIGNED in more)


# -- writing


def _encoded(message: Message) -> bytearray:
    into = bytearray()
    for field in _fields(type(message)):
        value = getattr(message, field.name)
        match field.shape:
            case "many" if value and issubclass(field.type, int):
                numbers = bytearray()
                for one in value:
                    wireformat.put_varint(numbers, one)
                wireformat.put_bytes(into, field.number, numbers)
            case "many":
                for one in value:
                    _put(into, field.number, one)
            case "map":
                for key, one in value.items():
                    entry = bytearray()
                    _put(entry, 1, key)
                    _put(entry, 2, one)
                    wireformat.put_bytes(into, field.number, entry)
            case "optional" if value is not None:
                _put(into, field.number, value)
            case "one" if value or _is_minus_zero(value):
                _put(into, field.number, value)
    return into


def _is_minus_zero(value: Any) -> bool:
    return isinstance(value, float) and copysign(1, value) < 0


def _put(into: bytearray, number: int, value: Any) -> None:
    match value:
        case float():
            wireformat.put_tag(into, number, wireformat.FIXED64)
            into += struct.pack("<d", value)
        case int():
            wireformat.put_tag(into, number, wireformat.VARINT)
            wireformat.put_varint(into, int(value))
        case str():
            wireformat.put_bytes(into, number, value.encode())
        case bytes():
            wireformat.put_bytes(into, number, value)
        case Message():
            wireformat.put_bytes(into, number, _encoded(value))
        case _:
            raise TypeError(f"field {number} cannot carry {value!r}")


# -- reading


def _decoded(message: type[Message], data: memoryview) -> Any:
    known = _by_number(message)
    found: dict[str, Any] = {}
    pieces: dict[str, list[bytes]] = {}  # of messages: what comes twice is merged
    try:
        for number, value in wireformat.fields(data):
            field = known.get(number)
            if field is not None:
                _take(found, pieces, field, value)
    except Malformed as malformed:
        raise Malformed(f"{message.__name__}: {malformed}") from None
    for field in known.values():
        if field.shape == "many" and field.name in found:
            found[field.name] = tuple(found[field.name])
        elif field.name in pieces:
            found[field.name] = _decoded(field.type, memoryview(b"".join(pieces[field.name])))
    return message(**found)


def _take(found: dict[str, Any], pieces: dict[str, list[bytes]], field: _Field, value: Any) -> None:
    match field.shape:
        case "many" if issubclass(field.type, int) and not isinstance(value, int):
            numbers = (_value(field, one) for one in wireformat.packed(value))
            found.setdefault(field.name, []).extend(numbers)
        case "many":
            found.setdefault(field.name, []).append(_value(field, value))
        case "map":
            entry = dict(wireformat.fields(_bytes(field, value)))
            empty: Any = 0 if issubclass(field.type, int) else memoryview(b"")
            key = _text(field, entry.get(1, memoryview(b"")))
            found.setdefault(field.name, {})[key] = _value(field, entry.get(2, empty))
        case _ if issubclass(field.type, Message):
            pieces.setdefault(field.name, []).append(bytes(_bytes(field, value)))
        case _:
            found[field.name] = _value(field, value)


def _value(field: _Field, value: Any) -> Any:
    kind = field.type
    if issubclass(kind, int):
        if not isinstance(value, int):
            raise Malformed(f"{field.name} has bytes where a number belongs")
        if kind is bool:
            return bool(value)
        if issubclass(kind, IntEnum):
            return kind(value) if value in kind._value2member_map_ else kind(0)
        return value if field.unsigned else wireformat.signed(value)
    if kind is str:
        return _text(field, value)
    if kind is float:
        data = _bytes(field, value)
        if len(data) != DOUBLE_BYTES:
            raise Malformed(f"{field.name} has {len(data)} bytes where a number of {DOUBLE_BYTES} belongs")
        return struct.unpack("<d", data)[0]
    if kind is bytes:
        return bytes(_bytes(field, value))
    return _decoded(kind, _bytes(field, value))


def _text(field: _Field, value: Any) -> str:
    try:
        return bytes(_bytes(field, value)).decode()
    except UnicodeDecodeError:
        raise Malformed(f"{field.name} is not UTF-8") from None


def _bytes(field: _Field, value: Any) -> memoryview:
    if not isinstance(value, memoryview):
        raise Malformed(f"{field.name} has a number where text or a message belongs")
    return value
