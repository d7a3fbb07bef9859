"""Makes and deletes the pods of replica sets."""

from collections.abc import Sequence

from allot.api import Object, errors
from allot.informers import (
    NORMAL,
    OWNER_INDEX,
    WARNING,
    Again,
    Change,
    Informer,
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
    Unseen,
    accepts,
    free_in_namespace,
    pod_from,
    slow_start,
    sort_out,
    with_owner,
    without_owner,
)
from .plan import Failure, Plan, look_again_s, plan, status
from .views import set_of

PODS = ResourceId("", "v1", "pods")
REPLICA_SETS = ResourceId("apps", "v1", "replicasets")
_SUFFIX = 5


def make(world: World) -> Sequence[Loop]:
    return [Replication(world).loop]


class Replication:
    def __init__(self, world: World) -> None:
        self._world = world
        self._sets = world.informer(REPLICA_SETS)
        self._pods = world.informer(PODS)
        self._owned = self._pods.cache.index(OWNER_INDEX, owner_uids)
        self._free = self._pods.cache.index(ORPHANS, free_in_namespace)
        self._siblings = self._sets.cache.index(OWNER_INDEX, owner_uids)
        self._unseen = Unseen()
        self._writing_sets = world.client.resource("apps", "v1", "replicasets")
        self._writing_pods = world.client.resource("", "v1", "pods")
        self.loop: Reconciler[Key] = Reconciler("replicaset", self.reconcile, world.clock, world.telemetry)
        world.on(self._pods, self._unseen.hear)
        world.on(self._pods, self._pod_changed)
        world.on(self._sets, lambda change: self.loop.add(Key.of(change.object)))

    def _pod_changed(self, change: Change) -> None:
        for pod in (change.old, change.object) if isinstance(change, Updated) else (change.object,):
            for key in keys_of(pod, "ReplicaSet", self._sets):
                self.loop.add(key)

    async def reconcile(self, key: Key) -> Again | None:
        replica_set = self._sets.cache.get(key.name, key.namespace)
        if replica_set is None:
            return None
        await self._claim(replica_set)
        now_s = self._world.clock.monotonic_s()
        pods = self._unseen.complete(replica_set.uid, self._owned[replica_set.uid], now_s)
        failure = None
        error: errors.ApiError | None = None
        steps = plan(replica_set, pods, self._related(replica_set))
        try:
            await self._act(replica_set, steps)
        except errors.ApiError as refused:
            error = refused
            failure = Failure("FailedCreate" if steps.create else "FailedDelete", str(refused))
        await self._report(replica_set, pods, failure)
        if error is not None:
            raise error
        again_s = look_again_s(replica_set, pods, self._world.clock.now())
        return Again(again_s) if again_s is not None else None

    # -- whose pods -----------------------------------------------------------------------------

    async def _claim(self, replica_set: Object) -> None:
        """Adopt and release. Before a pod is adopted the server is asked whether we still exist."""
        candidates = (*self._owned[replica_set.uid], *self._free[replica_set.namespace])
        family = sort_out(replica_set, set_of(replica_set).spec.selector, candidates)
        for pod in family.strangers:
            await self._patch(pod, without_owner(pod, replica_set))
            self._unseen.left(pod.uid, replica_set.uid, self._world.clock.monotonic_s())
        if not family.adoptable:
            return
        live = await self._writing_sets.get(replica_set.name, replica_set.namespace)
        if live.uid != replica_set.uid or live.metadata.deletion_timestamp is not None:
            return
        for pod in family.adoptable:
            await self._patch(pod, with_owner(pod, replica_set))

    async def _patch(self, pod: Object, patch: dict[str, object]) -> None:
        try:
            changed = await self._writing_pods.patch(pod.name, patch, pod.namespace)
        except errors.NotFound:
            return
        controller = controller_of(changed)
        if controller is not None:  # adopted: ours from now on, whatever the cache says
            self._unseen.came(changed, controller.uid, self._world.clock.monotonic_s())

    def _related(self, replica_set: Object) -> list[Object]:
        controller = controller_of(replica_set)
        sets = self._siblings[controller.uid] if controller is not None else (replica_set,)
        return [pod for one in sets for pod in self._owned[one.uid]]

    # -- making it so ---------------------------------------------------------------------------

    async def _act(self, replica_set: Object, steps: Plan) -> None:
        async def create(suffix: str) -> None:
            await self._create(replica_set, suffix)

        async def delete(pod: Object) -> None:
            await self._delete(replica_set, pod)

        await slow_start(create, [self._world.ids.suffix(_SUFFIX) for _ in range(steps.create)])
        await slow_start(delete, steps.delete)

    async def _create(self, replica_set: Object, suffix: str) -> None:
        wanted = pod_from(replica_set.fields["spec"].get("template") or {}, replica_set, suffix)
        try:
            pod = await self._writing_pods.create(wanted)
        except errors.Timeout:  # perhaps it was made: then it counts
            pod = await self._writing_pods.get(wanted["metadata"]["name"], replica_set.namespace)
        except errors.ApiError as refused:
            self._world.events.record(
                replica_set, WARNING, "FailedCreate", f"a pod could not be created: {refused}"
            )
            raise
        self._unseen.came(pod, replica_set.uid, self._world.clock.monotonic_s())
        self._world.events.record(replica_set, NORMAL, "SuccessfulCreate", f"created pod {pod.name}")

    async def _delete(self, replica_set: Object, pod: Object) -> None:
        try:
            await self._writing_pods.delete(pod.name, pod.namespace, uid=pod.uid)
        except errors.NotFound:
            return
        except errors.ApiError as refused:
            self._world.events.record(
                replica_set, WARNING, "FailedDelete", f"pod {pod.name} could not be deleted: {refused}"
            )
            raise
        self._unseen.left(pod.uid, replica_set.uid, self._world.clock.monotonic_s())
        self._world.events.record(replica_set, NORMAL, "SuccessfulDelete", f"deleted pod {pod.name}")

    async def _report(self, replica_set: Object, pods: Sequence[Object], failure: Failure | None) -> None:
        wanted = status(replica_set, pods, failure, self._world.clock.now())
        if wanted is None:
            return
        metadata = {"uid": replica_set.uid, "resourceVersion": replica_set.resource_version}
        patch = {"metadata": metadata, "status": wanted}
        await self._writing_sets.patch(replica_set.name, patch, replica_set.namespace, subresource="status")


def keys_of(pod: Object, kind: str, owners: Informer) -> list[Key]:
    """Who cares for a pod: its controller, or whoever might adopt it."""
    controller = controller_of(pod)
    if controller is not None:
        return [Key(pod.namespace, controller.name)] if controller.kind == kind else []
    labels = pod.metadata.labels or {}
    return [
        Key.of(one)
        for one in owners.cache.objects(pod.namespace)
        if accepts(set_of(one).spec.selector, labels)
    ]
