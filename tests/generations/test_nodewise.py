"""A node goes from a device plugin to a DRA driver: what is due, stage by stage."""

import json
from typing import Any

import pytest

from allot.generations.nodewise import MOVING, Around, Due, due, next_one

GPU = "example.com/gpu"
CLASS = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
SLICE = {"spec": {"driver": "dra.vendor.com", "devices": [{"name": "a"}]}}
TWICE = {"type": "DevicesAdvertisedTwice", "status": "True", "message": "device a is device b"}


def node(capacity: str = "2", closed: str = "", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n", "annotations": {MOVING: closed} if closed else {}},
        "spec": {"unschedulable": True} if closed else {},
        "status": {"capacity": {"cpu": "4", GPU: capacity}, **status},
    }


def pod(name: str = "p", count: str = "1", phase: str = "Running", claim: bool = False) -> dict[str, Any]:
    mappings = [{"containerName": "main", "resourceName": GPU, "requestName": "r"}] if claim else []
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {GPU: count}}}]},
        "status": {"phase": phase, "extendedResourceClaimStatus": {"requestMappings": mappings}},
    }


def around(node: Any, *pods: Any, slices: Any = (), classes: Any = (CLASS,)) -> Around:
    return Around(node, pods, slices, classes)


P = pod()


@pytest.mark.parametrize(
    ("is_so", "then"),
    [
        (around(node(), P), Due(close=True, evict=(P,))),
        (around(node(closed=GPU), P), Due(evict=(P,))),
        (around(node(closed=GPU)), Due(waits_for=f"stop the device plugin of {GPU} on node n")),
        (
            around(node("0", closed=GPU)),
            Due(waits_for="start the driver on node n: nothing is published there"),
        ),
        (around(node("0", closed=GPU), slices=(SLICE,)), Due(open=True, done=True)),
        (around(node("0"), slices=(SLICE,)), Due(done=True)),
        (around(node("0"), pod(claim=True), slices=(SLICE,)), Due(done=True)),
        (
            around(node(closed=GPU), pod(phase="Succeeded"), pod(count="0")),
            Due(waits_for=f"stop the device plugin of {GPU} on node n"),
        ),
        (
            around(node("0", closed=GPU, computeResources=[{"resourceName": GPU, "devices": ["a"]}])),
            Due(waits_for=f"stop the device plugin of {GPU} on node n"),
        ),
    ],
)
def test_what_is_due(is_so, then):
    """NODEWISE2: read from the cluster each time, so it may be interrupted anywhere."""
    assert due(GPU, is_so) == then


def test_a_node_that_somebody_else_closed_stays_closed():
    closed = node("0")
    closed["spec"] = {"unschedulable": True}
    assert due(GPU, around(closed, slices=(SLICE,))) == Due(done=True)


@pytest.mark.parametrize(
    ("is_so", "why"),
    [
        (around(node(), P, classes=()), "no DeviceClass has extendedResourceName"),
        (around(node(conditions=[TWICE]), P), "device a is device b"),
        (
            around(node(), P, slices=({"spec": {"driver": "gpu.example.com", "devices": [{"name": "a"}]}},)),
            "driver gpu.example.com publishes devices while a device plugin still has some",
        ),
    ],
)
def test_what_would_advertise_a_device_twice_is_refused(is_so, why):
    """14-RAW-07, 14-MIX-02, NODEWISE1"""
    found = due(GPU, is_so)
    assert why in found.refused
    assert not found.evict


def by_class(class_name: str = "gpu-gold", annotated: bool = False) -> dict[str, Any]:
    """A pod that asks by a class, and was given a device of the plugin."""
    record = {class_name: [{"computeResourceName": f"{GPU}-0123456789abcdef", "count": 1}]}
    container = {"name": "main", "resources": {"limits": {class_name: "1"}, "requests": {class_name: "1"}}}
    metadata: dict[str, Any] = {"name": "p", "namespace": "default"}
    if annotated:
        metadata["annotations"] = {"compute.allot.dev/allocated": json.dumps({"main": record})}
    else:
        container["allocatedComputeResources"] = record
    return {"metadata": metadata, "spec": {"containers": [container]}, "status": {"phase": "Running"}}


@pytest.mark.parametrize("annotated", [False, True])
def test_who_has_devices_by_a_class_goes_too_if_a_claim_serves_the_class(annotated):
    """NODEWISE2, NODEWISE3, 14-MIX-04: the plugin is not stopped under a pod that has a device of it."""
    exported = [{"resourceName": GPU, "devices": ["a"]}]
    one = by_class(annotated=annotated)
    bridge = {"metadata": {"name": "gpu-gold"}, "spec": {"resourceName": GPU, "deviceClassName": "gpu"}}
    place = node("0", closed=GPU, computeResources=exported)
    found = due(GPU, Around(place, (one,), (), (CLASS,), (bridge,)))
    assert found == Due(evict=(one,))
    alone = {**bridge, "spec": {"resourceName": GPU}}
    found = due(GPU, Around(place, (one,), (), (CLASS,), (alone,)))
    assert found.refused == (
        "pod default/p asks for gpu-gold, and class gpu-gold names no deviceClassName: "
        "no claim would serve it next"
    )


def test_who_evicts_a_pod_is_told_whether_another_one_comes():
    """A pod on its own is gone for good."""
    owner = {"kind": "ReplicaSet", "name": "r", "uid": "u"}
    made = pod()
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    assert next_one(made) == "a claim serves the next one"
    made["metadata"]["ownerReferences"] = [owner]
    assert next_one(made) == next_one(P) == "and nobody makes it anew: create it again yourself"
