"""Objects of numeric parameters in short form, as resource.k8s.io/v1alpha1 has them."""

from typing import Any

DRIVER = "frob.example.com"
GROUP = "counter.dra.config.k8s.io"
TEMPLATE = f"kind: Parameters\napiVersion: {GROUP}/v1alpha1\nRequired: 2\n"


def entry(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "dra.e2e.example.com/v1alpha1",
        "kind": "ClaimParameters",
        "celTemplate": TEMPLATE,
        **more,
    }


def class_(name: str = "frob", *entries: dict[str, Any], driver: str = DRIVER, **more: Any) -> dict[str, Any]:
    listed = [*entries] if entries else [entry()]
    return {"metadata": {"name": name}, "driverName": driver, "numericParameters": listed, **more}


def counter(id: str = "c0", count: Any = 8, version: str = "v1beta1", **labels: str) -> dict[str, Any]:
    data = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Capacity",
        "metadata": {"labels": labels},
        "count": count,
    }
    return {"id": id, "apiVersion": f"{GROUP}/{version}", "kind": "Capacity", "data": data}


def capacity(
    name: str = "n1-frob", node: str = "n1", driver: str = DRIVER, instances: Any = None
) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "nodeName": node,
        "driverName": driver,
        "instances": [counter()] if instances is None else instances,
    }
