"""Gives every node its pod."""

from collections.abc import Sequence

from allot.api import Object, errors
from allot.informers import Again, Change, Key, Reconciler, ResourceId, Updated

from ..controller import Loop, World
from ..workloads import POD_LABEL, History, Keeper, hash_of, later, pod_from, slow_start
from .plan import DaemonSetPlan, look_again_s, plan, situation, status
from .suiting import for_node
from .views import history_rules, set_of

DAEMON_SETS = ResourceId("apps", "v1", "daemonsets")
NODES = ResourceId("", "v1", "nodes", namespaced=False)
_SUFFIX = 5


def make(world: World) -> Sequence[Loop]:
    return [Daemons(world).loop]


class Daemons:
    def __init__(self, world: World) -> None:
        self._world = world
        self._sets, self._nodes = world.informer(DAEMON_SETS), world.informer(NODES)
        self._writing = world.client.resource("apps", "v1", "daemonsets")
        self.loop: Reconciler[Key] = Reconciler("daemonset", self.reconcile, world.clock, world.telemetry)
        self._keeper = Keeper(
            world, "DaemonSet", self._sets, lambda one: set_of(one).spec.selector, self.loop.add
        )
        self._history = History(world, DAEMON_SETS, "DaemonSet", POD_LABEL, history_rules, self.loop.add)
        world.on(self._sets, lambda change: self.loop.add(Key.of(change.object)))
        world.on(self._nodes, self._node_changed)

    def _node_changed(self, change: Change) -> None:
        """A heartbeat is no reason to look: only what decides which pods suit."""
        if isinstance(change, Updated) and _suitability(change.old) == _suitability(change.object):
            return
        for daemon_set in self._sets.cache:
            self.loop.add(Key.of(daemon_set))

    async def reconcile(self, key: Key) -> Again | None:
        daemon_set = self._sets.cache.get(key.name, key.namespace)
        if daemon_set is None:
            return None
        pods = await self._keeper.of(daemon_set)
        mark = await self._mark(daemon_set, pods)
        nodes = self._nodes.cache.objects()
        here = situation(daemon_set, mark, pods, nodes, self._world.clock.now())
        # What was told to end a moment ago counts as leaving, though the cache may not show it.
        leaving = [
            pod
            for pod in self._keeper.cached(daemon_set.uid)
            if pod.metadata.deletion_timestamp is not None or pod not in pods
        ]
        error: errors.ApiError | None = None
        try:
            await self._act(daemon_set, mark, plan(here, leaving))
        except errors.ApiError as refused:
            error = refused
        wanted = status(daemon_set, here)
        if wanted is not None:
            metadata = {"uid": daemon_set.uid, "resourceVersion": daemon_set.resource_version}
            patch = {"metadata": metadata, "status": wanted}
            await self._writing.patch(daemon_set.name, patch, daemon_set.namespace, subresource="status")
        if error is not None:
            raise error
        return later(look_again_s(here))

    async def _mark(self, daemon_set: Object, pods: Sequence[Object]) -> str:
        """The hash of the template, kept as a revision."""
        collisions = set_of(daemon_set).status.collision_count
        if daemon_set.metadata.deletion_timestamp is not None:
            return hash_of(daemon_set, collisions)
        used = {(pod.metadata.labels or {}).get(POD_LABEL, "") for pod in pods}
        found = await self._history.settle(daemon_set, lambda one: _hash_in(one) in used)
        return _hash_in(found) or hash_of(daemon_set, collisions)

    async def _act(self, daemon_set: Object, mark: str, steps: DaemonSetPlan) -> None:
        template = daemon_set.fields["spec"].get("template") or {}
        metadata = template.get("metadata") or {}
        marked = {**metadata, "labels": {**(metadata.get("labels") or {}), POD_LABEL: mark}}

        async def create(node: str) -> None:
            spec = for_node(template.get("spec") or {}, node)
            made = {"metadata": marked, "spec": spec}
            await self._keeper.create(daemon_set, pod_from(made, daemon_set, self._world.ids.suffix(_SUFFIX)))

        async def delete(pod: Object) -> None:
            await self._keeper.delete(daemon_set, pod)

        await slow_start(delete, steps.delete)
        await slow_start(create, steps.create)


def _hash_in(revision: Object) -> str:
    return (revision.metadata.labels or {}).get(POD_LABEL, "")


def _suitability(node: Object) -> object:
    spec = node.fields.get("spec") or {}
    return node.uid, node.metadata.labels, spec.get("taints"), spec.get("unschedulable")
