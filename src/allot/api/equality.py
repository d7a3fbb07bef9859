"""Whether two JSON values are the same: to Python `true` and 1 are, to whoever wrote them they are not."""

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def equal(one: Any, other: Any) -> bool:
    """Equality of JSON: 1 is 1.0 and is not true.

    Python's own equality comes first, so what differs costs little. What it takes for equal is so if it
    is written alike; only what is not, because members are in another order or numbers have another
    form, is looked at value by value.
    """
    if one is other:
        return True
    if one != other:
        return False
    is_large = type(one) is dict or type(one) is list
    return (is_large and _encode(one) == _encode(other)) or _booleans_agree(one, other)


def _booleans_agree(one: Any, other: Any) -> bool:
    """Of values that are equal to Python."""
    if isinstance(one, dict):
        return all(_booleans_agree(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return all(map(_booleans_agree, one, other))
    return (type(one) is bool) == (type(other) is bool)
