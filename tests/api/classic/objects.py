"""Classic objects in short form, as resource.k8s.io/v1alpha1 has them."""

from typing import Any

DRIVER = "gpu.example.com"
ON_N1 = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
}


def claim(class_name: str = "gpu", name: str = "c", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"resourceClassName": class_name, **spec},
    }


def template(class_name: str = "gpu", name: str = "t", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"resourceClassName": class_name, **spec}},
    }


def class_(name: str = "gpu", driver: str = DRIVER, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "driverName": driver, **more}


def allocated(driver: str = DRIVER, **allocation: Any) -> dict[str, Any]:
    """The status of an allocated claim."""
    return {"driverName": driver, "allocation": allocation}


def pod_scheduling(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def consumer(uid: str = "u1", name: str = "p", resource: str = "pods", **more: str) -> dict[str, str]:
    return {"resource": resource, "name": name, "uid": uid, **more}
