"""The order of a list after `$setElementOrder`.

The patch says how the elements it knows of follow each other. Elements that only
the server has keep their place relative to those: each goes in front of the first
known element that it preceded before.
"""

from collections import deque
from collections.abc import Hashable
from typing import Any


def in_order(merged: list[Any], order: list[Any], before: list[Any], merge_key: str) -> list[Any]:
    """`merged` in the order that the patch asks for; `before` is the list as it was."""
    ranks = {name_of(one, merge_key): rank for rank, one in reversed(list(enumerate(order)))}
    places = {name_of(one, merge_key): place for place, one in reversed(list(enumerate(before)))}
    known = [one for one in merged if name_of(one, merge_key) in ranks]
    known.sort(key=lambda one: ranks[name_of(one, merge_key)])
    others = deque(one for one in merged if name_of(one, merge_key) not in ranks)

    out: list[Any] = []
    nowhere = len(before)
    for one in known:
        place = places.get(name_of(one, merge_key))
        while others and place is not None and places.get(name_of(others[0], merge_key), nowhere) < place:
            out.append(others.popleft())
        out.append(one)
    return [*out, *others]


def name_of(one: Any, merge_key: str = "") -> Hashable:
    """What tells an element apart: its merge key, or itself."""
    value = one.get(merge_key) if merge_key and type(one) is dict else one
    if type(value) in (dict, list):
        return repr(value)
    return (type(value).__name__, value)
