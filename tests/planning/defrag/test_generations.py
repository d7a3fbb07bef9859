"""Claims of every generation, when pods are moved: what goes along, and what keeps a pod where it is."""

from allot.api import Object, encode
from allot.planning.defrag import NoPlan, Plan, again, from_manifests, of_profile, plan
from allot.planning.manifests import Manifest
from allot.scheduler import PODS
from kep import compute

from ..clusters import Fields, ask, cluster
from .worlds import GPU, course, here, node, running, template, whole

ONE = template("one", GPU)
MODEL = {"model": "h100"}


def asks(name: str, count: int, on: str = "", owner: str = "") -> Fields:
    """A pod that wants so many of a class; on a node, it has been given them."""
    entry = {"computeResourceName": compute.named(MODEL), "count": count}
    container = compute.container(record={"fast": [entry]} if on else None, fast=count)
    container["resources"]["requests"] = container["resources"]["limits"]  # as the server would
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner,
        "uid": owner,
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            **({"ownerReferences": [reference]} if owner else {}),
        },
        "spec": {"containers": [container], **({"nodeName": on} if on else {})},
        "status": {"phase": "Running"} if on else {},
    }


def test_compute_resources_are_given_anew():
    """KEP-14: what the first pod was given on its node is no wish of the next one."""
    named = {"name": compute.named(MODEL)}  # as the server would
    nodes = [compute.node(name, {**compute.cr(MODEL, ids=name), **named}) for name in "ab"]
    pods = [asks("q", 1, on="a"), asks("p", 1, on="b", owner="web")]
    town = cluster(compute.class_("fast", ("model", "In", "h100")), *nodes, *pods)
    target = asks("big", 2)
    target["metadata"]["uid"] = "uid-Pod-big"
    found = plan(course(from_manifests(town, [Manifest(PODS, Object(encode(target)))])), 2)
    assert isinstance(found, Plan), found
    assert [(one.pod.key.name, one.node, one.to) for one in found.steps] == [("p", "b", "a")]
    first = found.steps[0].pod
    assert any(compute.named(MODEL) in name for name in first.requests)
    fresh = again(first, town.reading.snapshot).pod
    assert not any(compute.named(MODEL) in name for name in fresh.requests)


def test_a_drained_pod_may_be_given_other_compute_resources_elsewhere():
    """What-if took what the pod was given on its node for what it asks for: it waited for such a node."""
    old = {"model": "a100"}
    nodes = [
        compute.node(name, {**compute.cr(model, ids=name), "name": compute.named(model)})
        for name, model in (("a", old), ("b", MODEL))
    ]
    town = cluster(compute.class_("fast"), *nodes, asks("p", 2, on="b", owner="web"))
    answer = ask(town, "drain b")
    assert answer.placed == {"default/p": "a"} and not answer.waiting


def test_classic_claims_are_moved_by_nobody_but_their_driver():
    claim, user = running("p", "b", ["gpu-0"], ONE)
    claim["spec"] = {"resourceClassName": "cards", "allocationMode": "WaitForFirstConsumer"}
    claim["status"]["allocation"] = {"resourceHandle": "x", "shareable": False}
    claim["status"]["driverName"] = "cards.example.com"
    holder = running("r", "b", ["gpu-0"], ONE, owner="")
    q = running("q", "a", ["gpu-0"], ONE, priority=9)
    town = here(node("a"), whole("a", 2), node("b", cpu="2"), whole("b", 2), ONE, claim, user, *holder, *q)
    found = plan(course(of_profile(town, f"2x{GPU}", "default")), 2)
    assert isinstance(found, NoPlan)
    assert found.stays["default/p"] == "the driver of claim p-gpu would have to be asked"
