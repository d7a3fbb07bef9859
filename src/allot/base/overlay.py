"""A map that can be forked at no cost and pays only for what changes afterwards.

A fork reads its parent's entries until it changes them; the parent never sees
the fork's changes. The parent must be left alone while a fork is in use: what it
changes underneath shows through.
"""

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_GONE: Final = object()
_UNKNOWN: Final = object()


class Overlay(Generic[K, V]):
    __slots__ = ("_own", "_under")

    def __init__(self, under: "Overlay[K, V] | None" = None) -> None:
        self._under = under
        self._own: dict[K, object] = {}

    def fork(self) -> "Overlay[K, V]":
        return Overlay(self)

    def get(self, key: K) -> V | None:
        at: Overlay[K, V] | None = self
        while at is not None:
            found = at._own.get(key, _UNKNOWN)
            if found is not _UNKNOWN:
                return None if found is _GONE else found  # type: ignore[return-value]
            at = at._under
        return None

    def is_own(self, key: K) -> bool:
        """Whether the entry was set here rather than read from the parent."""
        return self._under is None or key in self._own

    def set(self, key: K, value: V) -> None:
        self._own[key] = value

    def drop(self, key: K) -> None:
        if self._under is None:
            self._own.pop(key, None)
        else:
            self._own[key] = _GONE

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[K]:
        seen = set()
        at: Overlay[K, V] | None = self
        while at is not None:
            for key, value in at._own.items():
                if key not in seen:
                    seen.add(key)
                    if value is not _GONE:
                        yield key
            at = at._under

    def items(self) -> Iterator[tuple[K, V]]:
        for key in self:
            value = self.get(key)
            if value is not None:
                yield key, value
