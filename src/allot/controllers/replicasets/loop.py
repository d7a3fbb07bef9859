"""Makes and deletes the pods of replica sets, and says how they stand."""

from collections.abc import Sequence

from allot.api import Object, errors
from allot.informers import OWNER_INDEX, Again, Key, Reconciler, ResourceId, controller_of, owner_uids

from ..controller import Loop, World
from ..workloads import Keeper, later, pod_from, slow_start
from .plan import Failure, ReplicaSetPlan, look_again_s, plan, status
from .views import set_of

REPLICA_SETS = ResourceId("apps", "v1", "replicasets")
_SUFFIX = 5


def make(world: World) -> Sequence[Loop]:
    return [Replication(world).loop]


class Replication:
    def __init__(self, world: World) -> None:
        self._world = world
        self._sets = world.informer(REPLICA_SETS)
        self._siblings = self._sets.cache.index(OWNER_INDEX, owner_uids)
        self._writing = world.client.resource("apps", "v1", "replicasets")
        self.loop: Reconciler[Key] = Reconciler("replicaset", self.reconcile, world.clock, world.telemetry)
        self._keeper = Keeper(
            world, "ReplicaSet", self._sets, lambda one: set_of(one).spec.selector, self.loop.add
        )
        world.on(self._sets, lambda change: self.loop.add(Key.of(change.object)))

    async def reconcile(self, key: Key) -> Again | None:
        replica_set = self._sets.cache.get(key.name, key.namespace)
        if replica_set is None:
            return None
        pods = await self._keeper.of(replica_set)
        steps = plan(replica_set, pods, self._related(replica_set))
        failure: Failure | None = None
        error: errors.ApiError | None = None
        try:
            await self._act(replica_set, steps)
        except errors.ApiError as refused:
            failure, error = (
                Failure("FailedCreate" if steps.create else "FailedDelete", str(refused)),
                refused,
            )
        await self._report(replica_set, pods, failure)
        if error is not None:
            raise error
        return later(look_again_s(replica_set, pods, self._world.clock.now()))

    def _related(self, replica_set: Object) -> list[Object]:
        """The pods of all sets of the same deployment."""
        controller = controller_of(replica_set)
        sets = self._siblings[controller.uid] if controller is not None else (replica_set,)
        return [pod for one in sets for pod in self._keeper.cached(one.uid)]

    async def _act(self, replica_set: Object, steps: ReplicaSetPlan) -> None:
        template = replica_set.fields["spec"].get("template") or {}

        async def create(suffix: str) -> None:
            await self._keeper.create(replica_set, pod_from(template, replica_set, suffix))

        async def delete(pod: Object) -> None:
            await self._keeper.delete(replica_set, pod)

        await slow_start(create, [self._world.ids.suffix(_SUFFIX) for _ in range(steps.create)])
        await slow_start(delete, steps.delete)

    async def _report(self, replica_set: Object, pods: Sequence[Object], failure: Failure | None) -> None:
        wanted = status(replica_set, pods, failure, self._world.clock.now())
        if wanted is None:
            return
        metadata = {"uid": replica_set.uid, "resourceVersion": replica_set.resource_version}
        patch = {"metadata": metadata, "status": wanted}
        await self._writing.patch(replica_set.name, patch, replica_set.namespace, subresource="status")
