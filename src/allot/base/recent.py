"""The last keys of a stream, so many and no more; and forks of that."""

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")


class Recent(Generic[K]):
    """Keys in the order in which they came. Beyond `most` the oldest is forgotten.

    A fork has its parent's keys and up to `most` of its own; the parent never sees those. The parent must
    be left alone while a fork is in use.
    """

    __slots__ = ("_forgotten", "_most", "_own", "_under")

    def __init__(self, most: int, under: "Recent[K] | None" = None) -> None:
        self._most = most
        self._under = under
        self._own: dict[K, None] = {}
        self._forgotten: set[K] = set()  # of the parent's

    def fork(self) -> "Recent[K]":
        return Recent(self._most, self)

    def add(self, key: K) -> None:
        if key in self:
            return
        self._own[key] = None
        if len(self._own) > self._most:
            del self._own[next(iter(self._own))]

    def forget(self, key: K) -> None:
        self._own.pop(key, None)
        if self._under is not None:
            self._forgotten.add(key)

    def __contains__(self, key: K) -> bool:
        if key in self._own:
            return True
        return self._under is not None and key not in self._forgotten and key in self._under

    def __iter__(self) -> Iterator[K]:
        for key in self._under or ():
            if key not in self._forgotten:
                yield key
        yield from self._own
