"""The limit ranges of each namespace, as current as the namespace that a write compares.

A namespace without any costs a look into a dictionary. Whoever writes a range writes the namespace anew
(`announce`), so a namespace that is newer than what the cache has seen may have got one meanwhile: then the
store is asked.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from allot.api import Kind
from allot.store import Store

from ..reading.cache import Caches
from ..reading.history import Change
from ..storing.pending import changes_pending
from ..storing.repository import prefix_of
from ..storing.stored import object_of
from . import Attempt


class LimitRanges:
    def __init__(self, store: Store, caches: Caches, kind: Kind) -> None:
        self._store = store
        self._caches = caches
        self._kind = kind
        self._known: dict[str, dict[str, Mapping[str, Any]]] = {}  # namespace -> key -> fields
        self._cache = caches.made(kind)  # loaded or not: before that it has seen nothing
        self._cache.listeners.append(self._observe)

    def are_none(self, attempt: Attempt) -> bool:
        """Whether the cache has none for the namespace, and is as new as that."""
        namespace, found = attempt.context.namespace(), attempt.context.namespace_found
        if namespace is None or found is None or found.object is None:
            return True
        is_new = self._cache.revision < found.object.revision or self._is_pending(attempt.namespace)
        return attempt.namespace not in self._known and not is_new

    async def of(self, attempt: Attempt) -> Sequence[Mapping[str, Any]]:
        namespace, found = attempt.context.namespace(), attempt.context.namespace_found
        if namespace is None or found is None or found.object is None:
            return ()
        cache = await self._caches.of(self._kind)
        if cache.revision >= found.object.revision and not self._is_pending(attempt.namespace):
            return tuple(self._known.get(attempt.namespace, {}).values())
        page = await self._store.range(prefix_of(self._kind, attempt.namespace))
        return [object_of(entry, self._kind).fields for entry in page.entries]

    def _is_pending(self, namespace: str) -> bool:
        """Whether the transaction at hand has written one: who only deletes a range does not announce it."""
        return bool(changes_pending(prefix_of(self._kind, namespace)))

    async def announce(self, attempt: Attempt) -> None:
        """A plugin for limit ranges: pods that were decided without this one start over."""
        if attempt.operation != "DELETE":
            attempt.context.announce()

    def _observe(self, change: Change) -> None:
        namespace = change.object.namespace
        if change.type == "DELETED":
            ranges = self._known.get(namespace, {})
            ranges.pop(change.key, None)
            if not ranges:
                self._known.pop(namespace, None)
        else:
            self._known.setdefault(namespace, {})[change.key] = change.object.fields
