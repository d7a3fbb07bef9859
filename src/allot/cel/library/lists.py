"""Functions on lists: Kubernetes' own, CEL's extensions, and sets.

A list of mixed kinds cannot be ordered; equality is CEL's, so 1 and 1.0 are the
same element.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from ..errors import EvaluationError
from ..overloads import Declaration, function, method
from ..types import BOOL, COMPARABLE, DOUBLE, DURATION, DYN, INT, UINT, Type, list_of, param
from ..values import Duration, UInt, checked_duration, checked_int, checked_uint, contains, no_overload, same
from .operators import LIST_MAX

A, T = param("A"), param("T")


def _ordered(items: Any) -> Any:
    """The items, once it is clear that they can be compared with each other."""
    kinds = {type(item) for item in items}
    if len(kinds) > 1 and not kinds <= {int, float, UInt}:
        raise EvaluationError("no such overload: elements of different types cannot be compared")
    return items


def is_sorted(items: Any) -> bool:
    return all(a <= b for a, b in pairwise(_ordered(items)))


def smallest(items: Any) -> Any:
    if not items:
        raise EvaluationError("min called on empty list")
    return min(_ordered(items))


def largest(items: Any) -> Any:
    if not items:
        raise EvaluationError("max called on empty list")
    return max(_ordered(items))


def _summable(items: Any) -> Any:
    """The items, once it is clear that they are all of one kind: only such can be added."""
    for item in items:
        if type(item) is not type(items[0]):
            raise no_overload(items[0], item)
    return items


def _sum_int(items: Any) -> int:
    total = 0
    for item in _summable(items):
        total = checked_int(total + item)
    return total


def _sum_uint(items: Any) -> UInt:
    total = UInt(0)
    for item in _summable(items):
        total = checked_uint(total + item)
    return total


def _sum_double(items: Any) -> float:
    total = 0.0
    for item in _summable(items):
        total += item
    return total


def _sum_duration(items: Any) -> Duration:
    total = Duration(0)
    for item in _summable(items):
        total = checked_duration(total.ns + item.ns)
    return total


def index_of(items: Any, item: Any) -> int:
    return next((index for index, other in enumerate(items) if same(other, item)), -1)


def last_index_of(items: Any, item: Any) -> int:
    return next((index for index in reversed(range(len(items))) if same(items[index], item)), -1)


def includes(target: Any, item: Any) -> bool:
    """For attributes that may be one value or several."""
    if isinstance(target, dict):
        raise no_overload(target, item)
    return contains(target, item) if isinstance(target, list | tuple) else same(target, item)


def slice_list(items: Any, start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def flatten(items: Any, depth: int = 1) -> list[Any]:
    """One level at a time, so that neither depth nor growth goes unnoticed."""
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat = list(items)
    while depth > 0 and any(isinstance(item, list | tuple) for item in flat):
        longer: list[Any] = []
        for item in flat:
            longer += item if isinstance(item, list | tuple) else (item,)
            if len(longer) > LIST_MAX:
                raise EvaluationError("list too large")
        flat, depth = longer, depth - 1
    return flat


def sort(items: Any) -> list[Any]:
    if len({type(item) for item in items}) > 1:
        raise EvaluationError("list elements must have the same type")
    return sorted(items)


def number_range(count: int) -> list[int]:
    if count < 0 or count > 10_000_000:
        raise EvaluationError(f"lists.range: size {count} is out of bounds")
    return list(range(count))


def distinct(items: Any) -> list[Any]:
    seen: list[Any] = []
    for item in items:
        if not contains(seen, item):
            seen.append(item)
    return seen


def sets_contains(items: Any, others: Any) -> bool:
    return all(contains(items, other) for other in others)


def sets_equivalent(items: Any, others: Any) -> bool:
    return sets_contains(items, others) and sets_contains(others, items)


def sets_intersects(items: Any, others: Any) -> bool:
    return any(contains(others, item) for item in items)


def _for_each(
    types: tuple[Type, ...], name: str, id: str, result: Type | None, run: Callable[..., Any]
) -> list[Declaration]:
    return [method(name, id.format(t), (list_of(t),), t if result is None else result, run) for t in types]


_ITEMS = list_of(A)
_TWO = (list_of(T), list_of(T))

DECLARATIONS: Final = (
    *_for_each(COMPARABLE, "isSorted", "list_{}_is_sorted_bool", BOOL, is_sorted),
    *_for_each(COMPARABLE, "min", "list_{0}_min_{0}", None, smallest),
    *_for_each(COMPARABLE, "max", "list_{0}_max_{0}", None, largest),
    method("sum", "list_int_sum_int", (list_of(INT),), INT, _sum_int),
    method("sum", "list_uint_sum_uint", (list_of(UINT),), UINT, _sum_uint),
    method("sum", "list_double_sum_double", (list_of(DOUBLE),), DOUBLE, _sum_double),
    method("sum", "list_duration_sum_duration", (list_of(DURATION),), DURATION, _sum_duration),
    method("indexOf", "list_a_index_of_int", (_ITEMS, A), INT, index_of),
    method("lastIndexOf", "list_a_last_index_of_int", (_ITEMS, A), INT, last_index_of),
    method("slice", "list_slice", (_ITEMS, INT, INT), _ITEMS, slice_list),
    method("flatten", "list_flatten", (list_of(_ITEMS),), _ITEMS, flatten),
    method("flatten", "list_flatten_int", (list_of(DYN), INT), list_of(DYN), flatten),
    *[method("sort", f"list_{t}_sort", (list_of(t),), list_of(t), sort) for t in COMPARABLE],
    function("lists.range", "lists_range", (INT,), list_of(INT), number_range),
    method("reverse", "list_reverse", (_ITEMS,), _ITEMS, lambda items: list(items)[::-1]),
    method("distinct", "list_distinct", (_ITEMS,), _ITEMS, distinct),
    function("sets.contains", "list_sets_contains_list", _TWO, BOOL, sets_contains),
    function("sets.equivalent", "list_sets_equivalent_list", _TWO, BOOL, sets_equivalent),
    function("sets.intersects", "list_sets_intersects_list", _TWO, BOOL, sets_intersects),
)

# Offered only where attributes may be lists.
FOR_LIST_ATTRIBUTES: Final = (method("includes", "list_includes_a", (DYN, DYN), BOOL, includes),)
