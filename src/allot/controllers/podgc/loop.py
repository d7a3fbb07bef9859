"""Ends the pods that nobody else will end."""

from collections.abc import Sequence

from allot.api import Object, core, errors
from allot.informers import Again, Change, Deleted, Key, Reconciler, ResourceId

from ..controller import Loop, World
from ..workloads import NODE_INDEX, PODS, disrupt, later, node_name
from .plan import FINISHED_MAX, Fate, fate, surplus

NODES = ResourceId("", "v1", "nodes", namespaced=False)
QUARANTINE_S = 40.0
"""How long a node must have been missing: caches of pods and nodes are of different times."""
_ALL = "finished pods"


def make(world: World) -> Sequence[Loop]:
    collecting = Collecting(world)
    return [collecting.loop, collecting.trimming]


class Collecting:
    def __init__(
        self, world: World, *, quarantine_s: float = QUARANTINE_S, finished_max: int = FINISHED_MAX
    ) -> None:
        self._world = world
        self._quarantine_s = quarantine_s
        self._finished_max = finished_max
        self._pods, self._nodes = world.informer(PODS), world.informer(NODES)
        self._on_node = self._pods.cache.index(NODE_INDEX, node_name)
        self._finished: dict[str, Object] = {}  # by uid
        self._missing_since_s: dict[str, float] = {}  # nodes
        self._writing = world.client.resource("", "v1", "pods")
        self._reading_nodes = world.client.resource("", "v1", "nodes", namespaced=False)
        self._deletions = world.metrics.counter(
            "pod_gc_collector_force_delete_pods_total", "Pods ended, by why.", "namespace", "reason"
        )
        self.loop: Reconciler[Key] = Reconciler("podgc", self.reconcile, world.clock, world.telemetry)
        self.trimming: Reconciler[str] = Reconciler("podgc_finished", self.trim, world.clock, world.telemetry)
        world.on(self._nodes, self._node_changed)
        world.on(self._pods, self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        node = change.object
        if not isinstance(change, Deleted):
            self._missing_since_s.pop(node.name, None)
        for pod in self._on_node[node.name]:
            if fate(pod, None if isinstance(change, Deleted) else node) is not Fate.NONE:
                self.loop.add(Key.of(pod))

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        if isinstance(change, Deleted):
            self._finished.pop(pod.uid, None)
            return
        if pod.view(core.Pod).is_finished:
            self._finished[pod.uid] = pod
            if len(self._finished) > self._finished_max:
                self.trimming.add(_ALL)
        if fate(pod, self._node_of(pod)) is not Fate.NONE:
            self.loop.add(Key.of(pod))

    def _node_of(self, pod: Object) -> Object | None:
        return self._nodes.cache.get(pod.view(core.Pod).spec.node_name)

    async def reconcile(self, key: Key) -> Again | None:
        pod = self._pods.cache.get(key.name, key.namespace)
        if pod is None:
            return None
        node = pod.view(core.Pod).spec.node_name
        match fate(pod, self._node_of(pod)):
            case Fate.LOST:
                now_s = self._world.clock.monotonic_s()
                left_s = self._missing_since_s.setdefault(node, now_s) + self._quarantine_s - now_s
                if left_s > 0:
                    return later(left_s)
                if await self._is_gone(node):
                    await self._end(pod, "orphaned", f"the node {node} does not exist")
            case Fate.SHUT_DOWN:
                await self._end(pod, "out-of-service", f"the node {node} is out of service")
            case Fate.UNSCHEDULED:
                await self._end(pod, "unscheduled", "the pod is on no node, so no agent will end it")
        return None

    async def _is_gone(self, node: str) -> bool:
        try:
            await self._reading_nodes.get(node)
        except errors.NotFound:
            return True
        return False

    async def _end(self, pod: Object, reason: str, why: str) -> None:
        await disrupt(self._writing, pod, self._world.clock, "DeletionByPodGC", why, at_once=True)
        self._deletions.add(1, pod.namespace, reason)

    async def trim(self, key: str) -> None:
        for pod in surplus(self._finished.values(), self._finished_max):
            try:
                await self._writing.delete(pod.name, pod.namespace, uid=pod.uid, grace_period_s=0)
                self._deletions.add(1, pod.namespace, "terminated")
            except errors.NotFound:
                continue
