"""What is different between two objects, as sets of fields.

Equal parts are recognised by plain equality before anything is looked at, so
the cost follows the size of the change and not of the object.
"""

from typing import Any

from allot.api import schema as shapes

from .elements import edge_maker
from .extract import SERVER_FIELDS, always_there, node_of
from .fieldset import MEMBER, FieldSet, union


class Changes:
    __slots__ = ("added", "changed", "removed", "written")

    def __init__(self, changed: FieldSet, added: FieldSet, removed: FieldSet) -> None:
        self.changed = changed  # there before, and different now
        self.added = added
        self.removed = removed
        self.written = union(changed, added)

    def __bool__(self) -> bool:
        return bool(self.written or self.removed)

    def below(self, edge: str) -> "Changes":
        """Those of one part of the object."""
        if edge not in self.written and edge not in self.removed:
            return _NO_CHANGES
        changed, added, removed = (
            {edge: each[edge]} if edge in each else {} for each in (self.changed, self.added, self.removed)
        )
        return Changes(changed, added, removed)


_NO_CHANGES = Changes({}, {}, {})


Nodes = tuple[dict[str, Any] | None, dict[str, Any] | None, dict[str, Any] | None]
"""The changed, added and removed parts below one node; None where there is nothing."""

_NOTHING: Nodes = (None, None, None)
_CHANGED: Nodes = (MEMBER, None, None)
_ABSENT = object()


def compare(old: dict[str, Any], new: dict[str, Any], schema: shapes.Schema) -> Changes:
    """What of `old` is different in `new`, leaving out what nobody owns."""
    differing = [name for name in _differing(old, new) if name not in _NOBODYS]
    # Most writes are about spec or status; then metadata need not be taken apart.
    if "metadata" in differing:
        old, new = _ownable(old), _ownable(new)
        if old.get("metadata") == new.get("metadata"):
            differing.remove("metadata")
    changed, added, removed = _members(old, new, schema, differing)
    return Changes(changed or {}, added or {}, removed or {})


_NOBODYS = ("apiVersion", "kind")


def _ownable(fields: dict[str, Any]) -> dict[str, Any]:
    if metadata := fields.get("metadata"):
        owned = {name: value for name, value in metadata.items() if name not in SERVER_FIELDS}
        return {**fields, "metadata": owned}
    return fields


def _differing(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    differing = [
        name
        for name, before in old.items()
        if (after := new.get(name, _ABSENT)) is not before and after != before
    ]
    if len(new) != len(old) or differing:
        differing += [name for name in new if name not in old]
    return differing


def _members(
    old: dict[str, Any], new: dict[str, Any], schema: shapes.Schema, differing: list[str] | None = None
) -> Nodes:
    changed: dict[str, Any] = {}
    added: dict[str, Any] = {}
    removed: dict[str, Any] = {}
    for name in _differing(old, new) if differing is None else differing:
        before, after = old.get(name, _ABSENT), new.get(name, _ABSENT)
        field = schema.within(name)
        if schema.type is shapes.Type.OBJECT and always_there(schema, name):
            nodes = _always(before, after, field)
        else:
            nodes = _value(before, after, field)
        _hang("f:" + name, nodes, changed, added, removed)
    return changed or None, added or None, removed or None


def _hang(
    edge: str, nodes: Nodes, changed: dict[str, Any], added: dict[str, Any], removed: dict[str, Any]
) -> None:
    if nodes[0] is not None:
        changed[edge] = nodes[0]
    if nodes[1] is not None:
        added[edge] = nodes[1]
    if nodes[2] is not None:
        removed[edge] = nodes[2]


def _always(before: Any, after: Any, schema: shapes.Schema) -> Nodes:
    """A field that is there in any case: not mentioning it is the same as leaving it empty."""
    if schema.type is shapes.Type.OBJECT and not schema.atomic:
        return _members(_dict(before), _dict(after), schema)
    if schema.is_leaf:
        return _value(before, after, schema)
    if not _filled(before) and not _filled(after):
        return _NOTHING
    return _value(None if before is _ABSENT else before, None if after is _ABSENT else after, schema)


def _dict(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _value(before: Any, after: Any, schema: shapes.Schema) -> Nodes:
    """One value that is different. A container that comes or goes is itself a member."""
    if before is _ABSENT:
        return (None, node_of(after, schema), None)
    if after is _ABSENT:
        return (None, None, node_of(before, schema))
    if schema.is_leaf or not (_filled(before) or _filled(after)):
        return _CHANGED
    if schema.type is shapes.Type.LIST:
        return _elements(_list(before), _list(after), schema)
    if _can_be_entered(before) and _can_be_entered(after):
        return _members(_dict(before), _dict(after), schema)
    return _CHANGED


def _can_be_entered(value: Any) -> bool:
    return type(value) is dict or value is None


def _filled(value: Any) -> bool:
    return type(value) in (dict, list) and bool(value)


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _elements(old: list[Any], new: list[Any], schema: shapes.Schema) -> Nodes:
    """Elements that come, go or differ. Their order is nobody's."""
    assert schema.element is not None
    edge = edge_maker(schema)
    before, after = {edge(one): one for one in old}, {edge(one): one for one in new}
    changed: dict[str, Any] = {}
    added: dict[str, Any] = {}
    removed: dict[str, Any] = {}
    for name in {**before, **after}:
        one, other = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if one != other:
            _hang(name, _value(one, other, schema.element), changed, added, removed)
    return changed or None, added or None, removed or None
