"""One pass over a deployment: whose sets, which is newest, how large, what to tell."""

from collections.abc import Mapping, Sequence
from typing import Any

from allot.api import Object, errors
from allot.client import Propagation
from allot.informers import (
    NORMAL,
    OWNER_INDEX,
    WARNING,
    Again,
    Change,
    Deleted,
    Key,
    Reconciler,
    ResourceId,
    Updated,
    controller_of,
    owner_uids,
)

from ..controller import Loop, World
from ..workloads import (
    ORPHANS,
    accepts,
    free_in_namespace,
    later,
    sort_out,
    view_of,
    with_owner,
    without_owner,
)
from . import revisions, rollout
from .rollout import Sizes
from .status import counts, deadline_in_s, is_complete, status
from .views import deployment_of, set_of

DEPLOYMENTS = ResourceId("apps", "v1", "deployments")
REPLICA_SETS = ResourceId("apps", "v1", "replicasets")
PODS = ResourceId("", "v1", "pods")


def make(world: World) -> Sequence[Loop]:
    return [Rollouts(world).loop]


class Rollouts:
    def __init__(self, world: World) -> None:
        self._world = world
        self._deployments = world.informer(DEPLOYMENTS)
        self._sets = world.informer(REPLICA_SETS)
        self._owned = self._sets.cache.index(OWNER_INDEX, owner_uids)
        self._free = self._sets.cache.index(ORPHANS, free_in_namespace)
        pods = world.informer(PODS)
        self._pods = pods.cache.index(OWNER_INDEX, owner_uids)
        self._writing = world.client.resource("apps", "v1", "deployments")
        self._writing_sets = world.client.resource("apps", "v1", "replicasets")
        self.loop: Reconciler[Key] = Reconciler("deployment", self.reconcile, world.clock, world.telemetry)
        world.on(self._deployments, lambda change: self.loop.add(Key.of(change.object)))
        world.on(self._sets, self._set_changed)
        world.on(pods, self._pod_changed)

    # -- whose turn it is -----------------------------------------------------------------------

    def _set_changed(self, change: Change) -> None:
        for one in (change.old, change.object) if isinstance(change, Updated) else (change.object,):
            controller = controller_of(one)
            if controller is not None:
                if controller.kind == "Deployment":
                    self.loop.add(Key(one.namespace, controller.name))
                continue
            for deployment in self._deployments.cache.objects(one.namespace):
                if accepts(deployment_of(deployment).spec.selector, one.metadata.labels or {}):
                    self.loop.add(Key.of(deployment))

    def _pod_changed(self, change: Change) -> None:
        """Who recreates waits for the last of the old pods to be gone."""
        controller = controller_of(change.object)
        if not isinstance(change, Deleted) or controller is None or controller.kind != "ReplicaSet":
            return
        replica_set = self._sets.cache.get(controller.name, change.object.namespace)
        owner = controller_of(replica_set) if replica_set is not None else None
        if owner is not None and owner.kind == "Deployment":
            self.loop.add(Key(change.object.namespace, owner.name))

    # -- one pass -------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Again | None:
        deployment = self._deployments.cache.get(key.name, key.namespace)
        if deployment is None:
            return None
        wish = deployment_of(deployment)
        sets = await self._claim(deployment)
        if wish.metadata.deletion_timestamp:
            await self._report(deployment, revisions.newest(deployment, sets), sets)
            return None
        new = revisions.newest(deployment, sets)
        if new is not None:
            deployment, new = await self._number(deployment, new, _others(sets, new))
            sets = [new, *_others(sets, new)]
        is_resized = rollout.is_resized(wish, [revisions.sized(one) for one in sets])
        is_made = False
        if wish.spec.paused or is_resized:
            await self._resize(deployment, new, sets)
        elif wish.is_recreated:
            new, is_made = await self._recreate(deployment, new, sets)
        else:
            new, is_made = await self._roll(deployment, new, sets)
        if new is not None and new.name not in {one.name for one in sets}:
            sets = [new, *sets]
        if wish.spec.paused or is_complete(wish, counts(new, sets)):
            await self._forget(wish.spec.revision_history_limit, _others(sets, new))
        written = await self._report(deployment, new, sets, is_made)
        return later(deadline_in_s(written, self._world.clock.now()))

    async def _roll(
        self, deployment: Object, new: Object | None, sets: Sequence[Object]
    ) -> tuple[Object | None, bool]:
        wish, old = deployment_of(deployment), _others(sets, new)
        sized = [revisions.sized(one) for one in old]
        if new is None:
            return await self._make(deployment, rollout.first_size(wish, sized), old)
        await self._size(deployment, sets, rollout.roll(wish, revisions.sized(new), sized))
        return new, False

    async def _recreate(
        self, deployment: Object, new: Object | None, sets: Sequence[Object]
    ) -> tuple[Object | None, bool]:
        """All old pods go, and are gone, before the first new one comes."""
        wish, old = deployment_of(deployment), _others(sets, new)
        await self._size(deployment, sets, {one.name: 0 for one in old if set_of(one).spec.replicas})
        pods = [pod for one in old for pod in self._pods[one.uid]]
        if any(set_of(one).spec.replicas or set_of(one).status.replicas for one in old):
            return new, False
        if any(not view_of(pod).is_finished for pod in pods):
            return new, False
        if new is None:
            return await self._make(deployment, wish.spec.replicas, old)
        await self._size(deployment, sets, {new.name: wish.spec.replicas})
        return new, False

    async def _resize(self, deployment: Object, new: Object | None, sets: Sequence[Object]) -> None:
        wish, old = deployment_of(deployment), _others(sets, new)
        sized = revisions.sized(new) if new is not None else None
        sizes = rollout.resize(wish, sized, [revisions.sized(one) for one in old])
        kept = {one.name: size for one in sets if (size := set_of(one).spec.replicas)}
        await self._size(deployment, sets, {**kept, **sizes}, annotate=True)

    # -- replica sets ---------------------------------------------------------------------------

    async def _claim(self, deployment: Object) -> list[Object]:
        """Adopt and release; the sets that are the deployment's."""
        candidates = (*self._owned[deployment.uid], *self._free[deployment.namespace])
        family = sort_out(deployment, deployment_of(deployment).spec.selector, candidates)
        for one in family.strangers:
            await self._writing_sets.patch(one.name, without_owner(one, deployment), one.namespace)
        adopted: list[Object] = []
        if family.adoptable:
            live = await self._writing.get(deployment.name, deployment.namespace)
            if live.uid == deployment.uid and live.metadata.deletion_timestamp is None:
                for one in family.adoptable:
                    patch = with_owner(one, deployment)
                    adopted.append(await self._writing_sets.patch(one.name, patch, one.namespace))
        return [*family.owned, *adopted]

    async def _make(self, deployment: Object, size: int, old: Sequence[Object]) -> tuple[Object | None, bool]:
        wanted = revisions.new_set(deployment, size, old)
        try:
            made = await self._writing_sets.create(wanted)
        except errors.AlreadyExists:
            return await self._collided(deployment, wanted["metadata"]["name"]), False
        except errors.ApiError as refused:
            self._say(deployment, WARNING, "ReplicaSetCreateError", f"no replica set was made: {refused}")
            raise
        if size:
            text = f"scaled up replica set {made.name} from 0 to {size}"
            self._say(deployment, NORMAL, "ScalingReplicaSet", text)
        return made, True

    async def _collided(self, deployment: Object, name: str) -> Object | None:
        """Ours, and the cache is behind; or another template has the same hash: count, and try anew."""
        found = await self._writing_sets.get(name, deployment.namespace)
        controller = controller_of(found)
        is_ours = controller is not None and controller.uid == deployment.uid
        if is_ours and revisions.newest(deployment, [found]) is not None:
            return found
        count = deployment_of(deployment).status.collision_count + 1
        await self._patch_status(deployment, {"collisionCount": count})
        raise errors.Conflict(f"replica set {name} is another's")

    async def _number(self, deployment: Object, new: Object, old: Sequence[Object]) -> tuple[Object, Object]:
        """Give the newest set the highest number, and the deployment the same."""
        patch = revisions.refreshed(deployment, new, old)
        if patch is not None:
            new = await self._patch_set(new, patch)
        number = str(revisions.revision(new))
        if (deployment.metadata.annotations or {}).get(revisions.REVISION) != number:
            metadata = {**_same(deployment), "annotations": {revisions.REVISION: number}}
            deployment = await self._writing.patch(
                deployment.name, {"metadata": metadata}, deployment.namespace
            )
        return deployment, new

    async def _size(
        self, deployment: Object, sets: Sequence[Object], sizes: Sizes, *, annotate: bool = False
    ) -> None:
        wanted = revisions.size_annotations(deployment)
        for one in sets:
            before, size = set_of(one).spec.replicas, sizes.get(one.name)
            has = one.metadata.annotations or {}
            is_annotated = all(has.get(key) == value for key, value in wanted.items())
            if size is None or (size == before and (is_annotated or not annotate)):
                continue
            await self._patch_set(one, {"metadata": {"annotations": wanted}, "spec": {"replicas": size}})
            if size != before:
                way = "up" if size > before else "down"
                text = f"scaled {way} replica set {one.name} from {before} to {size}"
                self._say(deployment, NORMAL, "ScalingReplicaSet", text)

    async def _forget(self, limit: int, old: Sequence[Object]) -> None:
        for one in revisions.outdated(limit, old):
            try:
                await self._writing_sets.delete(
                    one.name,
                    one.namespace,
                    uid=one.uid,
                    resource_version=one.resource_version,
                    propagation=Propagation.BACKGROUND,
                )
            except errors.NotFound:
                continue

    async def _patch_set(self, one: Object, patch: Mapping[str, Any]) -> Object:
        metadata = {**_same(one), **(patch.get("metadata") or {})}
        return await self._writing_sets.patch(one.name, {**patch, "metadata": metadata}, one.namespace)

    # -- telling --------------------------------------------------------------------------------

    async def _report(
        self, deployment: Object, new: Object | None, sets: Sequence[Object], is_made: bool = False
    ) -> Object:
        wanted = status(deployment, new, sets, is_made, self._world.clock.now())
        return deployment if wanted is None else await self._patch_status(deployment, wanted)

    async def _patch_status(self, deployment: Object, wanted: Mapping[str, Any]) -> Object:
        patch = {"metadata": _same(deployment), "status": wanted}
        return await self._writing.patch(deployment.name, patch, deployment.namespace, subresource="status")

    def _say(self, deployment: Object, type: str, reason: str, message: str) -> None:
        self._world.events.record(deployment, type, reason, message)


def _others(sets: Sequence[Object], new: Object | None) -> list[Object]:
    return [one for one in sets if new is None or one.uid != new.uid]


def _same(object: Object) -> dict[str, str]:
    return {"uid": object.uid, "resourceVersion": object.resource_version}
