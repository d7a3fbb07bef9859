"""Small clusters as objects, for questions that no server is needed for."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from allot.api import Gates, Object, encode
from allot.base import SystemClock
from allot.fleet import fleet
from allot.planning import Answer, Cluster, manifests, parse, what_if
from allot.planning.dump import RESOURCES
from allot.scheduler import Gathered, Settings

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
Fields = dict[str, Any]
_BY_KIND = {
    "Node": "nodes",
    "Pod": "pods",
    "ResourceSlice": "resourceslices",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "DeviceClass": "deviceclasses",
    "ResourceQuota": "resourcequotas",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PriorityClass": "priorityclasses",
    "ResourceClass": "resourceclasses",
    "NodeResourceCapacity": "noderesourcecapacities",
    "NodeComputeResources": "nodecomputeresources",
}


def gathered(objects: Iterable[Fields]) -> Gathered:
    found: dict[Any, list[Object]] = {what: [] for what in RESOURCES}
    by_plural = {(what.group, what.plural): what for what in RESOURCES}
    for number, one in enumerate(objects):
        metadata = {"uid": f"uid-{one['kind']}-{one['metadata']['name']}", "resourceVersion": str(number + 1)}
        whole = {**one, "metadata": {**metadata, **one["metadata"]}}
        group = one["apiVersion"].rpartition("/")[0]
        found[by_plural[group, _BY_KIND[one["kind"]]]].append(Object(encode(whole)))
    return Gathered(found)


def cluster(*objects: Fields) -> Cluster:
    return Cluster(gathered(objects), Gates())


def hardware(name: str = "gpu", nodes: int = 2) -> list[Fields]:
    made = fleet(name, nodes)
    members = [one for member in made.members() for one in (member.node, *member.slices)]
    return [*members, *made.shared, *made.classes, *made.templates]


def ask(here: Cluster, *sentences: str, settings: Settings | None = None) -> Answer:
    def read(path: Path) -> list[manifests.Manifest]:
        return manifests.read(path, here.gates, SystemClock(), "default")

    changes = [parse(one, read, "default") for one in sentences]
    return what_if(here, changes, NOW, settings or Settings())


def pod(
    name: str, *, claim: str = "", template: str = "", node: str = "", owner: str = "", **spec: Any
) -> Fields:
    """`claim` is one of its own, or, with a `template`, the one that was made from it."""
    metadata: Fields = {"name": name, "namespace": "default", "labels": {"app": owner or name}}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    if owner == "daemon":
        metadata["ownerReferences"][0]["kind"] = "DaemonSet"
    status: Fields = {}
    if template:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
        if claim:
            status["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": claim}]
    elif claim:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    if node:
        spec["nodeName"] = node
        status["phase"] = "Running"
    container: Fields = {"name": "main", "image": "busybox", **spec.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
        "status": status,
    }


def claim(
    name: str,
    *,
    count: int = 1,
    devices: Iterable[str] = (),
    node: str = "",
    users: Iterable[str] = (),
    **exactly: Any,
) -> Fields:
    """With `devices` of a pool that is called as the `node`, it is allocated there, for these pods."""
    wanted = {"deviceClassName": "gpu.example.com", "count": count, **exactly}
    results = [
        {"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": device} for device in devices
    ]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}}
    reserved = [{"resource": "pods", "name": one, "uid": f"uid-Pod-{one}"} for one in users]
    status = {"allocation": allocation, "reservedFor": reserved} if results else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}},
        "status": status,
    }
