"""Protobuf's wire format: numbered fields in bytes, without a word of what they mean.

Everything of ours that reads or writes protobuf itself stands on these functions: bodies of the
API (`api.protobuf`) and what kubelets and drivers say to each other (`wire`).

    field    tag (number * 8 + wire type) as a varint, then its value
             wire type 0: a varint · 1: 8 bytes · 2: a length and so many bytes · 5: 4 bytes
"""

from collections.abc import Iterator
from typing import Any, Final

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2


class Malformed(ValueError):
    """The bytes are not protobuf. The message says why."""


def fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields as they come: a varint as an int, all else as a memoryview of its bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
                continue
            case 1:
                size = 8
            case 2:
                size, at = _varint(data, at)
            case 5:
                size = 4
            case wire_type:
                raise Malformed(f"wire type {wire_type} is in use no more")
        if size > end - at:
            raise Malformed("a field is longer than what is left of its message")
        yield tag >> 3, data[at : at + size]
        at += size


def packed(data: memoryview) -> Iterator[int]:
    """Varints without tags, as numbers of one repeated field travel."""
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def signed(value: int) -> int:
    """Two's complement of 64 bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def put_varint(into: bytearray, value: int) -> None:
    value &= 0xFFFFFFFFFFFFFFFF
    while value > 0x7F:
        into.append(value & 0x7F | 0x80)
        value >>= 7
    into.append(value)


def put_tag(into: bytearray, number: int, wire_type: int) -> None:
    put_varint(into, number << 3 | wire_type)


def put_bytes(into: bytearray, number: int, value: bytes | bytearray) -> None:
    put_tag(into, number, BYTES)
    put_varint(into, len(value))
    into += value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, at
            shift += 7
            if shift > 63:
                raise Malformed("a number is longer than 64 bits")
    except IndexError:
        raise Malformed("a number ends in the middle") from None
