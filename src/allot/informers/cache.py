"""The objects of one resource as last told, and what each telling changed.

Where it sits
    `reflector` tells it what the server said; `informer` passes on the changes
    that it returns. It never awaits and knows no clock.

What it promises
    CACHE1  It holds what the last telling of each object said. Every difference between two
            tellings is returned as exactly one change, the difference between nothing and
            something included.
    CACHE2  An object and a later one of the same name are two: the first is told as
            deleted, with its last known state, before the second is told as added.
    CACHE3  What arrives twice, or late, changes nothing: versions of one object only grow,
            and what the stream has already gone past is not told again.
    CACHE4  An index holds the same objects under the same values as one that is built from
            nothing would. Keeping it so costs what changed.
    CACHE5  Objects and answers are shared and never changed. Order is the order of arrival,
            so that a run can be repeated exactly.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import msgspec

from allot.api import Object
from allot.base import require


class Key(NamedTuple):
    """Which object of a resource. The namespace is "" where there are none."""

    namespace: str
    name: str

    @classmethod
    def of(cls, object: Object) -> "Key":
        metadata = object.metadata
        return cls(metadata.namespace, metadata.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Added(msgspec.Struct, frozen=True):
    object: Object


class Updated(msgspec.Struct, frozen=True):
    old: Object
    object: Object


class Deleted(msgspec.Struct, frozen=True):
    """The last known state: its end may have come while nobody watched."""

    object: Object


Change = Added | Updated | Deleted
IndexFunction = Callable[[Object], Iterable[str]]


class Aside(Protocol):
    """Who is told of objects that cannot be read, and when they can (`aside`)."""

    def add(self, what: str, object: Object, bug: Exception) -> None: ...
    def well(self, what: str, key: Key) -> None: ...


class Index:
    """Objects by the values that a function finds in them (CACHE4)."""

    def __init__(self, function: IndexFunction, name: str = "", aside: Aside | None = None) -> None:
        """What the function cannot read has no values, and `aside` is told; without one it is an error."""
        self.function = function
        self._name = f"index {name}"
        self._aside = aside
        self._misread: set[Key] = set()
        self._members: dict[str, dict[Key, Object]] = {}
        self._values: dict[Key, tuple[str, ...]] = {}

    def __getitem__(self, value: str) -> tuple[Object, ...]:
        return tuple(self._members.get(value, {}).values())

    def __contains__(self, value: str) -> bool:
        return value in self._members

    def values(self) -> tuple[str, ...]:
        return tuple(self._members)

    def put(self, key: Key, object: Object) -> None:
        before = self._values.get(key, ())
        try:
            found = tuple(self.function(object))
            if self._misread:
                self._reads_well(key)
        except Exception as bug:
            if self._aside is None:
                raise
            self._aside.add(self._name, object, bug)
            self._misread.add(key)
            found = ()
        now = found if len(found) < 2 else tuple(dict.fromkeys(found))
        if now == before:  # as nearly always
            for value in now:
                self._members[value][key] = object
            return
        for value in before:
            if value not in now:
                self._leave(value, key)
        for value in now:
            self._members.setdefault(value, {})[key] = object
        if now:
            self._values[key] = now
        else:
            self._values.pop(key, None)

    def remove(self, key: Key) -> None:
        self._reads_well(key)
        for value in self._values.pop(key, ()):
            self._leave(value, key)

    def _reads_well(self, key: Key) -> None:
        if key in self._misread and self._aside is not None:
            self._misread.discard(key)
            self._aside.well(self._name, key)

    def _leave(self, value: str, key: Key) -> None:
        members = self._members[value]
        del members[key]
        if not members:
            del self._members[value]


class Cache:
    def __init__(self, aside: Aside | None = None) -> None:
        self._aside = aside
        self._objects: dict[Key, Object] = {}
        self._namespaces: dict[str, dict[Key, Object]] = {}
        self._indexes: dict[str, Index] = {}
        self.stale = 0  # tellings that came too late to matter (CACHE3)

    # -- reading --------------------------------------------------------------------------------

    def get(self, name: str, namespace: str = "") -> Object | None:
        return self._objects.get(Key(namespace, name))

    def objects(self, namespace: str = "") -> tuple[Object, ...]:
        """Everything, or everything in a namespace."""
        found = self._namespaces.get(namespace, {}) if namespace else self._objects
        return tuple(found.values())

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(tuple(self._objects.values()))

    def index(self, name: str, function: IndexFunction) -> Index:
        """The index of that name; made now if there is none. One name stands for one function."""
        found = self._indexes.get(name)
        if found is None:
            found = self._indexes[name] = Index(function, name, self._aside)
            for key, object in self._objects.items():
                found.put(key, object)
        require(found.function is function, f"CACHE4: the index {name!r} means two things")
        return found

    # -- being told -----------------------------------------------------------------------------

    def put(self, object: Object) -> tuple[Change, ...]:
        """An object as a watch tells it, new or changed."""
        key = Key.of(object)
        old = self._objects.get(key)
        if old is not None and not _is_newer(object, old):
            self.stale += 1
            return ()
        return self._take(key, old, object)

    def remove(self, object: Object) -> tuple[Change, ...]:
        """The end of an object; `object` is its last state as the server tells it."""
        key = Key.of(object)
        old = self._objects.get(key)
        if old is None:
            return ()
        if old.uid != object.uid or _is_newer(old, object):
            self.stale += 1
            return ()
        self._drop(key)
        return (Deleted(object),)

    def replace(self, objects: Mapping[Key, Object]) -> Iterator[tuple[Change, ...]]:
        """A whole list, taken over step by step: each step is consistent, the rest is yet to come.

        What the list lacks is gone. The caller may pause between steps, and tells
        nothing else meanwhile.
        """
        for key, old in list(self._objects.items()):
            if key not in objects:
                self._drop(key)
                yield (Deleted(old),)
        for key, object in objects.items():
            before = self._objects.get(key)
            if before is None or before.resource_version != object.resource_version:
                yield self._take(key, before, object)  # older too: a list is the truth, even a restored one

    def _take(self, key: Key, old: Object | None, object: Object) -> tuple[Change, ...]:
        self._keep(key, object)
        if old is None:
            return (Added(object),)
        return (Updated(old, object),) if old.uid == object.uid else (Deleted(old), Added(object))

    def _keep(self, key: Key, object: Object) -> None:
        self._objects[key] = object
        neighbours = self._namespaces.get(key.namespace)
        if neighbours is None:
            neighbours = self._namespaces[key.namespace] = {}
        neighbours[key] = object
        for index in self._indexes.values():
            index.put(key, object)

    def _drop(self, key: Key) -> None:
        del self._objects[key]
        neighbours = self._namespaces[key.namespace]
        del neighbours[key]
        if not neighbours:
            del self._namespaces[key.namespace]
        for index in self._indexes.values():
            index.remove(key)

    def check(self) -> None:
        """CACHE4, dearly: every index against one built from nothing. For tests and the simulator."""
        within = {key: object for held in self._namespaces.values() for key, object in held.items()}
        require(within == self._objects, "CACHE4: the namespaces hold other objects")
        require(all(self._namespaces.values()), "CACHE4: a namespace without objects is kept")
        for name, index in self._indexes.items():
            anew = Index(index.function, name, self._aside)
            for key, object in self._objects.items():
                anew.put(key, object)
            require(set(anew.values()) == set(index.values()), f"CACHE4: index {name} has other values")
            for value in anew.values():
                same = {Key.of(o): o for o in anew[value]} == {Key.of(o): o for o in index[value]}
                require(same, f"CACHE4: index {name} differs at {value!r}")


def _is_newer(object: Object, than: Object) -> bool:
    """Versions of one server are numbers that grow; where they are not, what comes later is newer."""
    if object.revision and than.revision:
        return object.revision > than.revision
    mine, other = object.resource_version, than.resource_version
    if mine.isdigit() and other.isdigit():
        return int(mine) > int(other)
    return mine != other
