"""Makes and deletes the pods of stateful sets, and says how they stand."""

from collections.abc import Sequence

from allot.api import Object, errors
from allot.informers import Again, Key, Reconciler, ResourceId

from ..controller import Loop, World
from ..workloads import History, Keeper, later, slow_start, template_in
from .identity import is_member, pod_for, revision_of
from .plan import Situation, StatefulSetPlan, look_again_s, plan, situation, status
from .views import history_rules, set_of

STATEFUL_SETS = ResourceId("apps", "v1", "statefulsets")
_HASH_LABEL = "controller.kubernetes.io/hash"
"""Of a revision; pods are marked with its name."""


def make(world: World) -> Sequence[Loop]:
    return [StatefulSets(world).loop]


class StatefulSets:
    def __init__(self, world: World) -> None:
        self._world = world
        self._sets = world.informer(STATEFUL_SETS)
        self._writing = world.client.resource("apps", "v1", "statefulsets")
        self.loop: Reconciler[Key] = Reconciler("statefulset", self.reconcile, world.clock, world.telemetry)
        self._keeper = Keeper(
            world,
            "StatefulSet",
            self._sets,
            lambda one: set_of(one).spec.selector,
            self.loop.add,
            may_adopt=is_member,
        )
        self._history = History(
            world, STATEFUL_SETS, "StatefulSet", _HASH_LABEL, history_rules, self.loop.add
        )
        world.on(self._sets, lambda change: self.loop.add(Key.of(change.object)))

    async def reconcile(self, key: Key) -> Again | None:
        stateful_set = self._sets.cache.get(key.name, key.namespace)
        if stateful_set is None or stateful_set.metadata.deletion_timestamp is not None:
            return None
        pods = await self._keeper.of(stateful_set)
        # What was told to end a moment ago is still there under its name, though `of` leaves it out.
        ending = [pod for pod in self._keeper.cached(stateful_set.uid) if pod not in pods]
        update = await self._revision(stateful_set, pods)
        before = set_of(stateful_set).status.current_revision
        current = self._history.named(stateful_set, before) or update
        here = situation(
            stateful_set,
            current.name,
            update.name,
            [*pods, *ending],
            frozenset(pod.uid for pod in ending),
            self._world.clock.now(),
        )
        error: errors.ApiError | None = None
        try:
            await self._act(stateful_set, here, plan(here), {one.name: one for one in (current, update)})
        except errors.ApiError as refused:
            error = refused
        await self._report(stateful_set, here)
        if error is not None:
            raise error
        return later(look_again_s(here))

    async def _revision(self, stateful_set: Object, pods: Sequence[Object]) -> Object:
        """Of the template as it is. What pods have, and what the update began with, is kept."""
        used = {revision_of(pod) for pod in pods} | {set_of(stateful_set).status.current_revision}
        return await self._history.settle(stateful_set, lambda one: one.name in used)

    async def _act(
        self, stateful_set: Object, here: Situation, steps: StatefulSetPlan, revisions: dict[str, Object]
    ) -> None:
        async def create(ordinal: int) -> None:
            revision = revisions[here.revision_for(ordinal)]
            pod = pod_for(stateful_set, ordinal, template_in(revision), revision.name)
            await self._keeper.create(stateful_set, pod)

        async def delete(pod: Object) -> None:
            await self._keeper.delete(stateful_set, pod)

        await slow_start(delete, steps.delete)
        await slow_start(create, steps.create)

    async def _report(self, stateful_set: Object, here: Situation) -> None:
        wanted = status(stateful_set, here)
        if wanted is not None:
            metadata = {"uid": stateful_set.uid, "resourceVersion": stateful_set.resource_version}
            patch = {"metadata": metadata, "status": wanted}
            await self._writing.patch(stateful_set.name, patch, stateful_set.namespace, subresource="status")
