"""How the API should show what a driver has on this node, and which writes make it so. Pure.

A driver's instances lie in as many NodeResourceCapacity objects as their size asks for, as a rule in one.
What is in `data` is carried over and never looked at.

What it promises
    CAPACITY1  Each instance is in exactly one object once the writes are done; one that stays, stays where
               it is.
    CAPACITY2  What is shown already needs no write.
    CAPACITY3  A driver with nothing to offer has one object without instances; one that is gone has none.
    CAPACITY4  A message that contradicts itself, or is none, changes nothing; the complaint names the
               instance.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from allot.api import Object, encode, numeric
from allot.wire import capacity

Fields = dict[str, Any]

OBJECT_BYTES_MAX: Final = 900 * 1024
"""Of instances in one object: with the rest of it, less than the 1 MiB that an object may have."""


class BadCapacity(Exception):
    """A driver's message cannot be published (CAPACITY4)."""


class Source(NamedTuple):
    """Whose capacity it is."""

    driver: str
    node: str
    owner: Mapping[str, Any]  # the reference to the Node


class Writes(NamedTuple):
    create: tuple[Fields, ...] = ()
    replace: tuple[Fields, ...] = ()
    delete: tuple[Object, ...] = ()


def told(message: capacity.NodeWatchCapacityResponse) -> tuple[Fields, ...]:
    """The instances of a message, as the API has them. Raises BadCapacity."""
    seen: set[str] = set()
    for one in message.instances:
        if one.id in seen:
            raise BadCapacity(f"two instances have the id {one.id!r}")
        seen.add(one.id)
    return tuple(_instance(one) for one in message.instances)


def _instance(one: capacity.Instance) -> Fields:
    for name, value in (("id", one.id), ("api_version", one.api_version), ("kind", one.kind)):
        if not value:
            raise BadCapacity(f"instance {one.id!r} has no {name}")
    try:
        data = msgspec.json.decode(one.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadCapacity(f"data of instance {one.id!r} is not JSON") from None
    if not isinstance(data, dict):
        raise BadCapacity(f"data of instance {one.id!r} is not a JSON object")
    return {"id": one.id, "apiVersion": one.api_version, "kind": one.kind, "data": data}


def changes(source: Source, instances: Sequence[Fields] | None, shown: Iterable[Object]) -> Writes:
    """What to write, so that the API shows these; None: the driver is gone."""
    objects = sorted(shown, key=lambda one: one.name)
    if instances is None:
        return Writes(delete=tuple(objects))
    boxes = _packed(instances, objects)
    kept = [box for box in boxes if box.instances] or boxes[:1]  # CAPACITY3
    shown_ones = [(box.object, box.instances) for box in kept if box.object is not None]
    return Writes(
        tuple(_made(source, box.instances) for box in kept if box.object is None),
        tuple(
            _corrected(one, source, wanted)
            for one, wanted in shown_ones
            if not _is_as_wanted(one, source, wanted)
        ),
        tuple(box.object for box in boxes if box not in kept and box.object is not None),
    )


@dataclass(slots=True, eq=False)
class _Box:
    """What one object holds."""

    object: Object | None
    instances: list[Fields] = field(default_factory=list)
    bytes: int = 0

    def has_room(self, size: int) -> bool:
        return len(self.instances) < numeric.limits.INSTANCES_MAX and self.bytes + size <= OBJECT_BYTES_MAX

    def put(self, instance: Fields, size: int) -> None:
        self.instances.append(instance)
        self.bytes += size


def _packed(instances: Sequence[Fields], objects: Sequence[Object]) -> list[_Box]:
    """CAPACITY1: those that are shown keep their place; the others go where there is room."""
    wanted = {one["id"]: (one, len(encode(one))) for one in instances}
    boxes = [_Box(one) for one in objects]
    for box in boxes:
        for id in _ids(box.object):
            if id in wanted and box.has_room(wanted[id][1]):
                box.put(*wanted.pop(id))
    for instance, size in wanted.values():
        room = next((box for box in boxes if box.has_room(size)), None)
        if room is None:
            boxes.append(room := _Box(None))
        room.put(instance, size)
    return boxes or [_Box(None)]


def _ids(object: Object | None) -> Iterator[str]:
    listed = object.fields.get("instances") or () if object is not None else ()
    return (str(one.get("id")) for one in listed)


def _made(source: Source, instances: list[Fields]) -> Fields:
    return {
        "metadata": {"generateName": f"{source.driver}-", "ownerReferences": [dict(source.owner)]},
        "nodeName": source.node,
        "driverName": source.driver,
        "instances": instances,
    }


def _is_as_wanted(object: Object, source: Source, instances: list[Fields]) -> bool:
    return list(object.fields.get("instances") or ()) == instances and list(
        object.fields["metadata"].get("ownerReferences") or ()
    ) == [source.owner]


def _corrected(object: Object, source: Source, instances: list[Fields]) -> Fields:
    """With the version that was seen: who was faster is looked at again."""
    metadata = {**object.fields["metadata"], "ownerReferences": [dict(source.owner)]}
    return {**object.fields, "metadata": metadata, "instances": instances}
