"""Deletes what is in a namespace, looks what is left, and lets the namespace go."""

from collections import Counter
from collections.abc import Sequence

from allot.api import Object, age, errors
from allot.client import Page, Propagation, Resource
from allot.informers import Again, Change, Deleted, Key, Reconciler, ResourceId, Served, discover

from ..controller import Loop, World
from .plan import Findings, Remaining, conditions, pause_s, says_the_same, stages
from .views import FINALIZER, Namespace

NAMESPACES = ResourceId("", "v1", "namespaces", namespaced=False)
_PAGE = 500


def make(world: World) -> Sequence[Loop]:
    informer = world.informer(NAMESPACES)
    loop = Reconciler("namespace", Emptying(world).reconcile, world.clock, world.telemetry)

    def hear(change: Change) -> None:
        if not isinstance(change, Deleted) and change.object.view(Namespace).is_ours_to_empty:
            loop.add(Key.of(change.object))

    world.on(informer, hear)
    return [loop]


class Emptying:
    def __init__(self, world: World) -> None:
        self._world = world
        self._namespaces = world.client.resource("", "v1", "namespaces", namespaced=False)

    async def reconcile(self, key: Key) -> Again | None:
        try:
            live = await self._namespaces.get(key.name)  # what follows cannot be undone
        except errors.NotFound:
            return None
        if not live.view(Namespace).is_ours_to_empty:
            return None
        found = await self._empty(key.name)
        if found.is_empty:
            await self._let_go(live)
            return None
        await self._tell(live, found)
        begun = age.moment(live.metadata.deletion_timestamp or "")
        since_s = (self._world.clock.now() - begun).total_seconds() if begun is not None else 0.0
        return Again(pause_s(since_s))

    async def _empty(self, namespace: str) -> Findings:
        catalogue = await discover(self._world.client)
        remaining: list[Remaining] = []
        failures: list[str] = []
        for stage in stages(catalogue):
            for served in stage:
                try:
                    left = await self._delete_all(served, namespace)
                except errors.ApiError as refused:
                    failures.append(f"{served.what.plural}: {refused}")
                    continue
                if left is not None:
                    remaining.append(left)
            if remaining or failures:
                break
        return Findings(remaining, failures, catalogue.unavailable)

    async def _delete_all(self, served: Served, namespace: str) -> Remaining | None:
        """What is left of a resource after it was told to go."""
        what = served.what
        resource = self._world.client.resource(what.group, what.version, what.plural)
        page = await self._look(resource, namespace)
        leaving = [one for one in page.objects if one.metadata.deletion_timestamp is None]
        if page.objects and (leaving or page.continue_token):
            await self._delete(served, resource, namespace, leaving)
            page = await self._look(resource, namespace)
        if not page.objects:
            return None
        held = Counter(finalizer for one in page.objects for finalizer in one.metadata.finalizers or ())
        return Remaining(what, len(page.objects) + (page.remaining or 0), held)

    async def _look(self, resource: Resource, namespace: str) -> Page:
        try:
            return await resource.list(namespace, limit=_PAGE)
        except errors.NotFound:  # the resource itself has gone meanwhile, and its objects with it
            return Page((), "")

    async def _delete(
        self, served: Served, resource: Resource, namespace: str, leaving: Sequence[Object]
    ) -> None:
        if served.can("deletecollection"):
            await resource.delete_collection(namespace, propagation=Propagation.BACKGROUND)
            return
        for one in leaving:
            try:
                await resource.delete(one.name, namespace, uid=one.uid, propagation=Propagation.BACKGROUND)
            except errors.NotFound:
                continue

    async def _tell(self, live: Object, found: Findings) -> None:
        before = live.view(Namespace).status.conditions
        now = conditions(found, before, age.timestamp(self._world.clock.now()))
        if says_the_same(now, before):
            return
        metadata = {"uid": live.uid, "resourceVersion": live.resource_version}
        patch = {"metadata": metadata, "status": {"conditions": now}}
        await self._namespaces.patch(live.name, patch, subresource="status")

    async def _let_go(self, live: Object) -> None:
        kept = [one for one in live.view(Namespace).spec.finalizers if one != FINALIZER]
        await self._namespaces.update(live.changed({"spec": {"finalizers": kept}}), subresource="finalize")
