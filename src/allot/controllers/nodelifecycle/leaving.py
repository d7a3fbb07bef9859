"""Deletes pods whose time on a tainted node is up."""

from allot.api import Object, core, errors
from allot.informers import Again, Change, Deleted, Index, Key, Reconciler, ResourceId, Updated

from ..controller import World
from ..workloads import NODE_INDEX, PODS, disrupt, later, node_name
from .eviction import leaves_in_s

NODES = ResourceId("", "v1", "nodes", namespaced=False)


class Leaving:
    def __init__(self, world: World) -> None:
        self._world = world
        self._pods, self._nodes = world.informer(PODS), world.informer(NODES)
        self._on_node: Index = self._pods.cache.index(NODE_INDEX, node_name)
        self._writing = world.client.resource("", "v1", "pods")
        self._reading_nodes = world.client.resource("", "v1", "nodes", namespaced=False)
        self._deletions = world.metrics.counter(
            "taint_eviction_controller_pod_deletions_total", "Pods told to leave a tainted node."
        )
        self.loop: Reconciler[Key] = Reconciler(
            "taint_eviction", self.reconcile, world.clock, world.telemetry
        )
        world.on(self._nodes, self._node_changed)
        world.on(self._pods, self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        if isinstance(change, Deleted) or not _evicts(change.object):
            return
        if isinstance(change, Updated) and _taints(change.old) == _taints(change.object):
            return
        for pod in self._on_node[change.object.name]:
            self.loop.add(Key.of(pod))

    def _pod_changed(self, change: Change) -> None:
        node = self._nodes.cache.get(change.object.view(core.Pod).spec.node_name)
        if node is not None and _evicts(node) and not isinstance(change, Deleted):
            self.loop.add(Key.of(change.object))

    async def reconcile(self, key: Key) -> Again | None:
        pod = self._pods.cache.get(key.name, key.namespace)
        if pod is None:
            return None
        node = self._nodes.cache.get(pod.view(core.Pod).spec.node_name)
        left_s = leaves_in_s(pod, node, self._world.clock.now()) if node is not None else None
        if node is None or left_s is None:
            return None
        if left_s > 0:
            return later(left_s)
        try:
            live = await self._reading_nodes.get(node.name)
        except errors.NotFound:
            return None  # then it is the business of whoever collects pods
        left_s = leaves_in_s(pod, live, self._world.clock.now())
        if left_s is None or left_s > 0:
            return later(left_s)
        why = f"the node {node.name} has a taint that the pod does not tolerate any longer"
        await disrupt(self._writing, pod, self._world.clock, "DeletionByTaintManager", why)
        self._deletions.add(1)
        return None


def _taints(node: Object) -> tuple[core.Taint, ...]:
    return node.view(core.Node).spec.taints


def _evicts(node: Object) -> bool:
    return any(taint.effect == "NoExecute" for taint in _taints(node))
