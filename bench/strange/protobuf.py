"""From the dictionary of an object to protobuf bytes, as Go's clients send them.

The inverse of `allot.api.protobuf`, over the same table of numbers. What the table does not know is
left out, as a client that is generated from it could not say it either.
"""

import base64
import json
import struct
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

MEDIA = "application/vnd.kubernetes.protobuf"


class Unsayable(ValueError):
    """The object has something that this message cannot hold, a null in a list for example."""


@cache
def _table() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(
        files("allot.api.protobuf").joinpath("numbers.json").read_bytes()
    )
    return found


def encoded(fields: dict[str, Any], type_name: str) -> bytes | None:
    """The object in its envelope; None if it cannot be said."""
    if type_name not in _table():
        return None
    try:
        raw = _message(fields, type_name)
    except (Unsayable, AttributeError, TypeError, ValueError, OverflowError, struct.error):
        return None
    said = _piece(1, str(fields["apiVersion"]).encode()) + _piece(2, str(fields["kind"]).encode())
    return b"k8s\x00" + _piece(1, said) + _piece(2, raw)


def _message(fields: dict[str, Any], name: str) -> bytes:
    out = bytearray()
    for number, text in _table()[name].items():
        json_name, _, type_ = text.partition(" ")
        if not json_name:
            out += _piece(int(number), _message(fields, type_[1:]))
        elif (value := fields.get(json_name)) is not None:
            out += _field(int(number), type_, value)
    return bytes(out)


def _field(number: int, type_: str, value: Any) -> bytes:
    match type_[0]:
        case "[":
            return b"".join(_field(number, type_[1:], _there(member)) for member in value)
        case "{":
            entries = ((key, _there(member)) for key, member in value.items())
            return b"".join(
                _piece(number, _piece(1, key.encode()) + _field(2, type_[1:], member))
                for key, member in entries
            )
        case "*":
            return _field(number, type_[1:], value)
        case "i":
            return _varint(number << 3) + _varint(int(value) & 0xFFFFFFFFFFFFFFFF)
        case "b":
            return _varint(number << 3) + _varint(int(bool(value)))
        case "f":
            return _varint(number << 3 | 1) + struct.pack("<d", value)
        case _:
            return _piece(number, _bytes(type_, value))


def _there(value: Any) -> Any:
    if value is None:
        raise Unsayable("a null in a list or map")
    return value


def _bytes(type_: str, value: Any) -> bytes:
    match type_[0]:
        case "s":
            if not isinstance(value, str):
                raise Unsayable("something else where text belongs")
            return value.encode()
        case "y":
            return base64.b64decode(value)
        case "q":
            return _piece(1, str(value).encode())
        case "t" | "u":
            moment = datetime.fromisoformat(value)
            seconds = int(moment.timestamp()) & 0xFFFFFFFFFFFFFFFF
            return _varint(8) + _varint(seconds) + _varint(16) + _varint(moment.microsecond * 1000)
        case "o":
            if isinstance(value, str):
                return _varint(8) + _varint(1) + _piece(3, value.encode())
            return _varint(16) + _varint(int(value) & 0xFFFFFFFFFFFFFFFF)
        case "r" | "F":
            return _piece(1, json.dumps(value).encode())
        case "(":
            return b"".join(_field(1, type_[1:], _there(member)) for member in value)
        case "@":
            return _message(value, type_[1:])
    raise Unsayable(f"unknown type {type_}")


def _piece(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
