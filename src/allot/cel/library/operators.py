"""Operators: arithmetic that notices overflow, order, equality, indexing, membership.

Integers are checked to 64 bits, division truncates toward zero as in Go, and
numbers of different kinds may be ordered but not added.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from ..errors import EvaluationError
from ..overloads import Declaration, function, judging
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
    Type,
    list_of,
    map_of,
    optional_of,
    param,
)  # fmt: skip
from ..values import (
    NONE,
    Duration,
    Optional,
    Timestamp,
    UInt,
    checked_duration,
    checked_int,
    checked_time,
    checked_uint,
    contains,
    equal,
    no_overload,
    same,
    to_key,
)  # fmt: skip

LIST_MAX: Final = 100_000  # longer lists cost more than any selector may spend on reading them

A, B = param("A"), param("B")


def lazily(*_: Any) -> Any:
    """`&&`, `||` and `?:` look at their operands themselves; nobody calls them with values."""
    raise no_overload()


def add_int(a: int, b: int) -> int:
    return checked_int(a + b)


def subtract_int(a: int, b: int) -> int:
    return checked_int(a - b)


def multiply_int(a: int, b: int) -> int:
    return checked_int(a * b)


def divide_int(a: int, b: int) -> int:
    quotient = divide_uint(abs(a), abs(b))
    return checked_int(quotient if (a < 0) == (b < 0) else -quotient)


def divide_uint(a: int, b: int) -> int:
    if b == 0:
        raise EvaluationError("division by zero")
    return a // b


def modulo_int(a: int, b: int) -> int:
    if b == 0:
        raise EvaluationError("modulus by zero")
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def divide_double(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def multiply_double(a: float, b: float) -> float:
    return a * b


def negate_int(a: int) -> int:
    return checked_int(-a)


def add_list(a: Any, b: Any) -> list[Any]:
    if len(a) + len(b) > LIST_MAX:
        raise EvaluationError("list too large")
    return [*a, *b]


def index_list(items: Any, index: Any) -> Any:
    if type(index) is float and index.is_integer():
        index = int(index)
    if isinstance(index, bool) or not isinstance(index, int):
        raise no_overload(items, index)
    if not 0 <= index < len(items):
        raise EvaluationError(f"index out of bounds: {int(index)}")
    return items[index]


def index_map(entries: Any, key: Any) -> Any:
    try:
        return entries[to_key(key)]
    except KeyError:
        raise EvaluationError(f"no such key: {key}") from None


def index_any(target: Any, key: Any) -> Any:
    if isinstance(target, dict):
        return index_map(target, key)
    if isinstance(target, list | tuple):
        return index_list(target, key)
    if isinstance(target, Optional):
        return optional_index(target, key)
    raise no_overload(target, key)


def optional_index(target: Any, key: Any) -> Optional:
    """`a[?b]`: absence instead of an error."""
    if isinstance(target, Optional):
        return optional_index(target.value, key) if target.present else NONE
    if isinstance(target, dict):
        filed = to_key(key)
        return Optional(target[filed]) if finds(target, filed) else NONE
    if isinstance(target, list | tuple):
        inside = isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(target)
        return Optional(target[key]) if inside else NONE
    raise no_overload(target, key)


def finds(entries: dict[Any, Any], filed: Any) -> bool:
    """Whether a lookup succeeds: the outer maps of a device answer for every domain."""
    return filed in entries or hasattr(entries, "__missing__")


def in_list(item: Any, items: Any) -> bool:
    return contains(items, item)


def in_map(key: Any, entries: Any) -> bool:
    return to_key(key) in entries


def not_equal(a: Any, b: Any) -> bool:
    """Unlike `==` never an error: what cannot be compared is different."""
    return not same(a, b)


def _later(a: Timestamp | Duration, b: Timestamp | Duration) -> Timestamp:
    return checked_time(a.ns + b.ns)


def _arithmetic() -> list[Declaration]:
    def uint(op: Callable[[int, int], int]) -> Callable[[int, int], UInt]:
        return lambda a, b: checked_uint(op(a, b))

    def uint_division(op: Callable[[int, int], int]) -> Callable[[int, int], UInt]:
        return lambda a, b: UInt(op(a, b))

    def both(name: str, id: str, type: Type, run: Callable[..., Any]) -> Declaration:
        return function(name, id, (type, type), type, run)

    return [
        both("_+_", "add_bytes", BYTES, operator.add),
        both("_+_", "add_double", DOUBLE, operator.add),
        both("_+_", "add_duration_duration", DURATION, lambda a, b: checked_duration(a.ns + b.ns)),
        function("_+_", "add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, _later),
        function("_+_", "add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, _later),
        both("_+_", "add_int64", INT, add_int),
        both("_+_", "add_list", list_of(A), add_list),
        both("_+_", "add_string", STRING, operator.add),
        both("_+_", "add_uint64", UINT, uint(operator.add)),
        both("_-_", "subtract_double", DOUBLE, operator.sub),
        both("_-_", "subtract_duration_duration", DURATION, lambda a, b: checked_duration(a.ns - b.ns)),
        both("_-_", "subtract_int64", INT, subtract_int),
        function(
            "_-_", "subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP,
            lambda a, b: checked_time(a.ns - b.ns),
        ),
        function(
            "_-_", "subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION,
            lambda a, b: checked_duration(a.ns - b.ns),
        ),
        both("_-_", "subtract_uint64", UINT, uint(operator.sub)),
        both("_*_", "multiply_double", DOUBLE, multiply_double),
        both("_*_", "multiply_int64", INT, multiply_int),
        both("_*_", "multiply_uint64", UINT, uint(operator.mul)),
        both("_/_", "divide_double", DOUBLE, divide_double),
        both("_/_", "divide_int64", INT, divide_int),
        both("_/_", "divide_uint64", UINT, uint_division(divide_uint)),
        both("_%_", "modulo_int64", INT, modulo_int),
        both("_%_", "modulo_uint64", UINT, uint_division(modulo_int)),
        function("-_", "negate_double", (DOUBLE,), DOUBLE, operator.neg),
        function("-_", "negate_int64", (INT,), INT, negate_int),
    ]  # fmt: skip


_ORDERS: Final = {
    "_<_": ("less", operator.lt),
    "_<=_": ("less_equals", operator.le),
    "_>_": ("greater", operator.gt),
    "_>=_": ("greater_equals", operator.ge),
}
_NUMBER_NAMES: Final = {INT: "int64", UINT: "uint64", DOUBLE: "double"}


def _orders() -> list[Declaration]:
    found: list[Declaration] = []
    for name, (word, run) in _ORDERS.items():
        for type in (BOOL, STRING, BYTES, TIMESTAMP, DURATION):
            found.append(function(name, f"{word}_{type}", (type, type), BOOL, run))
        for left, left_name in _NUMBER_NAMES.items():
            for right, right_name in _NUMBER_NAMES.items():
                id = f"{word}_{left_name}" if left is right else f"{word}_{left_name}_{right_name}"
                found.append(function(name, id, (left, right), BOOL, run))
    return found


def _containers() -> list[Declaration]:
    values, entries = list_of(A), map_of(A, B)
    return [
        judging("_[_]", "index_list", (values, INT), A, index_any),
        judging("_[_]", "index_map", (entries, A), B, index_any),
        judging(
            "_[_]", "optional_list_index_int", (optional_of(values), INT), optional_of(A), optional_index
        ),
        judging(
            "_[_]", "optional_map_index_value", (optional_of(entries), A), optional_of(B), optional_index
        ),
        judging("_[?_]", "list_optindex_optional_int", (values, INT), optional_of(A), optional_index),
        judging("_[?_]", "map_optindex_optional_value", (entries, A), optional_of(B), optional_index),
        judging(
            "_[?_]",
            "optional_list_optindex_optional_int",
            (optional_of(values), INT),
            optional_of(A),
            optional_index,
        ),
        judging(
            "_[?_]",
            "optional_map_optindex_optional_value",
            (optional_of(entries), A),
            optional_of(B),
            optional_index,
        ),
        function("@in", "in_list", (A, values), BOOL, in_list),
        function("@in", "in_map", (A, entries), BOOL, in_map),
        function("_?._", "select_optional_field", (DYN, STRING), optional_of(DYN), lazily),
    ]


DECLARATIONS: Final = (
    function("_?_:_", "conditional", (BOOL, A, A), A, lazily),
    function("_&&_", "logical_and", (BOOL, BOOL), BOOL, lazily),
    function("_||_", "logical_or", (BOOL, BOOL), BOOL, lazily),
    function("!_", "logical_not", (BOOL,), BOOL, operator.not_),
    function("_==_", "equals", (A, A), BOOL, equal),
    function("_!=_", "not_equals", (A, A), BOOL, not_equal),
    *_arithmetic(),
    *_orders(),
    *_containers(),
)

BY_VALUE: Final = frozenset((*_ORDERS, "_+_", "_-_", "_*_", "_/_", "_%_", "-_"))
"""Operators that look at the values alone, whatever the checker took their types for."""
