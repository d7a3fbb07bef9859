"""Hears what goes, counts what is there, and writes it down."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from allot import quota
from allot.api import Object, errors, podresources, resource
from allot.informers import (
    OWNER_INDEX,
    Again,
    Change,
    Deleted,
    Key,
    Reconciler,
    ResourceId,
    Updated,
    owner_uids,
)

from ..controller import Loop, World
from ..definitions import definition_of
from . import contexts, plan
from .counts import Counts, Found, listed
from .following import Following

QUOTAS = ResourceId("", "v1", "resourcequotas")
PODS = ResourceId("", "v1", "pods")
CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")
CLASSES = ResourceId("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
DEFINITIONS = ResourceId("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
NEEDS = (QUOTAS, PODS, CLAIMS, CLASSES, DEFINITIONS)

MOMENT_S = 0.1
"""What goes within a moment is counted together."""
SETTLED_S = 5.0
"""After a charge the caches have caught up by then, and a quota that says too much is seen."""
NOT_YET_SERVED_S = 1.0


def make(world: World) -> Sequence[Loop]:
    return [Counting(world)]


class Counting:
    def __init__(self, world: World) -> None:
        self._world = world
        self._quotas, pods, claims, self._classes, self._definitions = map(world.informer, NEEDS)
        self._owned = claims.cache.index(OWNER_INDEX, owner_uids)
        self._counts = Counts(contexts.from_caches(self._extended_names, pods, claims))
        self._unserved: dict[Key, list[quota.Source]] = {}
        self._unsure: set[Key] = set()
        """Quotas of pods whose devices a claim may pay from now on. That claim was made without
        a charge, since the pod paid, so the quota's version does not tell whether a cache shows it."""
        self._write = world.client.resource("", "v1", "resourcequotas")
        self._loop: Reconciler[Key] = Reconciler(
            "resourcequota_primary", self.reconcile, world.clock, world.telemetry
        )
        self._following = Following(world, (self._quotas, pods, claims), self._object_changed)
        world.on(self._quotas, self._quota_changed)
        world.on(self._classes, self._class_changed)
        world.on(self._definitions, self._definition_changed)

    async def run(self) -> None:
        try:
            await self._loop.run()
        finally:
            self._following.end()

    # -- from changes to quotas -----------------------------------------------------------------

    def _quota_changed(self, change: Change) -> None:
        key, fields = Key.of(change.object), change.object.fields
        if isinstance(change, Deleted):
            self._counts.end(key)
            self._unserved.pop(key, None)
            self._following.leave_all_but(
                source for one in self._quotas.cache for source in plan.sources_of(one.fields)
            )
        elif self._is_due(key, fields):
            self._loop.add(key)
        else:
            self._loop.add_after(key, SETTLED_S)

    def _is_due(self, key: Key, fields: Mapping[str, Any]) -> bool:
        is_counted = self._counts.has(key, fields.get("spec") or {})
        return not is_counted or plan.is_short(fields, self._counts.total(key))

    def _object_changed(self, source: quota.Source, change: Change) -> None:
        """Less may be used. That more is used has been charged already."""
        object = change.object
        if not self._counts.counts_in(object.namespace):
            return
        gone = isinstance(change, Deleted)
        touched = self._counts.remove(source, object) if gone else self._counts.put(source, object)
        self._look_soon(touched)
        if source == quota.PODS and _asks_for_devices(object):
            self._unsure.update(touched)
        for claim in self._claims_that_depend_on(source, object):
            self._look_soon(self._counts.put(quota.CLAIMS, claim))

    def _claims_that_depend_on(self, source: quota.Source, object: Object) -> list[Object]:
        """What one claim of a pod pays depends on the pod, and on the others."""
        if source == quota.PODS:
            return [*self._owned[object.uid]]
        if source != quota.CLAIMS or not quota.is_extended_claim(dict(object.fields)):
            return []
        pods = owner_uids(object)
        return [claim for uid in pods for claim in self._owned[uid] if claim.name != object.name]

    def _class_changed(self, change: Change) -> None:
        before = change.old if isinstance(change, Updated) else None
        name = change.object.view(resource.DeviceClass).spec.extended_resource_name
        if before is not None and before.view(resource.DeviceClass).spec.extended_resource_name == name:
            return
        for key in self._counts.counting(quota.CLAIMS):
            self._counts.end(key)  # it is counted from the beginning when it is looked at
            self._loop.add(key)

    def _extended_names(self) -> quota.ExtendedNames:
        if not self._world.gates["DRAExtendedResource"]:
            return None
        return quota.extended_names(one.view(resource.DeviceClass) for one in self._classes.cache)

    def _definition_changed(self, change: Change) -> None:
        for key, sources in self._unserved.items():
            if change.object.name in [f"{source.plural}.{source.group}" for source in sources]:
                self._loop.add(key)

    def _look_soon(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._loop.add_after(key, MOMENT_S)

    # -- from a quota to its status -------------------------------------------------------------

    async def reconcile(self, key: Key) -> Again | None:
        found = self._quotas.cache.get(key.name, key.namespace)
        if found is None:
            return None
        spec, sources = found.fields.get("spec") or {}, plan.sources_of(found.fields)
        unserved = await self._following.follow(sources)
        if not self._counts.has(key, spec):
            self._counts.begin(key, spec, sources, self._cached(key.namespace, sources))
        counted = self._counts.total(key)
        names = plan.doubtful(found.fields, counted)
        may_believe = key not in self._unsure and plan.are_less(found.fields, names, counted)
        if may_believe and self._have_heard(names, found.resource_version):
            recounted = quota.mask(counted, names)
        else:
            self._unsure.discard(key)  # what comes from now on puts it back
            recounted = await self._recount(key.namespace, spec, names)
        status = plan.status(found.fields, recounted)
        if status is not None:
            with contextlib.suppress(errors.NotFound):
                await self._write.update_status({**found.fields, "status": status})
        return self._wait_for(key, unserved)

    def _wait_for(self, key: Key, unserved: list[quota.Source]) -> Again | None:
        """A kind that is defined and not served yet will be in a moment, if it is one that counts."""
        if not unserved:
            self._unserved.pop(key, None)
            return None
        self._unserved[key] = unserved
        return Again(NOT_YET_SERVED_S) if any(map(self._is_coming, unserved)) else None

    def _is_coming(self, source: quota.Source) -> bool:
        found = self._definitions.cache.get(f"{source.plural}.{source.group}")
        if found is None:
            return False
        definition = definition_of(found)
        return definition.is_to_be_served and definition.is_namespaced

    def _have_heard(self, names: Iterable[str], version: str) -> bool:
        """Whether the caches show all that was charged up to that version of the quota."""
        followed = [self._following.informer(source) for name in names for source in quota.sources(name)]
        return all(informer is not None and informer.has_heard(version) for informer in followed)

    def _cached(self, namespace: str, sources: Iterable[quota.Source]) -> Iterable[Found]:
        for source in sources:
            informer = self._following.informer(source)
            for object in informer.cache.objects(namespace) if informer is not None else ():
                yield source, object

    async def _recount(self, namespace: str, spec: dict[str, object], names: Sequence[str]) -> quota.Usage:
        """From the server: what a cache does not show may be there."""
        if not names:
            return {}
        objects: list[Found] = []
        for source in {source: None for name in names for source in quota.sources(name)}:
            objects += await self._listed(namespace, source)
        pods = [object for source, object in objects if source == quota.PODS]
        claims = [object for source, object in objects if source == quota.CLAIMS]
        context = contexts.from_lists(self._extended_names(), pods, claims)
        return listed(spec, names, objects, context)

    async def _listed(self, namespace: str, source: quota.Source) -> list[Found]:
        informer = self._following.informer(source)
        if informer is None:
            return []
        what, found = informer.what, list[Found]()
        kind = self._world.client.resource(what.group, what.version, what.plural)
        try:
            async for page in kind.pages(namespace):
                found += [(source, object) for object in page.objects]
        except errors.NotFound:
            if informer.served:  # one server may not have heard of a definition yet
                raise
        return found


def _asks_for_devices(pod: Object) -> bool:
    requests = podresources.pod_needs(pod.fields.get("spec") or {}, "requests")
    return any(map(podresources.is_extended_resource, requests))
