"""Pods, templates and claims to tell stories with; every argument has a default."""

import asyncio
from typing import Any

from allot.api import Object
from allot.controllers import resourceclaims
from controllers.world import NS, World, tell

FINALIZER = "resource.kubernetes.io/delete-protection"
CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


def story(which) -> Any:
    """A test that is told to a running claim controller."""

    def test() -> None:
        tell(which, resourceclaims.CONTROLLER)

    test.__name__, test.__doc__ = which.__name__, which.__doc__
    return test


def pod(name: str = "p", claims: list[dict[str, str]] | None = None, **spec: Any) -> dict[str, Any]:
    entries = [{"name": "gpu", "resourceClaimTemplateName": "t"}] if claims is None else claims
    containers = [{"name": "main", "image": "example/app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NS},
        "spec": {"containers": containers, "resourceClaims": entries, **spec},
    }


def direct(claim: str = "c", name: str = "gpu") -> list[dict[str, str]]:
    return [{"name": name, "resourceClaimName": claim}]


def spec() -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


def template(name: str = "t", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": NS},
        "spec": {"metadata": metadata, "spec": spec()},
    }


def claim(name: str = "c", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NS, **metadata},
        "spec": spec(),
    }


def owned_by(pod: Object, entry: str = "gpu") -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    return {"ownerReferences": [owner], "annotations": {CLAIM_NAME: entry}}


def consumer(pod: Object) -> dict[str, str]:
    return {"resource": "pods", "name": pod.name, "uid": pod.uid}


async def allocate(
    here: World, claim: Object, *consumers: dict[str, str], protect: bool = True, node: str = ""
) -> Object:
    """As a scheduler does: the finalizer, then allocation and reservation in one write."""
    if protect:
        claim = await here.claims.patch(claim.name, {"metadata": {"finalizers": [FINALIZER]}}, NS)
    result = {"request": "r", "driver": "gpu.example.com", "pool": "pool", "device": f"d-{claim.name}"[:60]}
    status: dict[str, Any] = {
        "allocation": {"devices": {"results": [result]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}
    }
    if node:
        only = {"key": "metadata.name", "operator": "In", "values": [node]}
        status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    if consumers:
        status["reservedFor"] = list(consumers)
    return await here.claims.patch(claim.name, {"status": status}, NS, subresource="status")


async def finish(here: World, name: str = "p", phase: str = "Succeeded") -> None:
    await here.pods.patch(name, {"status": {"phase": phase}}, NS, subresource="status")


async def exhaust(here: World, what: str) -> None:
    """A quota that leaves nothing, as somebody has counted already."""
    quotas = here.client.resource("", "v1", "resourcequotas")
    await quotas.create({"metadata": {"name": "full", "namespace": NS}, "spec": {"hard": {what: "0"}}})
    counted = {"hard": {what: "0"}, "used": {what: "0"}}
    await quotas.patch("full", {"status": counted}, NS, subresource="status")


async def generated(here: World, pod: str = "p", entry: str = "gpu") -> Object:
    """The claim that the pod's status records, once there is one."""

    async def look() -> Object | None:
        found = await here.pods.get(pod, NS)
        for one in found.fields.get("status", {}).get("resourceClaimStatuses") or ():
            if one["name"] == entry and one.get("resourceClaimName"):
                return await here.find(here.claims, one["resourceClaimName"])
        return None

    return await here.until(look)


def allocation(claim: Object | None) -> Any:
    return None if claim is None else (claim.fields.get("status") or {}).get("allocation")


def reserved(claim: Object | None) -> list[str]:
    entries = [] if claim is None else (claim.fields.get("status") or {}).get("reservedFor") or []
    return [one["name"] for one in entries]


async def gone(here: World, name: str) -> None:
    async def look() -> bool:
        return await here.find(here.claims, name) is None

    await here.until(look)


async def freeze(here: World, plural: str) -> None:
    """The controller hears nothing more of a resource."""
    for task in asyncio.all_tasks():
        if task.get_name().startswith(f"informer {plural}."):
            task.cancel()
            await asyncio.wait((task,))
