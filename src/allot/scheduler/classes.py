"""The classes of one kind at one moment, by name; and when what they say was last different.

What it promises
    CLASS1  `revision` of a name is another number whenever what the name stands for has become
            different: the spec of a class, or the class behind an extended resource (which
            `extended.mapping` knows). Nothing else changes it: not a label, not another class.
    CLASS2  A fork costs what is changed on it, and its parent never notices.

Answers that were worked out from some classes are good while the revisions of their names are
what they were. So a class that changes costs those who asked for it, and nobody else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from allot.api import meta
from allot.base import Overlay

NEVER = 0
"""The revision of a name that nobody has said anything about."""


class Named(Protocol):
    @property
    def metadata(self) -> meta.ObjectMeta: ...


C = TypeVar("C", bound=Named)


class Classes(Mapping[str, C]):
    def __init__(self, meaning: Callable[[C], object]) -> None:
        """`meaning` is what a class says, of all that it has."""
        self._meaning = meaning
        self._known: Overlay[str, C] = Overlay()
        self._revisions: Overlay[str, int] = Overlay()  # by name of a class or of an extended resource
        self._count = NEVER

    def fork(self) -> "Classes[C]":
        child = Classes(self._meaning)
        child._known = self._known.fork()
        child._revisions = self._revisions.fork()
        child._count = self._count
        return child

    # -- asking ---------------------------------------------------------------------------------

    @property
    def changes(self) -> int:
        """How many there were so far."""
        return self._count

    def revision(self, name: str) -> int:
        return self._revisions.get(name) or NEVER

    def revisions(self, names: Iterable[str]) -> dict[str, int]:
        return {name: self.revision(name) for name in names}

    def __getitem__(self, name: str) -> C:
        found = self._known.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return sum(1 for _ in self._known)

    # -- hearing --------------------------------------------------------------------------------

    def put(self, view: C) -> None:
        name = view.metadata.name
        before = self._known.get(name)
        self._known.set(name, view)
        if before is None or self._meaning(before) != self._meaning(view):
            self.revise(name)

    def drop(self, name: str) -> None:
        if name in self._known:
            self._known.drop(name)
            self.revise(name)

    def revise(self, *names: str) -> None:
        """These stand for something else now."""
        for name in names:
            self._count += 1
            self._revisions.set(name, self._count)
