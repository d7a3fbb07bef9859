"""From the dictionary that an object has in JSON to its protobuf bytes: the other way round of `decode`.

What is not set is not sent; who reads it finds the zero that stands for the same. A field that the table does
not know has no number and is left out.
"""

import base64
import struct
from datetime import datetime
from typing import Any

import msgspec

from allot.base import wireformat

from .numbers import message_fields


def encode_message(fields: dict[str, Any], name: str) -> bytes:
    """One message without an envelope."""
    return bytes(_message(fields, name))


def _message(fields: dict[str, Any], name: str) -> bytearray:
    into = bytearray()
    for number, (json_name, type_) in message_fields(name).items():
        if not json_name:  # laid into the message around it
            inner = _message(fields, type_[1:])
            if inner:
                wireformat.put_bytes(into, number, inner)
        elif fields.get(json_name) is not None:
            _put(into, number, type_, fields[json_name])
    return into


def _put(into: bytearray, number: int, type_: str, value: Any) -> None:
    match type_[0]:
        case "*":
            _put(into, number, type_[1:], value)
        case "[":
            for one in value:
                _put(into, number, type_[1:], one)
        case "{":
            for key, one in value.items():
                entry = bytearray()
                wireformat.put_bytes(entry, 1, key.encode())
                _put(entry, 2, type_[1:], one)
                wireformat.put_bytes(into, number, entry)
        case "b" | "i":
            wireformat.put_tag(into, number, wireformat.VARINT)
            wireformat.put_varint(into, int(value))
        case "f":
            wireformat.put_tag(into, number, wireformat.FIXED64)
            into += struct.pack("<d", value)
        case _:
            wireformat.put_bytes(into, number, _bytes(type_, value))


def _bytes(type_: str, value: Any) -> bytes | bytearray:
    match type_[0]:
        case "s":
            return str(value).encode()
        case "y":
            return base64.b64decode(value)
        case "@":
            return _message(value, type_[1:])
    inner = bytearray()
    match type_[0]:
        case "q":
            wireformat.put_bytes(inner, 1, str(value).encode())
        case "t" | "u":
            _put_time(inner, datetime.fromisoformat(value))
        case "o":
            _put_int_or_string(inner, value)
        case "r" | "F":
            wireformat.put_bytes(inner, 1, msgspec.json.encode(value))
        case "(":
            for one in value:
                _put(inner, 1, type_[1:], one)
        case _:
            raise TypeError(f"unknown type {type_}")
    return inner


def _put_time(into: bytearray, moment: datetime) -> None:
    seconds, nanos = int(moment.timestamp() // 1), moment.microsecond * 1000
    wireformat.put_tag(into, 1, wireformat.VARINT)
    wireformat.put_varint(into, seconds)
    if nanos:
        wireformat.put_tag(into, 2, wireformat.VARINT)
        wireformat.put_varint(into, nanos)


def _put_int_or_string(into: bytearray, value: int | str) -> None:
    wireformat.put_tag(into, 1, wireformat.VARINT)
    wireformat.put_varint(into, int(isinstance(value, str)))
    if isinstance(value, str):
        wireformat.put_bytes(into, 3, value.encode())
    else:
        wireformat.put_tag(into, 2, wireformat.VARINT)
        wireformat.put_varint(into, value)
