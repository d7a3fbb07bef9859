"""Objects that decide about others, as this process knows them.

Admission and tokens ask about an object that was perhaps created a moment ago and has not come round to the
cache yet. So the store is asked before anybody is refused for want of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from allot.api import Kind
from allot.store import Store

from .admission import pods
from .reading.cache import Caches
from .registry import Registry
from .storing.repository import key_of, prefix_of
from .storing.stored import object_of


class Lookups:
    def __init__(self, store: Store, caches: Caches, registry: Registry) -> None:
        self._store = store
        self._caches = caches
        self._registry = registry

    def kind(self, group: str, plural: str) -> Kind:
        kind = self._registry.kind(group, plural)
        if kind is None:
            raise LookupError(f"{plural}.{group} is not served")
        return kind

    def core(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """An object of the core group at once: from the store if it is embedded, else from the cache."""
        kind = self.kind("", resource)
        key = key_of(kind, namespace, name)
        entry = self._store.peek(key)
        found = object_of(entry, kind) if entry else self._caches.made(kind).objects.get(key)
        return found.fields if found else None

    async def service_account(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        return await self._known(self.kind("", "serviceaccounts"), namespace, name)

    async def priority_class(self, name: str) -> Mapping[str, Any] | None:
        """The class of that name or, with none, the one for pods that name none."""
        kind = self.kind("scheduling.k8s.io", "priorityclasses")
        if not name:
            return pods.global_default(one.fields for one in self._caches.made(kind).objects.values())
        return await self._known(kind, "", name)

    async def pods_of(self, namespace: str) -> Sequence[Mapping[str, Any]]:
        kind = self.kind("", "pods")
        page = await self._store.range(prefix_of(kind, namespace))
        return [object_of(entry, kind).fields for entry in page.entries]

    async def _known(self, kind: Kind, namespace: str, name: str) -> Mapping[str, Any] | None:
        key = key_of(kind, namespace, name)
        found = self._caches.made(kind).objects.get(key)
        if found is None:
            entry = await self._store.get(key)
            found = object_of(entry, kind) if entry else None
        return found.fields if found is not None else None
