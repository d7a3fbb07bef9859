"""The objects of KEP-5004's example, and small variations of them; every argument has a default."""

from collections.abc import Iterable, Mapping
from typing import Any

NS = "default"
DRIVER = "gpu.example.com"
GPU_CLASS = "gpu.example.com"
GPU = "example.com/gpu"
IMPLICIT = f"deviceclass.resource.kubernetes.io/{GPU_CLASS}"
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
FINALIZER = "resource.kubernetes.io/delete-protection"

Fields = dict[str, Any]


def device_class(name: str = GPU_CLASS, extended: str | None = GPU, driver: str = DRIVER) -> Fields:
    spec: Fields = {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}]}
    if extended is not None:
        spec["extendedResourceName"] = extended
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def node(name: str = "n1", **allocatable: int | str) -> Fields:
    """`gpu=2` is a node whose device plugin has two of example.com/gpu to give out."""
    amounts = {"cpu": "4", "memory": "15335536Ki", "pods": "110", "ephemeral-storage": "101430960Ki"}
    amounts |= {_resource(key): str(amount) for key, amount in allocatable.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def slice_(node: str = "n1", devices: int = 8, driver: str = DRIVER, generation: int = 1) -> Fields:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{at}"} for at in range(devices)],
        },
    }


def container(name: str = "demo", keeps_running: bool = False, **limits: int | str) -> Fields:
    """As in the KEP's Deployment, only limits are said. `implicit` is the class by its own name."""
    policy = {"restartPolicy": "Always"} if keeps_running else {}
    asked = {_resource(key): str(amount) for key, amount in limits.items()}
    return {"name": name, "image": "demo:1", "resources": {"limits": asked}, **policy}


def pod(*containers: Fields, name: str = "p", init: Iterable[Fields] = (), **spec: Any) -> Fields:
    listed = list(containers) or [container(gpu=1)]
    said = {"containers": listed, **({"initContainers": list(init)} if init else {}), **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NS},
        "spec": {"restartPolicy": "Never", **said},
    }


def deployment(replicas: int = 1, **limits: int | str) -> Fields:
    """The KEP's own, word for word where it matters: the pods ask for example.com/gpu and nothing else."""
    labels = {"app": "demo"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "demo", "namespace": NS},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container(**(limits or {"gpu": 1}))]},
            },
        },
    }


def with_claims(name: str, *entries: Fields, containers: int = 1, init: int = 0) -> Fields:
    """A pod whose containers, init containers among them, use every claim that it names."""
    uses = {"claims": [{"name": one["name"]} for one in entries]}

    def using(kind: str, count: int) -> list[Fields]:
        return [{"name": f"{kind}{at}", "image": "demo:1", "resources": uses} for at in range(count)]

    made = pod(*using("main", containers), name=name, init=using("init", init))
    made["spec"]["resourceClaims"] = list(entries)
    return made


def direct(claim: str, name: str = "gpu") -> Fields:
    return {"name": name, "resourceClaimName": claim}


def inline(template: str = "one", name: str = "gpu") -> Fields:
    return {"name": name, "resourceClaimTemplateName": template}


def claim_with(name: str, spec: Fields) -> Fields:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NS},
        "spec": spec,
    }


def mapping(container: str = "demo", resource: str = GPU, request: str = "container-0-request-0") -> Fields:
    return {"containerName": container, "resourceName": resource, "requestName": request}


def extended_status(*mappings: Fields, claim: str = "p-extended-resources-abcde") -> Fields:
    listed = list(mappings) or [mapping()]
    return {"extendedResourceClaimStatus": {"resourceClaimName": claim, "requestMappings": listed}}


def said_of(pod: Any) -> Mapping[str, Any] | None:
    """The status that tells the node which claim serves the pod's extended resources."""
    found: Mapping[str, Any] | None = (pod.fields.get("status") or {}).get("extendedResourceClaimStatus")
    return found


def _resource(key: str) -> str:
    names = {"implicit": IMPLICIT, "cpu": "cpu", "memory": "memory", "pods": "pods"}
    return names.get(key, f"example.com/{key}")
