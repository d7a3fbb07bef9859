"""Objects that decide about others, as this process knows them.

Admission and tokens ask about an object that was perhaps created a moment ago and has not come round to the
cache yet. So the store is asked before anybody is refused for want of it. What members of a transaction have
written is what counts for those behind them (PEND1): of that the cache is not asked at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from allot.api import Kind, Object, classic, compute, resource
from allot.store import Entry, Store

from .admission import pods
from .reading.cache import Caches
from .reading.history import Change
from .registry import Registry
from .storing.pending import changes_pending, is_pending
from .storing.repository import Found, key_of, prefix_of
from .storing.stored import object_of


class Lookups:
    def __init__(self, store: Store, caches: Caches, registry: Registry) -> None:
        self._store = store
        self._caches = caches
        self._registry = registry
        self._accounts = self.kind("", "serviceaccounts")
        self._templates = self.kind(*resource.RESOURCE_CLAIM_TEMPLATE.storage)
        self._priority_classes = self.kind("scheduling.k8s.io", "priorityclasses")
        classes = registry.kind(classic.RESOURCE_CLASS.group, classic.RESOURCE_CLASS.plural)
        self.classes = (classes,) if classes is not None else ()  # none where their gate is off
        self._default_class: tuple[Mapping[str, Any] | None] | None = None  # None: not known since a change
        caches.made(self._priority_classes).listeners.append(self._class_changed)

    def kind(self, group: str, plural: str) -> Kind:
        kind = self._registry.kind(group, plural)
        if kind is None:
            raise LookupError(f"{plural}.{group} is not served")
        return kind

    def core(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """An object of the core group at once: from the store if it is embedded, else from the cache."""
        found = self._at_once(self.kind("", resource), namespace, name).object
        return found.fields if found else None

    def resource_class(self, name: str) -> Found:
        """At once, as `core` does it. Whoever decides by it compares it in the commit."""
        kind = classic.RESOURCE_CLASS
        key = key_of(kind, "", name)
        entry = self._store.peek(key) if self.classes else None
        known = self._known_at(kind, key)
        if entry is None or (known is not None and known.revision == entry.revision):
            return Found(key, known)  # decoded, as a rule
        return Found(key, object_of(entry, kind))

    def node(self, name: str) -> Found:
        """At once, as `core` does it."""
        return self._at_once(self.kind("", "nodes"), "", name)

    def known_account(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The service account, if the cache has it."""
        found = self._known_at(self._accounts, key_of(self._accounts, namespace, name))
        return found.fields if found is not None else None

    async def compute_class(self, name: str) -> Mapping[str, Any] | None:
        return await self._known(compute.RESOURCE_CLASS, "", name)

    async def service_account(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        return await self._known(self._accounts, namespace, name)

    async def claim_template(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        return await self._known(self._templates, namespace, name)

    def default_priority_class(self) -> Mapping[str, Any] | None:
        """The one for pods that name none."""
        if changed := dict(changes_pending(prefix_of(self._priority_classes))):
            return pods.global_default(self._priority_classes_with(changed))
        if self._default_class is None:
            classes = self._caches.made(self._priority_classes).objects.values()
            self._default_class = (pods.global_default(one.fields for one in classes),)
        return self._default_class[0]

    def _priority_classes_with(self, changed: Mapping[str, Entry | None]) -> Iterator[Mapping[str, Any]]:
        kind = self._priority_classes
        for key, one in self._caches.made(kind).objects.items():
            if key not in changed:
                yield one.fields
        yield from (object_of(entry, kind).fields for entry in changed.values() if entry is not None)

    async def priority_class(self, name: str) -> Mapping[str, Any] | None:
        return await self._known(self._priority_classes, "", name)

    def _class_changed(self, change: Change) -> None:
        self._default_class = None

    async def pods_of(self, namespace: str) -> Sequence[Mapping[str, Any]]:
        kind = self.kind("", "pods")
        page = await self._store.range(prefix_of(kind, namespace))
        return [object_of(entry, kind).fields for entry in page.entries]

    async def _known(self, kind: Kind, namespace: str, name: str) -> Mapping[str, Any] | None:
        key = key_of(kind, namespace, name)
        found = self._known_at(kind, key)
        if found is None:
            entry = await self._store.get(key)
            found = object_of(entry, kind) if entry else None
        return found.fields if found is not None else None

    def _at_once(self, kind: Kind, namespace: str, name: str) -> Found:
        key = key_of(kind, namespace, name)
        entry = self._store.peek(key)
        return Found(key, object_of(entry, kind) if entry else self._known_at(kind, key))

    def _known_at(self, kind: Kind, key: str) -> Object | None:
        """As the cache has it."""
        return None if is_pending(key) else self._caches.made(kind).objects.get(key)
