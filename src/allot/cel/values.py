"""What a selector computes with.

Most of CEL's values are Python's own:

    bool bool | int int | double float | string str | bytes bytes | null None
    list tuple or list | map dict | type Type

The rest is here. An unsigned integer is an `int` that remembers its sign rule;
durations and times are whole nanoseconds; an optional is a box. Python calls
`True` equal to 1, CEL does not, so every comparison that may meet both goes
through `equal`, and a bool is filed in a map under a key of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import NoneType
from typing import Any, Final

from allot.api import Quantity, Semver

from . import types
from .errors import EvaluationError
from .types import Type

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
SECOND_NS: Final = 10**9
TIME_MIN_NS: Final = -62_135_596_800 * SECOND_NS  # 0001-01-01T00:00:00Z
TIME_MAX_NS: Final = 253_402_300_800 * SECOND_NS - 1  # 9999-12-31T23:59:59.999999999Z


class UInt(int):
    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    ns: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    ns: int  # since 1970


@dataclass(frozen=True, slots=True)
class Optional:
    """A value, or its absence (`NONE`)."""

    value: Any
    present: bool = True


NONE: Final = Optional(None, present=False)


class BoolKey(Enum):
    """How `true` and `false` are filed in a map, where Python would confuse them with 1 and 0."""

    TRUE = True
    FALSE = False


def to_key(key: Any) -> Any:
    """The form under which `key` is filed; unhashable values raise."""
    kind = type(key)
    if kind is str or kind is int:
        return key
    if kind is bool:
        return BoolKey.TRUE if key else BoolKey.FALSE
    if kind is UInt or kind is float:
        return key
    raise EvaluationError(f"unsupported key type: {type_name(key)}")


def from_key(key: Any) -> Any:
    return key.value if isinstance(key, BoolKey) else key


def equal(left: Any, right: Any) -> bool:
    """CEL's equality: numbers by value across their types, everything else within its own.

    Kubernetes' own types on the left refuse to be compared with any other.
    """
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        return other in _NUMBERS and bool(left == right)
    if kind in _LISTS:
        return (
            other in _LISTS
            and len(left) == len(right)
            and all(equal(a, b) for a, b in zip(left, right, strict=True))
        )
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(key in right and equal(value, right[key]) for key, value in left.items())
        )
    if kind is Optional:
        return other is Optional and left.present == right.present and equal(left.value, right.value)
    if kind is other:
        return bool(left == right)
    if kind in particular and other is not NoneType and runtime_type(left) != runtime_type(right):
        raise no_overload(left, right)
    return False


def same(left: Any, right: Any) -> bool:
    """Equality for those who search: what cannot be compared is something else."""
    try:
        return equal(left, right)
    except EvaluationError:
        return False


_NUMBERS: Final = frozenset({int, UInt, float})
_LISTS: Final = frozenset({list, tuple})


def contains(items: Sequence[Any], item: Any) -> bool:
    return any(same(item, other) for other in items)


def checked_int(number: int) -> int:
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("integer overflow")


def checked_uint(number: int) -> UInt:
    if 0 <= number <= UINT_MAX:
        return UInt(number)
    raise EvaluationError("unsigned integer overflow")


def checked_duration(ns: int) -> Duration:
    if INT_MIN <= ns <= INT_MAX:
        return Duration(ns)
    raise EvaluationError("integer overflow")


def checked_time(ns: int) -> Timestamp:
    if TIME_MIN_NS <= ns <= TIME_MAX_NS:
        return Timestamp(ns)
    raise EvaluationError("timestamp overflow")


particular: Final[set[type]] = {Quantity, Semver}
"""Types whose values, on the left of `==`, accept nothing but their own kind on the right."""

_TYPES: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    NoneType: types.NULL,
    list: types.TYPE_NAMES["list"],
    tuple: types.TYPE_NAMES["list"],
    dict: types.TYPE_NAMES["map"],
    Type: types.TYPE_NAMES["type"],
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Optional: types.TYPE_NAMES["optional_type"],
    Quantity: types.QUANTITY,
    Semver: types.SEMVER,
}


def register(python: type, type: Type) -> None:
    """Libraries with values of their own say here what CEL calls them."""
    _TYPES[python] = type
    particular.add(python)


def runtime_type(value: Any) -> Type:
    found = _TYPES.get(type(value))
    if found is not None:
        return found
    if isinstance(value, Mapping):
        return types.TYPE_NAMES["map"]
    return types.DEVICE


def type_name(value: Any) -> str:
    found = runtime_type(value)
    if found is types.NULL:
        return "null_type"
    if found is types.DURATION or found is types.TIMESTAMP:
        return f"google.protobuf.{found.name.capitalize()}"
    return found.name


def no_overload(*values: Any) -> EvaluationError:
    shown = ", ".join(type_name(value) for value in values)
    return EvaluationError(f"no such overload: ({shown})")
