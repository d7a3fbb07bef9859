"""The API objects that a shape is made of."""

from collections.abc import Iterator
from typing import Any

from .shape import Json, Scene

NAMESPACE = "bench"
TEMPLATE = "claim"
CLAIM_ENTRY = "devices"
DRIVER = "test-driver.cdi.k8s.io"
_RESOURCE = "resource.k8s.io/v1"


def namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def node_name(number: int) -> str:
    return f"node-{number:05d}"


def plain_node_name(number: int) -> str:
    return f"plain-{number:05d}"


def node(name: str) -> dict[str, Any]:
    resources = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
    }


def slices(scene: Scene, node: str) -> Iterator[dict[str, Any]]:
    """What the driver of a node publishes: devices, and shared counters apart from them."""
    parts = [("devices", "devices", scene.devices), ("counters", "sharedCounters", scene.counters)]
    parts = [part for part in parts if part[2]]
    pool = {"name": node, "generation": 1, "resourceSliceCount": len(parts)}
    for suffix, field, content in parts:
        yield {
            "apiVersion": _RESOURCE,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{suffix}"},
            "spec": {"driver": DRIVER, "pool": pool, "nodeName": node, field: [*content]},
        }


def device_class(name: str, extended_resource: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"selectors": [selector(f'device.driver == "{DRIVER}"')]}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    return {"apiVersion": _RESOURCE, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def selector(expression: str) -> dict[str, Any]:
    return {"cel": {"expression": expression}}


def template(spec: Json) -> dict[str, Any]:
    return {
        "apiVersion": _RESOURCE,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": TEMPLATE, "namespace": NAMESPACE},
        "spec": {"spec": spec},
    }


def claim(name: str, spec: Json, *finalizers: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE}
    if finalizers:
        metadata["finalizers"] = [*finalizers]
    return {"apiVersion": _RESOURCE, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def shared_claim_name(number: int) -> str:
    return f"shared-{number:05d}"


def pod(scene: Scene, name: str, number: int) -> dict[str, Any]:
    """The pod that is the `number`th of its shape."""
    resources: dict[str, Any] = {}
    requests = scene.requests_of(number)
    if requests:
        resources = {"requests": {**requests}, "limits": {**requests}}
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 0}
    if scene.claim is not None:
        resources["claims"] = [{"name": CLAIM_ENTRY}]
        source: dict[str, str] = {"resourceClaimTemplateName": TEMPLATE}
        if scene.pods_per_claim:
            source = {"resourceClaimName": shared_claim_name(number // scene.pods_per_claim)}
        spec["resourceClaims"] = [{"name": CLAIM_ENTRY, **source}]
    spec["containers"] = [{"name": "main", "image": "example/pause:1", "resources": resources}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }
