"""`"%d of %s".format([3, "four"])`.

Verbs: `%s` anything, `%d` whole numbers, `%f` and `%e` doubles with an optional
precision, `%b` `%o` `%x` `%X` other bases, `%%` itself. What is printed is
bounded, whatever the arguments.
"""

import math
from collections.abc import Callable, Iterator
from re import ASCII, compile
from typing import Any, Final

from .. import types
from ..errors import EvaluationError
from ..types import Type
from ..values import Duration, Timestamp, UInt, from_key, type_name
from . import times

OUTPUT_MAX: Final = 1_000_000
PRECISION_MAX: Final = 100
_CLAUSE = compile(r"%(?:\.(\d{1,4}))?(.?)", ASCII)


def format_string(pattern: str, args: Any) -> str:
    parts: list[str] = []
    remaining = iter(args)
    end = used = length = 0
    for clause in _CLAUSE.finditer(pattern):
        parts.append(pattern[end : clause.start()])
        end = clause.end()
        if clause[2] == "%":
            parts.append("%")
            continue
        print_value = _VERBS.get(clause[2])
        if print_value is None:
            raise EvaluationError(f'unrecognized formatting clause "{clause[2]}"')
        value = next(remaining, _VERBS)
        if value is _VERBS:
            raise EvaluationError(f"index {used} out of range")
        used += 1
        parts.append(print_value(value, _precision(clause[1])))
        length += len(parts[-1])
        if length > OUTPUT_MAX:
            raise EvaluationError("formatted string too large")
    parts.append(pattern[end:])
    return "".join(parts)


def clauses_in(pattern: str) -> list[str]:
    """The verbs of a pattern that take an argument; raises for one that does not exist."""
    found = [clause[2] for clause in _CLAUSE.finditer(pattern) if clause[2] != "%"]
    for verb in found:
        if verb not in _VERBS:
            raise EvaluationError(f'unrecognized formatting clause "{verb}"')
    return found


def _precision(digits: str | None) -> int:
    if digits is None:
        return 6
    if int(digits) > PRECISION_MAX:
        raise EvaluationError(f"precision {digits} exceeds maximum allowed ({PRECISION_MAX})")
    return int(digits)


def _anything(value: Any, precision: int) -> str:
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        yield "["
        for index, item in enumerate(value):
            yield ", " if index else ""
            yield from _pieces(item)
        yield "]"
    elif isinstance(value, dict):
        yield "{"
        for index, (key, item) in enumerate(sorted(value.items(), key=lambda entry: str(from_key(entry[0])))):
            yield ", " if index else ""
            yield from _pieces(from_key(key))
            yield ": "
            yield from _pieces(item)
        yield "}"
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case UInt() | int():
            return str(int(value))
        case float():
            return _plain_double(value)
        case bytes():
            return value.decode(errors="replace")
        case None:
            return "null"
        case Duration():
            return times.print_duration(value)
        case Timestamp():
            return times.print_time(value)
        case Type():
            return value.name
    raise _refuse("string", value)  # a version, a quantity, an address


def _plain_double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = f"{value:.17f}".rstrip("0").rstrip(".")
    shortest = repr(value)
    return shortest.removesuffix(".0") if "e" not in shortest else text


def _refuse(verb: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: {verb} clause cannot take a {type_name(value)}")


def _integer(value: Any, precision: int) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return _plain_double(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refuse("integer", value)
    return str(int(value))


def _double(style: str, word: str) -> Callable[[Any, int], str]:
    def show(value: Any, precision: int) -> str:
        if isinstance(value, str) and value in _NOT_FINITE:
            return value
        if not isinstance(value, float):
            raise _refuse(word, value)
        return f"{value:.{precision}{style}}" if math.isfinite(value) else _plain_double(value)

    return show


def _base(style: str, word: str) -> Callable[[Any, int], str]:
    def show(value: Any, precision: int) -> str:
        if style in "xX" and isinstance(value, str | bytes):
            data = value.encode() if isinstance(value, str) else value
            return data.hex().upper() if style == "X" else data.hex()
        if style == "b" and isinstance(value, bool):
            return "1" if value else "0"
        if isinstance(value, bool) or not isinstance(value, int):
            raise _refuse(word, value)
        return f"{int(value):{style}}"

    return show


_NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})  # doubles that are written as strings

_VERBS: Final[dict[str, Callable[[Any, int], str]]] = {
    "s": _anything,
    "d": _integer,
    "f": _double("f", "fixed-point"),
    "e": _double("e", "scientific"),
    "b": _base("b", "binary"),
    "o": _base("o", "octal"),
    "x": _base("x", "hex"),
    "X": _base("X", "hex"),
}

# What the arguments of each verb may be, where the checker knows; `%s` takes what has no type of its own.
TAKES: Final[dict[str, frozenset[Type]]] = {
    "d": frozenset({types.INT, types.UINT}),
    "f": frozenset({types.DOUBLE, types.STRING}),
    "e": frozenset({types.DOUBLE, types.STRING}),
    "b": frozenset({types.INT, types.UINT, types.BOOL}),
    "o": frozenset({types.INT, types.UINT}),
    "x": frozenset({types.INT, types.UINT, types.STRING, types.BYTES}),
    "X": frozenset({types.INT, types.UINT, types.STRING, types.BYTES}),
}
