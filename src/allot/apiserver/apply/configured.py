"""What an applier says by a configuration, as a set of fields.

It owns what it puts in: every scalar, every element of a list by key, every key of
a map, every atomic or empty container. Unlike the maker of an object (`extract`) it
does not own the lists and objects around them, which it may share with others.
"""

from typing import Any

from allot.api import errors
from allot.api import schema as shapes

from .elements import edge_maker
from .extract import SERVER_FIELDS, is_named
from .fieldset import MEMBER, FieldSet, shown, without_subtrees


def configured(fields: dict[str, Any], schema: shapes.Schema) -> FieldSet:
    """The members of an applied configuration, less what nobody owns."""
    return without_subtrees(_configured(_ownable(fields), schema), _UNOWNED)


_UNOWNED: FieldSet = {"f:metadata": {f"f:{name}": MEMBER for name in sorted(SERVER_FIELDS)}}


def _ownable(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what says which object it is, and without metadata that says nothing."""
    return {
        name: value
        for name, value in fields.items()
        if name not in ("apiVersion", "kind") and (value or name != "metadata")
    }


def _configured(value: Any, schema: shapes.Schema) -> dict[str, Any]:
    """The node of a value that is not a leaf and not empty; members in it, but not itself."""
    if type(value) is list:
        return _configured_list(value, schema)
    out: dict[str, Any] = {}
    for name, member in value.items():
        field = schema.within(name)
        node = MEMBER if _is_whole(member, field) else _configured(member, field)
        if node and not is_named(schema, name):
            node = {".": MEMBER, **node}
        out["f:" + name] = node
    return out


def _configured_list(value: list[Any], schema: shapes.Schema) -> dict[str, Any]:
    assert schema.element is not None
    edge = edge_maker(schema)
    out: dict[str, Any] = {}
    for element in value:
        name = edge(element)
        if name in out or name == "k:{}":
            what = (
                f"duplicate entries for key {shown(name)}" if name in out else f"no keys {list(schema.keys)}"
            )
            raise errors.BadRequest(f"the applied configuration has a list element with {what}")
        node = MEMBER if _is_whole(element, schema.element) else _configured(element, schema.element)
        out[name] = {".": MEMBER, **node} if node else MEMBER
    return out


def _is_whole(value: Any, schema: shapes.Schema) -> bool:
    """Empty containers are members themselves, or a client could not say that there is one."""
    return (
        schema.is_leaf
        or type(value) not in (dict, list)
        or not value
        or (type(value) is list and schema.is_free)
    )
