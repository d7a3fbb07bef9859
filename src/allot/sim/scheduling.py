"""A scheduler in one page: as simple as it can be while it keeps the rules of the API.

It follows pods, claims and nodes through informers, so its view is as old as any
scheduler's, and remembers nothing of its own. Every few seconds, if something waits: find
a node, allocate what is not allocated, reserve, bind. It stands in for the real one where
that is not what is tested; `World` takes any other `Main` instead.
"""

import asyncio
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from allot.api import Object, core, errors, podclaims
from allot.apiserver import identities
from allot.client import Client, Resource
from allot.informers import Change, Deleted, Informer, Informers, Key, Pace, ResourceId

from .component import Connect
from .nodes import DEVICES_PER_NODE
from .things import DRIVER, FINALIZER, Fields

_PODS = ResourceId("", "v1", "pods")
_CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")
_NODES = ResourceId("", "v1", "nodes", namespaced=False)


async def schedule(connect: Connect, rng: random.Random, pace: Pace) -> None:
    client = Client(connect(identities.SCHEDULER))
    async with Informers(client, rng, pace=pace) as informers:
        pods, claims, nodes = (informers.use(what) for what in (_PODS, _CLAIMS, _NODES))
        await informers.synced()
        await _Scheduler(client, rng, pods, claims, nodes).run()


class _Scheduler:
    def __init__(
        self, client: Client, rng: random.Random, pods: Informer, claims: Informer, nodes: Informer
    ) -> None:
        self._rng = rng
        self._claims = claims
        self._nodes = nodes
        self._waiting: dict[Key, Object] = {}
        self._woken = asyncio.Event()
        self._write_claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self._write_pods = client.resource("", "v1", "pods")
        pods.handle(self._pod_changed)
        claims.handle(lambda change: self._woken.set())
        nodes.handle(lambda change: self._woken.set())

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        is_bound = bool(pod.fields["spec"].get("nodeName"))
        if isinstance(change, Deleted) or is_bound or pod.metadata.deletion_timestamp:
            self._waiting.pop(Key.of(pod), None)
        else:
            self._waiting[Key.of(pod)] = pod
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            await asyncio.sleep(self._rng.uniform(1, 5))
            self._woken.clear()
            for pod in list(self._waiting.values()):
                try:
                    await self._try(pod)
                except errors.ApiError:
                    self._woken.set()  # somebody was faster, or it went wrong: look again

    async def _try(self, pod: Object) -> None:
        claims = self._claims_of(pod)
        node = self._node_for(pod, claims) if claims is not None else None
        if claims is None or node is None:
            return
        free = self._free_devices(node)
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        for claim in claims:
            status = claim.fields.get("status") or {}
            reserved = list(status.get("reservedFor") or ())
            if any(one["uid"] == pod.uid for one in reserved):
                continue
            devices = status.get("allocation") or allocation(node, free.pop(0))
            await give(self._write_claims, claim, devices, [*reserved, consumer])
        await self._write_pods.bind(pod.name, pod.namespace, node, uid=pod.uid)

    def _claims_of(self, pod: Object) -> list[Object] | None:
        """The pod's claims, or None while one is not there or not its own."""
        found = []
        for use in podclaims.used(pod.view(core.Pod)):
            claim = self._claims.cache.get(use.name, pod.namespace) if use.name else None
            if claim is None or claim.metadata.deletion_timestamp:
                return None
            owners = claim.fields["metadata"].get("ownerReferences") or ()
            if use.is_generated and not any(owner["uid"] == pod.uid for owner in owners):
                return None
            found.append(claim)
        return found

    def _node_for(self, pod: Object, claims: Sequence[Object]) -> str | None:
        """Where the claims are, or any node that has room; None while there is none."""
        fixed = {node for claim in claims if (node := _node_of(claim))}
        missing = sum(_node_of(claim) is None for claim in claims)
        meant = _meant_for(pod)
        fitting = [
            node.name
            for node in self._nodes.cache
            if (not fixed or fixed == {node.name})
            and (meant == node.name if meant else not node.fields["spec"].get("taints"))
            and len(self._free_devices(node.name)) >= missing
        ]
        return fitting[self._rng.randrange(len(fitting))] if fitting else None

    def _free_devices(self, node: str) -> list[str]:
        return free_devices(node, (result for claim in self._claims.cache for result in results(claim)))


def free_devices(node: str, taken: Iterable[Any]) -> list[str]:
    names = {result["device"] for result in taken if result["pool"] == node}
    return [name for at in range(DEVICES_PER_NODE) if (name := f"gpu-{at}") not in names]


async def give(claims: Resource, claim: Object, devices: Any, reserved: Sequence[Any]) -> None:
    """Protect the claim if need be, then write its allocation and its reservations together (C1, C2)."""
    finalizers = claim.fields["metadata"].get("finalizers") or ()
    if FINALIZER not in finalizers:
        metadata = {**claim.fields["metadata"], "finalizers": [*finalizers, FINALIZER]}
        claim = await claims.update({**claim.fields, "metadata": metadata})
    status = {**(claim.fields.get("status") or {}), "allocation": devices}
    status |= {"reservedFor": [*reserved]} if reserved else {}
    await claims.update_status({**claim.fields, "status": status})


def allocation(node: str, device: str) -> Fields:
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"devices": {"results": [result]}, "nodeSelector": selector}


def results(claim: Object) -> Iterator[Any]:
    given = (claim.fields.get("status") or {}).get("allocation") or {}
    yield from (given.get("devices") or {}).get("results") or ()


def _node_of(claim: Object) -> str | None:
    return next((result["pool"] for result in results(claim)), None)


def _meant_for(pod: Object) -> str:
    """The node that a daemon's pod is made for."""
    affinity = (pod.fields["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for one in term.get("matchFields") or ():
            return str(one["values"][0])
    return ""
