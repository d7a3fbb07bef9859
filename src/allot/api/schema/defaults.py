"""Values that a schema assumes where a user says nothing.

For each shape a small function is made that visits only the branches where a
default can be; for most kinds there are none and nothing is visited. The empty
defaults of Kubernetes types only matter for the documents and for list keys: an
object is not made longer by them. Those of a CRD are written like any other.

A long default in each element of a long list would take any amount of memory. What
is filled in is counted first, and more than an object may have is refused.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import TooLarge
from ..object import OBJECT_BYTES_MAX, encode
from .node import MISSING, Schema, Type


class Room:
    """What is left of the bytes that defaults may take in one object."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = OBJECT_BYTES_MAX

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise TooLarge(
                f"the defaults of the schema make the object too large to be stored: more than "
                f"{OBJECT_BYTES_MAX} bytes"
            )


Apply = Callable[[Any, Room], None]


class Filler(NamedTuple):
    apply: Apply
    only_with: frozenset[str] = frozenset()
    """An object without any of these fields is left as it is; none: every object is looked at."""


def apply_defaults(value: Any, schema: Schema) -> None:
    """Fill in, in place, what `schema` assumes. The value must already fit."""
    if schema.defaulter is MISSING:
        schema.defaulter = _make(schema, ())
    if schema.defaulter is not None:
        schema.defaulter.apply(value, Room())


def _make(schema: Schema, outside: tuple[Schema, ...]) -> Filler | None:
    """A type inside itself is left alone: no Kubernetes type and no structural schema assumes
    anything down there."""
    if any(schema is one for one in outside):
        return None
    inside = (*outside, schema)
    match schema.type:
        case Type.OBJECT:
            return _for_object(schema, inside)
        case Type.MAP | Type.LIST:
            assert schema.element is not None
            each = _make(schema.element, inside)
            return None if each is None else _for_members(each)
        case _:
            return None


def _for_members(each: Filler) -> Filler:
    fill, only_with = each

    def apply(value: Any, room: Room) -> None:
        for member in value.values() if type(value) is dict else value:
            # Of the many variables of a container, say, hardly one takes its value from elsewhere.
            if member is not None and not (only_with and only_with.isdisjoint(member)):
                fill(member, room)

    return Filler(apply)


def _for_object(schema: Schema, inside: tuple[Schema, ...]) -> Filler | None:
    assumed = {
        name: (field.default, len(encode({name: field.default})))
        for name, field in schema.fields.items()
        if field.default is not MISSING and not (schema.name and field.default == "")
    }
    deeper = {
        name: inner.apply
        for name, field in schema.fields.items()
        if (inner := _make(field, inside)) is not None
    }
    if not assumed and not deeper:
        return None
    deeper_names = frozenset(deeper)

    def apply(value: dict[str, Any], room: Room) -> None:
        for name, (default, size) in assumed.items():
            if name not in value:
                room.take(size)
                value[name] = copy.deepcopy(default)
        for name in value.keys() & deeper_names:  # of all that may be there, few are
            member = value[name]
            if member is not None:
                deeper[name](member, room)

    return Filler(apply, frozenset() if assumed else deeper_names)
