"""Everybody around the components under test: people, a scheduler and nodes, in a few lines each.

They are as simple as they can be while keeping the rules of the API: what they do is
what any scheduler, kubelet or person may do, at moments that the seed decides.
"""

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from allot.api import Object, errors
from allot.client import Client, Resource

FINALIZER = "resource.kubernetes.io/delete-protection"
DRIVER = "gpu.example.com"
NODES = 6
DEVICES_PER_NODE = 4
NAMESPACE = "default"
FINISHED = ("Succeeded", "Failed")

Fields = Mapping[str, Any]


class Things:
    """The resources that everybody here writes."""

    def __init__(self, client: Client) -> None:
        self.pods = client.resource("", "v1", "pods")
        self.claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.templates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
        self.slices = client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
        self.classes = client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
        self.nodes = client.resource("", "v1", "nodes", namespaced=False)


async def furnish(client: Client) -> None:
    """Nodes with devices, a class, a template, and a claim that pods share."""
    things = Things(client)
    await things.classes.create({"metadata": {"name": "gpu"}, "spec": {}})
    for number in range(NODES):
        name = f"node-{number}"
        await things.nodes.create({"metadata": {"name": name}})
        devices = [{"name": f"gpu-{at}"} for at in range(DEVICES_PER_NODE)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        await things.slices.create({"metadata": {"name": name}, "spec": spec})
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    claim = {"devices": {"requests": [request]}}
    template = {"metadata": {"name": "one-gpu"}, "spec": {"spec": claim}}
    await things.templates.create(template, NAMESPACE)
    await things.claims.create({"metadata": {"name": "shared"}, "spec": claim}, NAMESPACE)


async def people(client: Client, rng: random.Random, pods: int, seconds: float) -> None:
    """Pods come over time; some are deleted, at any moment of their life."""
    things = Things(client)

    async def one(number: int) -> None:
        await asyncio.sleep(rng.uniform(0, seconds * 0.7))
        name = f"pod-{number}"
        await _insist(things.pods.create(_pod(name, rng), NAMESPACE))
        if rng.random() < 0.5:
            await asyncio.sleep(rng.uniform(0, seconds * 0.2))
            await _insist(things.pods.delete(name, NAMESPACE))
            if rng.random() < 0.3:  # the name comes back as another pod
                await asyncio.sleep(rng.uniform(0, 60))
                await _insist(things.pods.create(_pod(name, rng), NAMESPACE))

    await asyncio.gather(*(one(number) for number in range(pods)))


def _pod(name: str, rng: random.Random) -> dict[str, Any]:
    claims: list[dict[str, str]] = [{"name": "own", "resourceClaimTemplateName": "one-gpu"}]
    if rng.random() < 0.3:
        claims.append({"name": "shared", "resourceClaimName": "shared"})
    container = {
        "name": "main",
        "image": "app:1",
        "resources": {"claims": [{"name": c["name"]} for c in claims]},
    }
    return {
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "resourceClaims": claims, "containers": [container]},
    }


async def scheduler(client: Client, rng: random.Random) -> None:
    """Every few seconds: allocate, reserve and bind what is complete. Remembers nothing."""
    things = Things(client)
    while True:
        await asyncio.sleep(rng.uniform(1, 5))
        try:
            pods = (await things.pods.list(NAMESPACE)).objects
            for pod in pods:
                if not pod.fields["spec"].get("nodeName") and not pod.metadata.deletion_timestamp:
                    await _schedule(things, pod, rng)
        except errors.ApiError:
            continue


async def _schedule(things: Things, pod: Object, rng: random.Random) -> None:
    claims = await _claims_of(things.claims, pod)
    if claims is None:
        return
    nodes = sorted({node for claim in claims if (node := _node_of(claim))})
    if len(nodes) > 1:
        return  # claims on two nodes: nobody can help this pod
    node = nodes[0] if nodes else f"node-{rng.randrange(NODES)}"
    for claim in claims:
        if not await _give(things.claims, claim, pod, node):
            return
    try:
        await things.pods.bind(pod.name, NAMESPACE, node, uid=pod.uid)
    except errors.Conflict:
        return


async def _claims_of(claims: Resource, pod: Object) -> list[Object] | None:
    """The pod's claims, or None while one is not there or not its own."""
    known = {
        one["name"]: one.get("resourceClaimName")
        for one in (pod.fields.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    found = []
    for one in pod.fields["spec"].get("resourceClaims") or ():
        name = one.get("resourceClaimName") or known.get(one["name"])
        if name is None:
            return None
        try:
            claim = await claims.get(name, NAMESPACE)
        except errors.NotFound:
            return None
        owners = claim.fields["metadata"].get("ownerReferences") or ()
        mine = any(owner["uid"] == pod.uid for owner in owners)
        if claim.metadata.deletion_timestamp or ("resourceClaimTemplateName" in one and not mine):
            return None
        found.append(claim)
    return found


async def _give(claims: Resource, claim: Object, pod: Object, node: str) -> bool:
    """Allocate the claim if need be, and reserve it for the pod."""
    status = dict(claim.fields.get("status") or {})
    reserved = list(status.get("reservedFor") or ())
    if any(one["uid"] == pod.uid for one in reserved):
        return True
    if "allocation" not in status:
        device = await _free_device(claims, node)
        if device is None:
            return False
        metadata = dict(claim.fields["metadata"])
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), FINALIZER]
        if FINALIZER not in (claim.fields["metadata"].get("finalizers") or ()):
            claim = await claims.update({**claim.fields, "metadata": metadata})
        result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        status["allocation"] = {"devices": {"results": [result]}, "nodeSelector": selector}
    consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
    status["reservedFor"] = [*reserved, consumer]
    await claims.update_status({**claim.fields, "status": status})
    return True


async def _free_device(claims: Resource, node: str) -> str | None:
    taken = set()
    for claim in (await claims.list(NAMESPACE)).objects:
        allocation = (claim.fields.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            if result["pool"] == node:
                taken.add(result["device"])
    return next((f"gpu-{at}" for at in range(DEVICES_PER_NODE) if f"gpu-{at}" not in taken), None)


def _node_of(claim: Object) -> str | None:
    allocation = (claim.fields.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return results[0]["pool"] if results else None


async def kubelets(client: Client, rng: random.Random) -> None:
    """Pods that are bound run, end, and go away when they are told to."""
    pods = Things(client).pods
    while True:
        await asyncio.sleep(rng.uniform(1, 5))
        for pod in (await pods.list(NAMESPACE)).objects:
            if pod.fields["spec"].get("nodeName"):
                await _run(pods, pod, rng)


async def _run(pods: Resource, pod: Object, rng: random.Random) -> None:
    phase = (pod.fields.get("status") or {}).get("phase")
    try:
        if pod.metadata.deletion_timestamp:
            if rng.random() < 0.3:
                await pods.delete(pod.name, NAMESPACE, grace_period_s=0, uid=pod.uid)
        elif phase == "Pending" and rng.random() < 0.5:
            await pods.update_status({**pod.fields, "status": {**pod.fields["status"], "phase": "Running"}})
        elif phase == "Running" and rng.random() < 0.02:
            ended = FINISHED[rng.randrange(2)]
            await pods.update_status({**pod.fields, "status": {**pod.fields["status"], "phase": ended}})
    except (errors.Conflict, errors.NotFound):
        return


async def _insist(done: Any) -> None:
    """People see that a name is taken, or that a pod is gone already, and let it be."""
    try:
        await done
    except (errors.Conflict, errors.NotFound):
        return
