"""What moved lately, so that whoever remembers an answer knows which ones to doubt."""

from typing import Generic, TypeVar

K = TypeVar("K")

KEPT = 4096


class Journal(Generic[K]):
    """The last changes by key. Older than that, everything may have moved."""

    __slots__ = ("_entries", "_first", "_touched", "revision")

    def __init__(self, revision: int = 0) -> None:
        self.revision = revision
        self._first = revision  # the revision before the oldest entry
        self._entries: list[K] = []
        self._touched: set[K] | None = set()  # None: everything

    def add(self, key: K) -> None:
        self.revision += 1
        self._entries.append(key)
        if self._touched is not None:
            self._touched.add(key)
        if len(self._entries) > 2 * KEPT:
            self._first += len(self._entries) - KEPT
            del self._entries[:-KEPT]

    def everything(self) -> None:
        self.revision += 1
        self._first = self.revision
        self._entries.clear()
        self._touched = None

    def since(self, revision: int) -> frozenset[K] | None:
        """The keys that moved after `revision`; None when that is too long ago to say."""
        if revision < self._first:
            return None
        return frozenset(self._entries[revision - self._first :])

    def touched(self, key: K) -> bool:
        """Whether the key moved since this journal began."""
        return self._touched is None or key in self._touched
