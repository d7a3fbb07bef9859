"""Nodes, classes and pods of KEP-14, for stories; and a cluster that knows what containers were given."""

from typing import Any

from allot.api import Object, compute, core, errors
from allot.scheduler.node import NodeInfo

from .cluster import Place, to_a_cluster
from .objects import NS

Fields = dict[str, Any]
RAW = "nvidia.com/gpu"
GROUP = compute.limits.GROUP

__all__ = [
    "NS",
    "RAW",
    "Place",
    "class_",
    "container",
    "cr",
    "drop_class",
    "given",
    "heard",
    "named",
    "node",
    "pod",
    "put",
    "to_a_cluster",
]


def cr(
    properties: dict[str, str], devices: int = 2, raw: str = RAW, healthy: int | None = None, ids: str = ""
) -> Fields:
    """A compute resource. Device ids follow from the properties, so they are different in each."""
    mark = ids or compute.property_hash(properties)[:4]
    all_ = [f"{mark}-{at}" for at in range(devices)]
    usable = all_ if healthy is None else all_[:healthy]
    return {"resourceName": raw, "properties": properties, "devices": all_, "allocatableDevices": usable}


def named(properties: dict[str, str], raw: str = RAW) -> str:
    return compute.compute_resource_name(raw, properties)


def class_(name: str, *expressions: tuple[str, ...], raw: str = RAW, **spec: Any) -> Fields:
    needs = [{"key": key, "operator": op, "values": values} for key, op, *values in expressions]
    selector = {"resourceSelector": [{"matchExpressions": needs}]} if needs else {}
    return {
        "apiVersion": compute.limits.API_VERSION,
        "kind": "ResourceClass",
        "metadata": {"name": name},
        "spec": {**({"resourceName": raw} if raw else {}), **selector, **spec},
    }


def node(name: str, *resources: Fields, **amounts: str) -> Fields:
    have = {"cpu": "8", "memory": "32Gi", "pods": "110", **amounts}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"capacity": have, "allocatable": have, "conditions": ready, "computeResources": list(resources)}
    labels = {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


def container(name: str = "c", record: Fields | None = None, always: bool = False, **limits: Any) -> Fields:
    made: Fields = {
        "name": name,
        "image": "i",
        "resources": {"limits": {k: str(v) for k, v in limits.items()}},
    }
    if record is not None:
        made["allocatedComputeResources"] = record
    return {**made, "restartPolicy": "Always"} if always else made


def pod(name: str, limits: Fields | None = None, *containers: Fields, init: Any = (), **spec: Any) -> Fields:
    own = [container(**(limits or {}))] if limits is not None else []
    said = {"containers": [*own, *containers], "restartPolicy": "Never", **spec}
    if init:
        said["initContainers"] = list(init)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NS}, "spec": said}


def given(bound: Object, container: str = "c") -> dict[str, dict[str, int]]:
    """By name asked for, the devices of each compute resource."""
    view = bound.view(core.Pod)
    every = {one.name: one for one in (*view.spec.init_containers, *view.spec.containers)}
    record = every[container].allocated_compute_resources
    return {
        name: {one.compute_resource_name: one.count for one in entries} for name, entries in record.items()
    }


async def put(here: Place, *objects: Fields) -> None:
    """Objects of any kind; a class that is there already is replaced."""
    classes = here.client.of(compute.RESOURCE_CLASS)
    for one in objects:
        if one["kind"] != "ResourceClass":
            await here.put(one)
            continue
        try:
            await classes.create(one)
        except errors.AlreadyExists:
            known = await classes.get(one["metadata"]["name"])
            await classes.update(known.changed({"spec": None}).changed({"spec": one["spec"]}))


async def drop_class(here: Place, name: str) -> None:
    await here.client.of(compute.RESOURCE_CLASS).delete(name)


async def heard(here: Place) -> None:
    """Until the scheduler knows every class and node as the server does."""

    async def known() -> bool:
        assert here.scheduler is not None
        snapshot = here.scheduler.snapshot
        there = (await here.client.of(compute.RESOURCE_CLASS).list()).objects
        nodes = await here.all("nodes")
        return {n: v.metadata.resource_version for n, v in snapshot.compute.classes.items()} == {
            one.name: one.metadata.resource_version for one in there
        } and all(
            (info := snapshot.node(one.name)) is not None and info.like(NodeInfo.of(one)) for one in nodes
        )

    await here.until(known, "the scheduler has heard of all classes and nodes")
