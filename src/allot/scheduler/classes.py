"""The device classes of one moment, by name."""

from collections.abc import Iterator, Mapping

from allot.api import resource
from allot.base import Overlay


class Classes(Mapping[str, resource.DeviceClass]):
    """A fork costs what is changed on it, and its parent never notices."""

    def __init__(self) -> None:
        self._known: Overlay[str, resource.DeviceClass] = Overlay()

    def fork(self) -> "Classes":
        child = Classes()
        child._known = self._known.fork()
        return child

    def put(self, view: resource.DeviceClass) -> None:
        self._known.set(view.metadata.name, view)

    def drop(self, name: str) -> None:
        self._known.drop(name)

    def __getitem__(self, name: str) -> resource.DeviceClass:
        found = self._known.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return sum(1 for _ in self._known)
