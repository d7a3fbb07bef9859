"""Keeps the revisions of daemon sets: made, numbered, adopted and forgotten.

A revision belongs to the set that its controller reference names. One that nobody controls any more,
since its set was deleted and left it behind, is adopted by a set whose selector fits, as its pods are.
One of somebody else is never touched: where it has the name that is needed, the set takes another name
for its own (`status.collisionCount`).
"""

from collections.abc import Callable, Sequence

from allot.api import Object, errors
from allot.informers import OWNER_INDEX, Change, Key, ResourceId, controller_of, owner_uids

from ..controller import World
from ..workloads import ORPHANS, free_in_namespace, sort_out, with_owner
from . import revisions
from .views import HASH_LABEL, set_of

REVISIONS = ResourceId("apps", "v1", "controllerrevisions")


class History:
    def __init__(self, world: World, look_at: Callable[[Key], object]) -> None:
        known = world.informer(REVISIONS)
        self._look_at = look_at
        self._owned = known.cache.index(OWNER_INDEX, owner_uids)
        self._free = known.cache.index(ORPHANS, free_in_namespace)
        self._writing = world.client.resource("apps", "v1", "controllerrevisions")
        self._sets = world.client.resource("apps", "v1", "daemonsets")
        world.on(known, self._changed)

    def _changed(self, change: Change) -> None:
        controller = controller_of(change.object)
        if controller is not None and controller.kind == "DaemonSet":
            self._look_at(Key(change.object.namespace, controller.name))

    async def mark(self, daemon_set: Object, pods: Sequence[Object]) -> str:
        """The hash of the template, after its revision was made or numbered, and old ones forgotten."""
        if daemon_set.metadata.deletion_timestamp is not None:
            return revisions.hash_of(daemon_set)
        known = await self._claim(daemon_set)
        found = revisions.current(daemon_set, known) or await self._make(daemon_set, known)
        others = [one for one in known if one.uid != found.uid]
        if revisions.number(found) < revisions.next_number(others):
            same = {"uid": found.uid, "resourceVersion": found.resource_version}
            patch = {"metadata": same, "revision": revisions.next_number(others)}
            await self._writing.patch(found.name, patch, found.namespace)
        used = {(pod.metadata.labels or {}).get(HASH_LABEL, "") for pod in pods}
        for one in revisions.outdated(set_of(daemon_set).spec.revision_history_limit, others, used):
            await self._forget(one)
        return (found.metadata.labels or {}).get(HASH_LABEL) or revisions.hash_of(daemon_set)

    async def _claim(self, daemon_set: Object) -> list[Object]:
        """Before a revision is adopted the server is asked whether the set still exists."""
        mine = self._owned[daemon_set.uid]
        family = sort_out(daemon_set, set_of(daemon_set).spec.selector, self._free[daemon_set.namespace])
        if not family.adoptable:
            return [*mine]
        live = await self._sets.get(daemon_set.name, daemon_set.namespace)
        if live.uid != daemon_set.uid or live.metadata.deletion_timestamp is not None:
            return [*mine]
        adopted = [
            await self._writing.patch(one.name, with_owner(one, daemon_set), one.namespace)
            for one in family.adoptable
        ]
        return [*mine, *adopted]

    async def _make(self, daemon_set: Object, known: Sequence[Object]) -> Object:
        wanted = revisions.new_revision(daemon_set, known)
        try:
            return await self._writing.create(wanted)
        except errors.AlreadyExists:
            found = await self._writing.get(wanted["metadata"]["name"], daemon_set.namespace)
        controller = controller_of(found)
        if controller is not None and controller.uid == daemon_set.uid:  # the cache is behind
            if revisions.current(daemon_set, [found]) is not None:
                return found
        elif sort_out(daemon_set, set_of(daemon_set).spec.selector, [found]).adoptable:
            raise errors.Conflict(f"controller revision {found.name} is about to be adopted")
        metadata = {"uid": daemon_set.uid, "resourceVersion": daemon_set.resource_version}
        count = set_of(daemon_set).status.collision_count + 1
        patch = {"metadata": metadata, "status": {"collisionCount": count}}
        await self._sets.patch(daemon_set.name, patch, daemon_set.namespace, subresource="status")
        raise errors.Conflict(f"controller revision {found.name} is another's")

    async def _forget(self, one: Object) -> None:
        try:
            await self._writing.delete(one.name, one.namespace, uid=one.uid)
        except errors.NotFound:
            return
