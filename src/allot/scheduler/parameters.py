"""Objects with parameters of claims and classes, as far as classes of numeric parameters name their kinds.

Which kinds those are is not known beforehand: classes come and go, and drivers bring kinds of their own. So
of each kind there is also how it stands: whether it can be read at all, and if not why. That is what a pod is
told which waits for it.
"""

from typing import NamedTuple

from allot.api import Object, classic
from allot.base import Overlay
from allot.informers import Key, ResourceId


class ParameterKind(NamedTuple):
    """A kind of objects that a class names. References of classes carry no version: the preferred one is
    read ("")."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class Standing(NamedTuple):
    what: ResourceId | None = None  # None while nobody knows where its objects are
    why_not: str = ""  # why they cannot be read; "" if they can be, and all are known


NOT_READ_YET = Standing(None, "has not been read yet")


def kinds_of(resource_class: classic.ResourceClass) -> frozenset[ParameterKind]:
    """What must be read for claims of a class."""
    listed = resource_class.numeric_parameters
    if not listed:
        return frozenset()
    found = {ParameterKind(one.group, one.version, one.kind) for one in listed}
    own = resource_class.parameters_ref
    return frozenset(found | ({ParameterKind(own.api_group, "", own.kind)} if own is not None else set()))


class ParameterObjects:
    def __init__(self) -> None:
        self._standings: Overlay[ParameterKind, Standing] = Overlay()
        self._objects: Overlay[tuple[ResourceId, Key], Object] = Overlay()

    def fork(self) -> "ParameterObjects":
        child = ParameterObjects()
        child._standings = self._standings.fork()
        child._objects = self._objects.fork()
        return child

    # -- hearing --------------------------------------------------------------------------------

    def stand(self, kind: ParameterKind, standing: Standing) -> None:
        self._standings.set(kind, standing)

    def forget(self, kind: ParameterKind) -> None:
        """No class names it any more."""
        gone = self._standings.get(kind)
        self._standings.drop(kind)
        still = {one.what for _, one in self._standings.items()}
        if gone is None or gone.what is None or gone.what in still:
            return
        for what, key in [one for one, _ in self._objects.items() if one[0] == gone.what]:
            self._objects.drop((what, key))

    def put(self, what: ResourceId, object: Object) -> None:
        self._objects.set((what, Key.of(object)), object)

    def drop(self, what: ResourceId, key: Key) -> None:
        self._objects.drop((what, key))

    # -- asking ---------------------------------------------------------------------------------

    def find(self, kind: ParameterKind, namespace: str, name: str) -> Object | str:
        """The object, or in words why it cannot be had."""
        standing = self._standings.get(kind) or NOT_READ_YET
        if standing.why_not or standing.what is None:
            return f"{kind} {standing.why_not}"
        key = Key(namespace if standing.what.namespaced else "", name)
        found = self._objects.get((standing.what, key))
        where = f"{key.namespace}/{name}" if key.namespace else name
        return found if found is not None else f"{kind} {where} not found"

    def counts(self) -> tuple[int, int]:
        """How many kinds classes name for claims, and how many of these the server serves."""
        named = [one for kind, one in self._standings.items() if kind.version]
        return len(named), sum(1 for one in named if one.what is not None)

    def forbidden(self) -> int:
        """How many kinds the server serves that may not be read."""
        return sum(1 for _, one in self._standings.items() if one.what is not None and one.why_not)
