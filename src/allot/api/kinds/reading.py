"""Reading decoded objects where any part may be absent.

The schema has already refused wrong types, so what is there has the right type;
what is absent or null reads as empty.
"""

from collections.abc import Mapping
from typing import Any

from ..kind import Fields


def obj(fields: Mapping[str, Any], *path: str) -> Fields:
    """The object at `path`, or an empty one that belongs to nobody."""
    found: Any = fields
    for step in path:
        found = found.get(step) or {}
    return found  # type: ignore[no-any-return]


def items(fields: Mapping[str, Any], first: str, *rest: str) -> list[Any]:
    """The list at the path `first`, `rest`, or an empty one."""
    if not rest:
        return fields.get(first) or []
    return obj(fields, first, *rest[:-1]).get(rest[-1]) or []


def text(fields: Mapping[str, Any], *path: str) -> str:
    return str(obj(fields, *path[:-1]).get(path[-1]) or "")


def default(fields: Fields, name: str, value: Any) -> None:
    """Set `name` unless it is set. An empty string counts as unset, as it does on Go's wire."""
    found = fields.get(name)
    if found is None or found == "":
        fields[name] = value


def section(fields: Fields, name: str) -> Fields:
    """The object `name` of `fields`, made when absent."""
    found = fields.get(name)
    if found is None:
        found = fields[name] = {}
    return found
