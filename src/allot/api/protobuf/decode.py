"""From protobuf bytes to the dictionary that the same object has in JSON.

What differs from JSON
    A field that is not a pointer is always sent, so its zero value means "not
    set"; behind a pointer (`*` in the table) zero is a value. Some messages stand
    for one JSON value (quantities, times), and some are laid into the message
    around them (a field without a JSON name).

A field whose number the table does not know is left out, as one that JSON names and
the kind does not have would be, and noted for the client (S3).
"""

import base64
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from allot.base import wireformat

from ..schema import NOTED_MAX, Decoded
from .numbers import Field, message_fields, table

MAGIC: Final = b"k8s\x00"
_DEPTH_MAX = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_WRONG = (wireformat.Malformed, struct.error, TypeError, UnicodeDecodeError, OverflowError)


class Unreadable(ValueError):
    """The bytes are not such an object. The message says where."""


def decode_object(body: bytes, types: Callable[[str, str], str | None]) -> Decoded:
    """The object in the envelope. `types` finds a message's name from apiVersion and kind."""
    if not body.startswith(MAGIC):
        raise Unreadable("the body does not begin like a Kubernetes protobuf object")
    try:
        envelope = dict(wireformat.fields(memoryview(body)[len(MAGIC) :]))
        said = dict(wireformat.fields(_bytes(envelope.get(1, b""))))
        api_version, kind = _text(said.get(1, b"")), _text(said.get(2, b""))
        name = types(api_version, kind)
        if name is None or name not in table():
            raise Unreadable(f"no protobuf form is known for {api_version}, Kind={kind}")
        unknown: Notes = {}
        fields = _message(_bytes(envelope.get(2, b"")), name, 0, unknown)
    except _WRONG as error:
        raise Unreadable(f"the body is not valid protobuf: {error}") from None
    return Decoded({"apiVersion": api_version, "kind": kind, **fields}, unknown=tuple(unknown))


def decode_message(data: bytes, name: str) -> dict[str, Any]:
    """One message without an envelope: the object's fields. Raises Unreadable."""
    try:
        return _message(memoryview(data), name, 0, {})
    except _WRONG as error:
        raise Unreadable(f"not {name.rpartition('.')[2]} in protobuf: {error}") from None


Notes = dict[str, None]  # in the order in which they were found, each once


def _message(data: memoryview, name: str, depth: int, unknown: Notes) -> dict[str, Any]:
    if depth > _DEPTH_MAX:
        raise Unreadable(f"messages nest deeper than {_DEPTH_MAX} levels")
    known: dict[int, Field] = message_fields(name)
    result: dict[str, Any] = {}
    for number, value in wireformat.fields(data):
        if number in known:
            json_name, type_ = known[number]
            _put(result, json_name, type_, value, depth, unknown)
        elif len(unknown) < NOTED_MAX:
            unknown[f"{name.rpartition('.')[2]}.#{number}"] = None
    return result


def _put(result: dict[str, Any], name: str, type_: str, value: Any, depth: int, unknown: Notes) -> None:
    match type_[0]:
        case "[":
            items = result.setdefault(name, [])
            if type_[1] in "bi" and not isinstance(value, int):
                items.extend(map(wireformat.signed, wireformat.packed(_bytes(value))))
            else:
                items.append(_value(type_[1:], value, depth, unknown))
        case "{":
            entry = dict(wireformat.fields(_bytes(value)))
            inner = type_[1:]
            empty: Any = b"" if inner[0] not in "bif" else 0
            result.setdefault(name, {})[_text(entry.get(1, b""))] = _value(
                inner, entry.get(2, empty), depth, unknown
            )
        case "*":
            result[name] = _value(type_[1:], value, depth, unknown)
        case "@" if not name:
            result.update(_message(_bytes(value), type_[1:], depth + 1, unknown))
        case _:
            read = _value(type_, value, depth, unknown)
            if read not in ("", 0, False, None, {}) or (type_ == "q" and value):
                result[name] = read


def _value(type_: str, value: Any, depth: int, unknown: Notes) -> Any:
    match type_[0]:
        case "s":
            return _text(value)
        case "b":
            return bool(value)
        case "i":
            return wireformat.signed(value)
        case "f":
            return struct.unpack("<d", _bytes(value))[0]
        case "y":
            return base64.b64encode(_bytes(value)).decode()
        case "q":
            return _text(dict(wireformat.fields(_bytes(value))).get(1, b"")) or "0"
        case "t" | "u":
            return _time(_bytes(value), micro=type_ == "u")
        case "o":
            return _int_or_string(_bytes(value))
        case "r" | "F":
            return _json(dict(wireformat.fields(_bytes(value))).get(1, b""))
        case "(":
            return [
                _value(type_[1:], item, depth, unknown)
                for number, item in wireformat.fields(_bytes(value))
                if number == 1
            ]
        case "@":
            return _message(_bytes(value), type_[1:], depth + 1, unknown)
    raise Unreadable(f"unknown type {type_}")


def _time(data: memoryview, *, micro: bool) -> str | None:
    fields = dict(wireformat.fields(data))
    if not fields:
        return None
    seconds = wireformat.signed(fields.get(1, 0))
    moment = _EPOCH + timedelta(seconds=seconds, microseconds=fields.get(2, 0) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _int_or_string(data: memoryview) -> int | str:
    fields = dict(wireformat.fields(data))
    if fields.get(1, 0) == 1:
        return _text(fields.get(3, b""))
    return wireformat.signed(fields.get(2, 0))


def _json(data: Any) -> Any:
    raw = bytes(_bytes(data))
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        raise Unreadable("raw JSON inside the body is not valid") from None


def _text(value: Any) -> str:
    return bytes(_bytes(value)).decode()


def _bytes(value: Any) -> memoryview:
    if isinstance(value, int):
        raise Unreadable("a number stands where a message or text belongs")
    return memoryview(value)
