"""What tells the elements of a list apart, as edges of a field set.

    k:{"name":"a"}                          an element of a list by key
    v:"kubernetes.io/pvc-protection"        an element of a set

Keys are in alphabetical order. A key that an element leaves out takes the
default that the schema knows, else it is left out of the edge as well. A null
is an element that leaves everything out.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from allot.api import schema as shapes

_encode = msgspec.json.Encoder().encode

Edge = Callable[[Any], str]


def edge_maker(schema: shapes.Schema) -> Edge:
    """A function from an element to its edge, for a list that is not atomic."""
    if schema.edge is None:
        schema.edge = _made(schema)
    made: Edge = schema.edge
    return made


def _made(schema: shapes.Schema) -> Edge:
    assert schema.element is not None
    if schema.list_type == shapes.SET:
        return value_edge
    keys = sorted(schema.keys)
    assumed = {key: _default(schema.element, key) for key in keys}
    if len(keys) == 1 and assumed[keys[0]] is shapes.MISSING:
        return _single_key_edge(keys[0])

    def edge(element: Any) -> str:
        found = {}
        for key in keys:
            value = element.get(key) if element is not None else None
            if value is None:
                value = assumed[key]
            if value is not shapes.MISSING:
                found[key] = value
        return "k:" + _encode(found).decode()

    return edge


def value_edge(element: Any) -> str:
    return "v:" + _encode(element).decode()


def _single_key_edge(key: str) -> Edge:
    start = 'k:{"' + key + '":'

    def edge(element: Any) -> str:
        value = element.get(key) if element is not None else None
        if (
            type(value) is str
            and value.isascii()
            and '"' not in value
            and "\\" not in value
            and value.isprintable()
        ):
            return f'{start}"{value}"}}'
        return "k:{}" if value is None else f"{start}{_encode(value).decode()}}}"

    return edge


def _default(element: shapes.Schema, key: str) -> Any:
    field = element.child(key)
    return shapes.MISSING if field is None else field.default
