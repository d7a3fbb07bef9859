"""Listens for heartbeats, and writes what silence means."""

from collections.abc import Sequence
from typing import Any

from allot.api import Object, age, errors, meta
from allot.informers import Again, Change, Deleted, Reconciler, ResourceId

from ..controller import Loop, World
from ..workloads import NODE_INDEX, PODS, is_ready, later, node_name
from .health import GRACE_S, are_too_many, granted_s, heartbeat, is_unwell, patience_s, silenced
from .leaving import NODES, Leaving
from .taints import tainted

LEASES = ResourceId("coordination.k8s.io", "v1", "leases")
LEASE_NAMESPACE = "kube-node-lease"


class LeaseSpec(meta.View, frozen=True):
    lease_duration_seconds: int = 0


class Lease(meta.View, frozen=True):
    spec: LeaseSpec = LeaseSpec()


def make(world: World) -> Sequence[Loop]:
    return [Listening(world).loop, Leaving(world).loop]


class Listening:
    def __init__(self, world: World, *, grace_s: float = GRACE_S) -> None:
        self._world = world
        self._grace_s = grace_s
        self._nodes, pods, leases = world.informer(NODES), world.informer(PODS), world.informer(LEASES)
        self._on_node = pods.cache.index(NODE_INDEX, node_name)
        self._heard_s: dict[str, float] = {}  # node -> when, by our own clock
        self._heartbeats: dict[str, str] = {}
        self._durations_s: dict[str, int] = {}  # of the nodes' leases
        self._unwell: set[str] = set()
        self._evicts = True
        self._writing = world.client.resource("", "v1", "nodes", namespaced=False)
        self._writing_pods = world.client.resource("", "v1", "pods")
        self.loop: Reconciler[str] = Reconciler(
            "node_lifecycle", self.reconcile, world.clock, world.telemetry
        )
        zone = "node_collector_zone_size", "Nodes, by zone; here all are in one.", "zone"
        ill = "node_collector_unhealthy_nodes_in_zone", "Nodes that are not ready, by zone.", "zone"
        world.metrics.readings(*zone, read=lambda: {("",): float(len(self._nodes.cache))})
        world.metrics.readings(*ill, read=lambda: {("",): float(len(self._unwell))})
        world.on(leases, self._lease_changed)
        world.on(self._nodes, self._node_changed)

    # -- hearing --------------------------------------------------------------------------------

    def _lease_changed(self, change: Change) -> None:
        lease = change.object
        if lease.namespace == LEASE_NAMESPACE and not isinstance(change, Deleted):
            self._heard_s[lease.name] = self._world.clock.monotonic_s()
            duration_s = lease.view(Lease).spec.lease_duration_seconds
            if self._durations_s.get(lease.name) != duration_s:
                self._durations_s[lease.name] = duration_s
                self.loop.add(lease.name)

    def _node_changed(self, change: Change) -> None:
        node = change.object
        if isinstance(change, Deleted):
            self._heard_s.pop(node.name, None)
            self._heartbeats.pop(node.name, None)
            self._durations_s.pop(node.name, None)
        elif node.name not in self._heard_s or self._heartbeats.get(node.name) != heartbeat(node):
            self._heard_s[node.name] = self._world.clock.monotonic_s()
            self._heartbeats[node.name] = heartbeat(node)
        if not isinstance(change, Deleted) and is_unwell(node):
            self._unwell.add(node.name)
        else:
            self._unwell.discard(node.name)
        self._judge_all()
        self.loop.add(node.name)

    def _judge_all(self) -> None:
        evicts = not are_too_many(len(self._unwell), len(self._nodes.cache))
        if evicts != self._evicts:
            self._evicts = evicts
            for node in self._nodes.cache:
                self.loop.add(node.name)

    # -- one pass -------------------------------------------------------------------------------

    async def reconcile(self, name: str) -> Again | None:
        node = self._nodes.cache.get(name)
        if node is None:
            return None
        now = age.timestamp(self._world.clock.now())
        silent_s = self._world.clock.monotonic_s() - self._heard_s.get(name, 0.0)
        grace_s = granted_s(self._grace_s, self._durations_s.get(name, 0))
        left_s = patience_s(node, grace_s) - silent_s
        if left_s <= 0:
            conditions = silenced(node, now)
            if conditions is not None:
                node = await self._patch(node, {"status": {"conditions": conditions}}, "status")
        if is_unwell(node):
            await self._mark_pods(node, now)
        taints = tainted(node, now, evicts=self._evicts)
        if taints is not None:
            await self._patch(node, {"spec": {"taints": taints or None}}, "")
        return later(left_s) if left_s > 0 else None

    async def _mark_pods(self, node: Object, now: str) -> None:
        """Nobody knows whether they are ready: they must not be counted on."""
        for pod in self._on_node[node.name]:
            if not is_ready(pod):
                continue
            conditions = [
                {**one, "status": "False", "lastTransitionTime": now} if one.get("type") == "Ready" else one
                for one in (pod.fields.get("status") or {}).get("conditions") or ()
            ]
            metadata = {"uid": pod.uid, "resourceVersion": pod.resource_version}
            patch = {"metadata": metadata, "status": {"conditions": conditions}}
            try:
                await self._writing_pods.patch(pod.name, patch, pod.namespace, subresource="status")
            except errors.NotFound:
                continue

    async def _patch(self, node: Object, patch: dict[str, Any], subresource: str) -> Object:
        metadata = {"uid": node.uid, "resourceVersion": node.resource_version}
        return await self._writing.patch(node.name, {**patch, "metadata": metadata}, subresource=subresource)
