"""What there is, at one moment of a history: objects by their uid. Most checkers keep one of these."""

from collections.abc import Iterator

from ..recording import Seen
from .reading import Fields, controller


class LiveObjects:
    def __init__(self, *resources: str) -> None:
        self._objects: dict[str, dict[str, Fields]] = {resource: {} for resource in resources}

    def see(self, seen: Seen) -> Fields | None:
        """Take the event over. Returns what the object was before."""
        objects = self._objects.get(seen.resource)
        if objects is None:
            return None
        uid = seen.object.uid
        before = objects.pop(uid, None)
        if seen.type != "DELETED":
            objects[uid] = seen.fields
        return before

    def all(self, resource: str) -> Iterator[Fields]:
        yield from self._objects[resource].values()

    def get(self, resource: str, uid: str) -> Fields | None:
        return self._objects[resource].get(uid)

    def named(self, resource: str, name: str, namespace: str = "") -> Fields | None:
        for one in self._objects[resource].values():
            metadata = one["metadata"]
            if metadata["name"] == name and metadata.get("namespace", "") == namespace:
                return one
        return None

    def of(self, resource: str, uid: str) -> list[Fields]:
        """Those that one object controls."""
        return [one for one in self._objects[resource].values() if controller(one) == uid]

    def has(self, uid: str) -> bool:
        return any(uid in objects for objects in self._objects.values())

    def __iter__(self) -> Iterator[Fields]:
        for objects in self._objects.values():
            yield from objects.values()
