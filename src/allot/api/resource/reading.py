"""Reading decoded objects that may lack any member.

The schema has been checked before any rule runs: members have their types, known
ones are never null, quantities and times are in canonical form.
"""

from collections.abc import Iterator
from typing import Any

from ..equality import equal
from ..kind import Fields


def at(container: Any, *path: str) -> Any:
    """The member at `path`, or None when there is nothing of that kind."""
    for key in path:
        if not isinstance(container, dict):
            return None
        container = container.get(key)
    return container


def objects(container: Any, *path: str) -> Iterator[Fields]:
    """The objects of the list or map at `path`; nothing when there is none."""
    found = at(container, *path)
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list):
        yield from (item for item in found if isinstance(item, dict))


def same(left: Any, right: Any) -> bool:
    """Equal but for members that are absent in one and empty in the other."""
    if left == right:
        return equal(left, right)
    if left is None or right is None:  # the usual case: something is new, or gone
        return (right if left is None else left) in ("", [])
    return equal(_essence(left), _essence(right))


def _essence(value: Any) -> Any:
    if isinstance(value, dict):
        kept = ((key, _essence(inner)) for key, inner in value.items())
        return {key: inner for key, inner in kept if not _is_empty(inner)}
    if isinstance(value, list):
        return [_essence(item) for item in value] or None
    return value or None if isinstance(value, str) else value


def _is_empty(value: Any) -> bool:
    return value is None or value == {}
