"""A scheduler and the agents of nodes in a few lines, for benchmarks of the controllers.

It hears of pods and claims by watching, as the real ones do. A pod whose claims are recorded
gets a device for each (finalizer, then allocation and reservation in one write), is bound, and
becomes ready; one that is deleted goes at once. Nodes renew their leases every ten seconds.
"""

import asyncio
import random
from typing import Any

from allot.api import Object, errors
from allot.base import Clock, Metrics
from allot.client import Client
from allot.informers import Again, Informers, Key, Reconciler, ResourceId, Telemetry

FINALIZER = "resource.kubernetes.io/delete-protection"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
PODS = ResourceId("", "v1", "pods")
CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")
HEARTBEAT_S = 10.0
WORKERS = 32


class StandIn:
    def __init__(self, client: Client, clock: Clock, nodes: int) -> None:
        self._client = client
        self._pods = client.resource("", "v1", "pods")
        self._claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self._nodes = nodes
        self._next = 0
        self._clock = clock

    async def run(self) -> None:
        async with Informers(self._client, random.Random(2)) as informers:
            pods, claims = informers.use(PODS), informers.use(CLAIMS)
            self._seen_pods, self._seen_claims = pods.cache, claims.cache
            telemetry = Telemetry(Metrics(), self._clock)
            loop: Reconciler[Key] = Reconciler(
                "stand-in", self._look, self._clock, telemetry, workers=WORKERS
            )
            await informers.synced()
            pods.handle(lambda change: loop.add(Key.of(change.object)))
            await loop.run()

    async def _look(self, key: Key) -> Again | None:
        pod = self._seen_pods.get(key.name, key.namespace)
        if pod is None:
            return None
        spec, status = pod.fields["spec"], pod.fields.get("status") or {}
        try:
            if pod.metadata.deletion_timestamp:
                if spec.get("nodeName"):
                    await self._pods.delete(pod.name, pod.namespace, grace_period_s=0, uid=pod.uid)
            elif not spec.get("nodeName"):
                return await self._schedule(pod)
            elif status.get("phase") == "Pending":
                patch = {"metadata": {"uid": pod.uid}, "status": READY}
                await self._pods.patch(pod.name, patch, pod.namespace, subresource="status")
        except (errors.NotFound, errors.Conflict):
            return None  # it changed meanwhile, and the change is on its way
        return None

    async def _schedule(self, pod: Object) -> Again | None:
        status = pod.fields.get("status") or {}
        recorded = [one["resourceClaimName"] for one in status.get("resourceClaimStatuses") or ()]
        if len(recorded) < len(pod.fields["spec"].get("resourceClaims") or ()):
            return None  # the record will be heard of
        claims = [self._seen_claims.get(name, pod.namespace) for name in recorded]
        if any(claim is None for claim in claims):
            return Again(0.02)
        node = daemon_node(pod) or self._node()
        for claim in claims:
            if claim is not None and not (claim.fields.get("status") or {}).get("allocation"):
                await self._allocate(claim, pod, node)
        await self._pods.bind(pod.name, pod.namespace, node, uid=pod.uid)
        return None

    async def _allocate(self, claim: Object, pod: Object, node: str) -> None:
        finalizers = {"metadata": {"uid": claim.uid, "finalizers": [FINALIZER]}}
        await self._claims.patch(claim.name, finalizers, claim.namespace)
        await self._claims.patch(
            claim.name, {"status": allocated(claim, pod, node)}, claim.namespace, subresource="status"
        )

    def _node(self) -> str:
        self._next += 1
        return node_name(self._next % self._nodes)


def allocated(claim: Object, pod: Object, node: str) -> dict[str, Any]:
    """The status of a claim that has a device of its own and is reserved for a pod."""
    request = claim.fields["spec"]["devices"]["requests"][0]["name"]
    device = f"d-{claim.uid}"
    result = {"request": request, "driver": "gpu.example.com", "pool": node, "device": device}
    consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
    return {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}


def daemon_node(pod: Object) -> str:
    """The node that a daemon set's pod is for."""
    affinity = (pod.fields["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    wanted = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in wanted.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""


def node_name(number: int) -> str:
    return f"node-{number}"


async def furnish(client: Client, nodes: int) -> None:
    """Nodes that are ready, each with its lease."""
    what = client.resource("", "v1", "nodes", namespaced=False)
    leases = client.resource("coordination.k8s.io", "v1", "leases")

    async def one(number: int) -> None:
        made = await what.create({"metadata": {"name": node_name(number)}})
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        await what.patch(made.name, {"status": ready}, subresource="status")
        lease = {"metadata": {"name": made.name}, "spec": {"holderIdentity": made.name}}
        await leases.create(lease, "kube-node-lease")

    await asyncio.gather(*(one(number) for number in range(nodes)))


async def heartbeats(client: Client, nodes: int) -> None:
    """Every node renews its lease, spread over the period."""
    leases = client.resource("coordination.k8s.io", "v1", "leases")

    async def one(number: int) -> None:
        await asyncio.sleep(HEARTBEAT_S * number / nodes)
        beats = 0
        while True:
            beats += 1
            patch = {"spec": {"renewTime": f"2030-01-01T00:00:00.{beats % 1000000:06d}Z"}}
            await leases.patch(node_name(number), patch, "kube-node-lease")
            await asyncio.sleep(HEARTBEAT_S)

    await asyncio.gather(*(one(number) for number in range(nodes)))
