"""Who serves a pod's extended resources on a node: its device plugin, DRA, or nobody.

Decided resource by resource and node by node. Where the node has any of a resource to give
out, a device plugin put it there, and counting it is left to the fit of ordinary resources.
Where it has none and a device class stands behind the name, devices are claimed. A resource
is never served by both on one node; different resources of one pod may be.

The decision is a small value, `Delegation`. Everything that follows from it (the claim's
spec, what the allocator makes of it) depends on nothing else about the node, so nodes with
an equal delegation share all of that.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .asked import Asked
from .mapping import ExtendedResources


@dataclass(frozen=True, slots=True)
class Delegation:
    """The resources that DRA serves, each with its device class; sorted by resource."""

    classes: tuple[tuple[str, str], ...] = ()

    def __contains__(self, resource: str) -> bool:
        return any(name == resource for name, _ in self.classes)

    def __bool__(self) -> bool:
        return bool(self.classes)


@dataclass(frozen=True, slots=True)
class Lacking:
    """Resources that nobody serves on a node."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"no device plugin and no device class serves {', '.join(self.names)}"


class Choice:
    """One pod's extended resources and the classes of one moment, put to many nodes."""

    def __init__(self, asked: Asked, resources: ExtendedResources) -> None:
        self._servers = tuple((name, resources.class_for(name)) for name in asked.names)
        self._answers: dict[tuple[bool, ...], Delegation | Lacking] = {}

    def on(self, allocatable: Mapping[str, int]) -> Delegation | Lacking:
        """Who serves them on a node with so much to give out."""
        by_plugin = tuple(allocatable.get(name, 0) > 0 for name, _ in self._servers)
        answer = self._answers.get(by_plugin)
        if answer is None:
            answer = self._answers[by_plugin] = self._decided(by_plugin)
        return answer

    def _decided(self, by_plugin: tuple[bool, ...]) -> Delegation | Lacking:
        rest = [one for one, plugin in zip(self._servers, by_plugin, strict=True) if not plugin]
        lacking = tuple(name for name, device_class in rest if device_class is None)
        if lacking:
            return Lacking(lacking)
        return Delegation(tuple((name, one.metadata.name) for name, one in rest if one is not None))
