"""Pods and claims as values, with defaults for everything."""

from typing import Any

from allot.api import Object, encode

NS = "default"


def pod(name: str = "p", *, uid: str = "", node: str = "n", **more: Any) -> Object:
    metadata = {"name": name, "namespace": NS, "uid": uid or f"uid-{name}", **more.pop("metadata", {})}
    containers = [{"name": "main", "image": "app:1"}]
    spec = {"nodeName": node, "containers": containers, "restartPolicy": "Always", **more.pop("spec", {})}
    status = {"phase": "Pending", **more.pop("status", {})}
    assert not more
    return Object(encode({"metadata": metadata, "spec": spec, "status": status}))


def claim(name: str = "c", *, uid: str = "", reserved: tuple[str, ...] = (), **more: Any) -> Object:
    metadata = {"name": name, "namespace": NS, "uid": uid or f"uid-{name}", **more.pop("metadata", {})}
    consumers = [{"resource": "pods", "name": one, "uid": one} for one in reserved]
    status = {"allocation": {}, "reservedFor": consumers, **more.pop("status", {})}
    return Object(encode({"metadata": metadata, "spec": {}, "status": status}))


def direct(*names: str) -> dict[str, Any]:
    return {"resourceClaims": [{"name": name, "resourceClaimName": name} for name in names]}
