"""Slices, rules, claims and pods to tell stories with; every argument has a default."""

from typing import Any

from allot.api import Object, core, meta, resource
from controllers.world import NS, World

DRIVER = "gpu.example.com"
LONG_AGO = "2026-01-01T00:00:00Z"


def taint(key: str = "broken", value: str = "", effect: str = "NoExecute", since: str = LONG_AGO):
    return {"key": key, "value": value, "effect": effect, **({"timeAdded": since} if since else {})}


def device(name: str, *taints: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, **({"taints": [*taints]} if taints else {})}


def slice_(
    name: str, *devices: dict[str, Any], pool: str = "pool", generation: int = 1, count: int = 1
) -> dict[str, Any]:
    described = {"name": pool, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "allNodes": True, "pool": described, "devices": [*devices]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": spec,
    }


def rule(name: str, selector: dict[str, str] | None, which: dict[str, Any] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"taint": which or taint()}
    if selector is not None:
        spec["deviceSelector"] = selector
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": spec,
    }


def tolerates(**fields: Any) -> dict[str, Any]:
    return {"operator": "Exists", "effect": "NoExecute", **fields}


def result(device: str = "d0", *tolerations: dict[str, Any], pool: str = "pool") -> dict[str, Any]:
    return {
        "request": "r",
        "driver": DRIVER,
        "pool": pool,
        "device": device,
        **({"tolerations": [*tolerations]} if tolerations else {}),
    }


def claim(name: str = "c", *tolerations: dict[str, Any], namespace: str = NS) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", **({"tolerations": [*tolerations]} if tolerations else {})}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


def pod(
    name: str = "p", claim: str | None = "c", node: str | None = "n", namespace: str = NS
) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "example/app:1"}]}
    if claim is not None:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    if node is not None:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


# -- as values ----------------------------------------------------------------------------------


def claim_value(
    *results: dict[str, Any], name: str = "c", users: tuple[str, ...] = ("p",), namespace: str = NS
) -> resource.ResourceClaim:
    """Allocated, and reserved for pods whose uid is `uid of <name>`."""
    reserved = [{"resource": "pods", "name": one, "uid": f"uid of {one}"} for one in users]
    status = {"allocation": {"devices": {"results": [*results]}}, "reservedFor": reserved}
    metadata = {"name": name, "namespace": namespace}
    return meta.view(resource.ResourceClaim, {"metadata": metadata, "status": status})


def pod_value(name: str = "p", *claims: str, **more: Any) -> core.Pod:
    """On a node, and using claim c unless others are named."""
    named = [{"name": one, "resourceClaimName": one} for one in claims or ("c",)]
    status, spec = more.pop("status", {}), more.pop("spec", {})
    return meta.view(
        core.Pod,
        {
            "metadata": {"name": name, "namespace": NS, "uid": f"uid of {name}", **more},
            "spec": {"nodeName": "n", "resourceClaims": named, **spec},
            "status": status,
        },
    )


def rule_value(
    name: str = "r", selector: dict[str, str] | None = None, which: dict[str, Any] | None = None, **more: Any
) -> resource.DeviceTaintRule:
    fields = rule(name, {} if selector is None else selector, which)
    return meta.view(resource.DeviceTaintRule, {**fields, **more})


def slice_value(*arguments: Any, **more: Any) -> resource.ResourceSlice:
    return meta.view(resource.ResourceSlice, slice_(*arguments, **more))


# -- in the API ---------------------------------------------------------------------------------


def slices(here: World):
    return here.client.of(resource.RESOURCE_SLICE)


def rules(here: World):
    return here.client.of(resource.DEVICE_TAINT_RULE)


async def running(
    here: World, name: str = "p", device: str = "d0", *tolerations: dict[str, Any], namespace: str = NS
) -> Object:
    """A pod on a node, with a claim of its own that holds a device."""
    made = await here.pods.create(pod(name, claim=f"of-{name}", namespace=namespace))
    await holding(here, made, f"of-{name}", device, *tolerations)
    return made


async def holding(here: World, user: Object, name: str, device: str, *tolerations: dict[str, Any]) -> Object:
    """A claim that holds a device for a pod, as a scheduler writes it."""
    await here.claims.create(claim(name, *tolerations, namespace=user.namespace))
    consumer = {"resource": "pods", "name": user.name, "uid": user.uid}
    allocation = {"devices": {"results": [result(device, *tolerations)]}}
    status = {"allocation": allocation, "reservedFor": [consumer]}
    return await here.claims.patch(name, {"status": status}, user.namespace, subresource="status")


async def condition(here: World, name: str) -> dict[str, Any]:
    found = await rules(here).get(name)
    listed = (found.fields.get("status") or {}).get("conditions") or [{}]
    assert len(listed) == 1
    return dict(listed[0])
