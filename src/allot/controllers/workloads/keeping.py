"""The pods of one kind of owner: found, adopted, released, made and deleted.

The part that awaits, shared by the controllers that keep pods. It remembers what it did
(`memory`), so that `of` is what an owner really has, whatever the cache shows.
"""

from collections.abc import Callable, Mapping
from typing import Any

from allot.api import Object, errors, meta
from allot.client import Resource
from allot.informers import (
    NORMAL,
    OWNER_INDEX,
    WARNING,
    Change,
    Informer,
    Key,
    ResourceId,
    Updated,
    controller_of,
    owner_uids,
)

from ..controller import World
from .adoption import ORPHANS, free_in_namespace, sort_out, with_owner, without_owner
from .memory import Unseen
from .selecting import accepts

PODS = ResourceId("", "v1", "pods")


class Keeper:
    def __init__(
        self,
        world: World,
        kind: str,
        owners: Informer,
        selector_of: Callable[[Object], meta.LabelSelector],
        look_at: Callable[[Key], None],
        may_adopt: Callable[[Object, Object], bool] = lambda owner, pod: True,
    ) -> None:
        """`look_at` gets the key of every owner whose pods change; `may_adopt` says, of an owner and a pod
        that its selector accepts, whether the pod can be one of the owner's."""
        self._world = world
        self._kind = kind
        self._owners = owners
        self._selector_of = selector_of
        self._look_at = look_at
        self._may_adopt = may_adopt
        pods = world.informer(PODS)
        self._owned = pods.cache.index(OWNER_INDEX, owner_uids)
        self._free = pods.cache.index(ORPHANS, free_in_namespace)
        self._unseen = Unseen()
        self.writing: Resource = world.client.resource("", "v1", "pods")
        what = owners.what
        self._writing_owners = world.client.resource(what.group, what.version, what.plural)
        world.on(pods, self._unseen.hear)
        world.on(pods, self._changed)

    def _changed(self, change: Change) -> None:
        for pod in (change.old, change.object) if isinstance(change, Updated) else (change.object,):
            for key in self._keys_of(pod):
                self._look_at(key)

    def _keys_of(self, pod: Object) -> list[Key]:
        """Who cares for a pod: its controller, or whoever might adopt it."""
        controller = controller_of(pod)
        if controller is not None:
            return [Key(pod.namespace, controller.name)] if controller.kind == self._kind else []
        labels = pod.metadata.labels or {}
        candidates = self._owners.cache.objects(pod.namespace)
        return [
            Key.of(one)
            for one in candidates
            if accepts(self._selector_of(one), labels) and self._may_adopt(one, pod)
        ]

    # -- whose pods -----------------------------------------------------------------------------

    def cached(self, owner_uid: str) -> tuple[Object, ...]:
        """What the cache shows."""
        return self._owned[owner_uid]

    async def of(self, owner: Object) -> list[Object]:
        """The owner's pods, after adopting and releasing."""
        await self._claim(owner)
        return self._unseen.complete(owner.uid, self._owned[owner.uid], self._world.clock.monotonic_s())

    async def _claim(self, owner: Object) -> None:
        """Before a pod is adopted the server is asked whether the owner still exists."""
        free = [pod for pod in self._free[owner.namespace] if self._may_adopt(owner, pod)]
        candidates = (*self._owned[owner.uid], *free)
        family = sort_out(owner, self._selector_of(owner), candidates)
        for pod in family.strangers:
            await self._patch(pod, without_owner(pod, owner))
            self._unseen.left(pod.uid, owner.uid, self._world.clock.monotonic_s())
        if not family.adoptable:
            return
        live = await self._writing_owners.get(owner.name, owner.namespace)
        if live.uid != owner.uid or live.metadata.deletion_timestamp is not None:
            return
        for pod in family.adoptable:
            adopted = await self._patch(pod, with_owner(pod, owner))
            if adopted is not None:
                self._unseen.came(adopted, owner.uid, self._world.clock.monotonic_s())

    async def _patch(self, pod: Object, patch: Mapping[str, Any]) -> Object | None:
        try:
            return await self.writing.patch(pod.name, patch, pod.namespace)
        except errors.NotFound:
            return None

    # -- making it so ---------------------------------------------------------------------------

    async def create(self, owner: Object, wanted: Mapping[str, Any]) -> None:
        try:
            pod = await self.writing.create(wanted)
        except errors.Timeout:  # perhaps it was made: then it counts
            pod = await self.writing.get(wanted["metadata"]["name"], owner.namespace)
        except errors.ApiError as refused:
            self._say(owner, WARNING, "FailedCreate", f"a pod could not be created: {refused}")
            raise
        self._unseen.came(pod, owner.uid, self._world.clock.monotonic_s())
        self._say(owner, NORMAL, "SuccessfulCreate", f"created pod {pod.name}")

    async def delete(self, owner: Object, pod: Object) -> None:
        try:
            await self.writing.delete(pod.name, pod.namespace, uid=pod.uid)
        except errors.NotFound:
            return
        except errors.ApiError as refused:
            self._say(owner, WARNING, "FailedDelete", f"pod {pod.name} could not be deleted: {refused}")
            raise
        self._unseen.left(pod.uid, owner.uid, self._world.clock.monotonic_s())
        self._say(owner, NORMAL, "SuccessfulDelete", f"deleted pod {pod.name}")

    def _say(self, owner: Object, type: str, reason: str, message: str) -> None:
        self._world.events.record(owner, type, reason, message)
