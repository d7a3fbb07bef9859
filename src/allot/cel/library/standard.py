"""Functions every CEL has: sizes, conversions between types, the plain string tests."""

import math
from decimal import Decimal
from typing import Any, Final

from ..errors import EvaluationError
from ..overloads import Declaration, function, method
from ..types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    map_of,
    param,
    type_of,
)  # fmt: skip
from ..values import (
    INT_MAX,
    INT_MIN,
    SECOND_NS,
    UINT_MAX,
    UInt,
    checked_duration,
    checked_int,
    checked_time,
    checked_uint,
    runtime_type,
)  # fmt: skip
from . import times

A, B = param("A"), param("B")

_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def same(value: Any) -> Any:
    return value


def string_to_bool(text: str) -> bool:
    found = _BOOLS.get(text)
    if found is None:
        raise EvaluationError(f"type conversion error from {text[:64]!r} to 'bool'")
    return found


def string_to_int(text: str) -> int:
    return checked_int(_whole(text, "int"))


def string_to_uint(text: str) -> UInt:
    if text.startswith(("+", "-")):
        raise EvaluationError(f"type conversion error from {text[:64]!r} to 'uint'")
    return checked_uint(_whole(text, "uint"))


def _whole(text: str, kind: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit() or len(digits.lstrip("0")) > 20:
        raise EvaluationError(f"type conversion error from {text[:64]!r} to '{kind}'")
    return int(text)


def string_to_double(text: str) -> float:
    stripped = text.lstrip("+-")
    if text != text.strip() or "_" in text or not (stripped[:1].isascii() and stripped):
        raise EvaluationError(f"type conversion error from {text[:64]!r} to 'double'")
    try:
        number = float(text)
    except ValueError:
        raise EvaluationError(f"type conversion error from {text[:64]!r} to 'double'") from None
    if math.isinf(number) and not stripped[:1].isalpha():  # written in digits, and more than a double holds
        raise EvaluationError(f"type conversion error from {text[:64]!r} to 'double'")
    return number


def double_to_int(number: float) -> int:
    # The bounds themselves are out: 2**63 is no int64, and upstream refuses both ends.
    if not math.isfinite(number) or not INT_MIN < number < INT_MAX:
        raise EvaluationError("integer overflow")
    return int(number)


def double_to_uint(number: float) -> UInt:
    if not math.isfinite(number) or not 0 <= number < UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return UInt(int(number))


def double_to_string(number: float) -> str:
    """As Go's `%g`: the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    sign, digits, scale = _decimal(number)
    if -4 <= scale < 6:
        whole = digits[: scale + 1].ljust(scale + 1, "0") if scale >= 0 else "0"
        fraction = digits[scale + 1 :] if scale >= 0 else "0" * (-scale - 1) + digits
        return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"
    point = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{point}e{'+' if scale >= 0 else '-'}{abs(scale):02d}"


def _decimal(number: float) -> tuple[str, str, int]:
    """Sign, shortest digits, and the power of ten of the first digit."""
    shown = Decimal(repr(number)).normalize()
    sign, digits, exponent = shown.as_tuple()
    text = "".join(map(str, digits))
    scale = 0 if number == 0 else len(text) + int(exponent) - 1
    return "-" if sign else "", text, scale


def bytes_to_string(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _conversions() -> list[Declaration]:
    def to(name: str, id: str, given: Any, result: Any, run: Any) -> Declaration:
        return function(name, id, (given,), result, run)

    return [
        to("bool", "bool_to_bool", BOOL, BOOL, same),
        to("bool", "string_to_bool", STRING, BOOL, string_to_bool),
        to("bytes", "bytes_to_bytes", BYTES, BYTES, same),
        to("bytes", "string_to_bytes", STRING, BYTES, str.encode),
        to("double", "double_to_double", DOUBLE, DOUBLE, same),
        to("double", "int64_to_double", INT, DOUBLE, float),
        to("double", "string_to_double", STRING, DOUBLE, string_to_double),
        to("double", "uint64_to_double", UINT, DOUBLE, float),
        to("duration", "duration_to_duration", DURATION, DURATION, same),
        to("duration", "int64_to_duration", INT, DURATION, checked_duration),
        to("duration", "string_to_duration", STRING, DURATION, times.parse_duration),
        to("dyn", "to_dyn", A, DYN, same),
        to("int", "int64_to_int64", INT, INT, same),
        to("int", "double_to_int64", DOUBLE, INT, double_to_int),
        to("int", "duration_to_int64", DURATION, INT, lambda d: d.ns),
        to("int", "string_to_int64", STRING, INT, string_to_int),
        to("int", "timestamp_to_int64", TIMESTAMP, INT, lambda t: t.ns // SECOND_NS),
        to("int", "uint64_to_int64", UINT, INT, lambda u: checked_int(int(u))),
        to("string", "bool_to_string", BOOL, STRING, lambda b: "true" if b else "false"),
        to("string", "bytes_to_string", BYTES, STRING, bytes_to_string),
        to("string", "double_to_string", DOUBLE, STRING, double_to_string),
        to("string", "duration_to_string", DURATION, STRING, times.print_duration),
        to("string", "int64_to_string", INT, STRING, str),
        to("string", "string_to_string", STRING, STRING, same),
        to("string", "timestamp_to_string", TIMESTAMP, STRING, times.print_time),
        to("string", "uint64_to_string", UINT, STRING, lambda u: str(int(u))),
        to("timestamp", "timestamp_to_timestamp", TIMESTAMP, TIMESTAMP, same),
        to("timestamp", "int64_to_timestamp", INT, TIMESTAMP, lambda s: checked_time(s * SECOND_NS)),
        to("timestamp", "string_to_timestamp", STRING, TIMESTAMP, times.parse_time),
        to("type", "type", A, type_of(A), runtime_type),
        to("uint", "uint64_to_uint64", UINT, UINT, same),
        to("uint", "double_to_uint64", DOUBLE, UINT, double_to_uint),
        to("uint", "int64_to_uint64", INT, UINT, checked_uint),
        to("uint", "string_to_uint64", STRING, UINT, string_to_uint),
    ]


def _sizes() -> list[Declaration]:
    found: list[Declaration] = []
    for word, type in (("bytes", BYTES), ("list", list_of(A)), ("map", map_of(A, B)), ("string", STRING)):
        found.append(function("size", f"size_{word}", (type,), INT, len))
        found.append(method("size", f"{word}_size", (type,), INT, len))
    return found


DECLARATIONS: Final = (
    *_sizes(),
    *_conversions(),
    method("contains", "contains_string", (STRING, STRING), BOOL, lambda s, part: part in s),
    method("endsWith", "ends_with_string", (STRING, STRING), BOOL, str.endswith),
    method("startsWith", "starts_with_string", (STRING, STRING), BOOL, str.startswith),
)
