"""Keeps the revisions of one kind of owner: made, numbered, adopted and forgotten.

A revision belongs to the owner that its controller reference names. One that nobody controls any more,
since its owner was deleted and left it behind, is adopted by one whose selector fits, as its pods are.
One of somebody else is never touched: where it has the name that is needed, the owner takes another name
for its own (`status.collisionCount`).
"""

from collections.abc import Callable, Sequence

from allot.api import Object, errors
from allot.informers import OWNER_INDEX, Change, Key, ResourceId, controller_of, owner_uids

from ..controller import World
from . import revisions
from .adoption import ORPHANS, free_in_namespace, sort_out, with_owner
from .revisions import HistoryRules

REVISIONS = ResourceId("apps", "v1", "controllerrevisions")


class History:
    def __init__(
        self,
        world: World,
        owners: ResourceId,
        kind: str,
        label: str,
        rules_of: Callable[[Object], HistoryRules],
        look_at: Callable[[Key], object],
    ) -> None:
        """`label` is where a revision carries its hash; `look_at` gets the key of every owner whose
        revisions change."""
        known = world.informer(REVISIONS)
        self._kind = kind
        self._label = label
        self._rules_of = rules_of
        self._look_at = look_at
        self._owned = known.cache.index(OWNER_INDEX, owner_uids)
        self._free = known.cache.index(ORPHANS, free_in_namespace)
        self._writing = world.client.resource(REVISIONS.group, REVISIONS.version, REVISIONS.plural)
        self._owners = world.client.resource(owners.group, owners.version, owners.plural)
        world.on(known, self._changed)

    def _changed(self, change: Change) -> None:
        controller = controller_of(change.object)
        if controller is not None and controller.kind == self._kind:
            self._look_at(Key(change.object.namespace, controller.name))

    def named(self, owner: Object, name: str) -> Object | None:
        """The owner's revision of that name."""
        return next((one for one in self._owned[owner.uid] if one.name == name), None)

    async def settle(self, owner: Object, is_used: Callable[[Object], bool]) -> Object:
        """The revision of the owner's template, after it was made or numbered, and old ones forgotten."""
        known = await self._claim(owner)
        found = revisions.current(owner, known) or await self._make(owner, known)
        others = [one for one in known if one.uid != found.uid]
        if revisions.number(found) < revisions.next_number(others):
            same = {"uid": found.uid, "resourceVersion": found.resource_version}
            patch = {"metadata": same, "revision": revisions.next_number(others)}
            found = await self._writing.patch(found.name, patch, found.namespace)
        for one in revisions.outdated(self._rules_of(owner).limit, others, is_used):
            await self._forget(one)
        return found

    async def _claim(self, owner: Object) -> list[Object]:
        """Before a revision is adopted the server is asked whether the owner still exists."""
        mine = self._owned[owner.uid]
        family = sort_out(owner, self._rules_of(owner).selector, self._free[owner.namespace])
        if not family.adoptable:
            return [*mine]
        live = await self._owners.get(owner.name, owner.namespace)
        if live.uid != owner.uid or live.metadata.deletion_timestamp is not None:
            return [*mine]
        adopted = [
            await self._writing.patch(one.name, with_owner(one, owner), one.namespace)
            for one in family.adoptable
        ]
        return [*mine, *adopted]

    async def _make(self, owner: Object, known: Sequence[Object]) -> Object:
        rules = self._rules_of(owner)
        wanted = revisions.new_revision(owner, known, rules.collisions, self._label)
        try:
            return await self._writing.create(wanted)
        except errors.AlreadyExists:
            found = await self._writing.get(wanted["metadata"]["name"], owner.namespace)
        controller = controller_of(found)
        if controller is not None and controller.uid == owner.uid:  # the cache is behind
            if revisions.current(owner, [found]) is not None:
                return found
        elif sort_out(owner, rules.selector, [found]).adoptable:
            raise errors.Conflict(f"controller revision {found.name} is about to be adopted")
        metadata = {"uid": owner.uid, "resourceVersion": owner.resource_version}
        patch = {"metadata": metadata, "status": {"collisionCount": rules.collisions + 1}}
        await self._owners.patch(owner.name, patch, owner.namespace, subresource="status")
        raise errors.Conflict(f"controller revision {found.name} is another's")

    async def _forget(self, one: Object) -> None:
        try:
            await self._writing.delete(one.name, one.namespace, uid=one.uid)
        except errors.NotFound:
            return
