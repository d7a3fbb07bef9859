"""A scheduler of a few lines, for tests of the harness: first come, first served, one pod at a time.

It makes the writes that the real one makes (finalizer, allocation with reservation,
binding), so that what the harness counts and judges is real.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec

from allot.allocation import Features, Inventory, Ledger, Node, Plan, allocate, read_demand, taken_by
from allot.api import Object, errors, resource
from allot.apiserver import identities
from allot.base import RandomIds
from allot.bench import Connect, Wanted
from allot.client import Client
from allot.informers import Change, Deleted, Informers, ResourceId

PODS = ResourceId("", "v1", "pods")
NODES = ResourceId("", "v1", "nodes", namespaced=False)
SLICES = ResourceId("resource.k8s.io", "v1", "resourceslices", namespaced=False)
CLASSES = ResourceId("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")


class StandIn:
    """`mistake` changes an allocation before it is written; `lazy` binds nothing."""

    def __init__(self, mistake: Callable[[dict[str, Any]], None] | None = None, lazy: bool = False) -> None:
        self._mistake = mistake
        self._lazy = lazy

    async def __call__(self, connect: Connect, wanted: Wanted, ready: Callable[[], None]) -> None:
        client = Client(connect(identities.SCHEDULER))
        self._claims, self._pods = client.of(resource.RESOURCE_CLAIM), client.resource("", "v1", "pods")
        self._features = Features.from_gates(wanted.gates)
        self._inventory, self._ledger = Inventory(self._features), Ledger()
        async with Informers(client, random.Random(1)) as informers:
            pods, nodes, slices, classes, claims = (
                informers.use(one) for one in (PODS, NODES, SLICES, CLASSES, CLAIMS)
            )
            await informers.synced(pods, nodes, slices, classes, claims)
            for one in slices.cache:
                self._inventory.apply(one.view(resource.ResourceSlice))
            self._classes = {one.name: one.view(resource.DeviceClass) for one in classes.cache}
            self._nodes = [Node.read(one.fields) for one in nodes.cache]
            claims.handle(self._settle)
            ready()
            while True:
                for pod in [one for one in pods.cache if not one.fields["spec"].get("nodeName")]:
                    if not self._lazy:
                        await self._place(pod, claims.cache)
                await asyncio.sleep(0.005)

    def _settle(self, change: Change) -> None:
        claim = change.object.view(resource.ResourceClaim)
        allocation = claim.status.allocation
        if isinstance(change, Deleted) or allocation is None:
            self._ledger.release(claim.metadata.uid)
        else:
            self._ledger.settle(claim.metadata.uid, taken_by(allocation))

    async def _place(self, pod: Object, cache: Any) -> None:
        names = [
            one["resourceClaimName"]
            for one in (pod.fields.get("status") or {}).get("resourceClaimStatuses") or ()
        ] or [
            one["resourceClaimName"]
            for one in pod.fields["spec"]["resourceClaims"]
            if "resourceClaimName" in one
        ]
        if not names:
            return
        try:
            claim = await self._claims.get(names[0], pod.namespace)
            view = claim.view(resource.ResourceClaim)
            if view.status.allocation is None:
                node = await self._allocate(claim, pod)
            else:
                node = await self._join(claim, pod)
            if node:
                await self._pods.bind(pod.name, pod.namespace, node, uid=pod.uid)
        except (errors.Conflict, errors.NotFound):
            return

    async def _allocate(self, claim: Object, pod: Object) -> str:
        demand = read_demand([claim.view(resource.ResourceClaim)], self._classes, self._features)
        for node in self._nodes:
            answer = allocate(node, self._inventory, self._ledger, demand)
            if isinstance(answer, Plan):
                (allocation,) = answer.results(RandomIds())
                self._ledger.settle(claim.uid, taken_by(allocation))
                written = msgspec.json.decode(msgspec.json.encode(allocation))
                if self._mistake is not None:
                    self._mistake(written)
                finalizers = {"metadata": {"finalizers": [resource.limits.FINALIZER]}}
                claim = await self._claims.update(claim.changed(finalizers))
                status = {"allocation": written, "reservedFor": [_consumer(pod)]}
                await self._claims.update_status(claim.changed({"status": status}))
                return node.name
        return ""

    async def _join(self, claim: Object, pod: Object) -> str:
        status = claim.fields["status"]
        others = status.get("reservedFor") or []
        if all(one["uid"] != pod.uid for one in others):
            status = {**status, "reservedFor": [*others, _consumer(pod)]}
            await self._claims.update_status(claim.changed({"status": status}))
        (name,) = status["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"]
        return str(name)


def _consumer(pod: Object) -> dict[str, str]:
    return {"resource": "pods", "name": pod.name, "uid": pod.uid}
