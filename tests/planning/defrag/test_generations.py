"""Claims of every generation, when pods are moved: what goes along, and what keeps a pod where it is."""

from allot.api import Object, encode
from allot.planning import Cluster as Town
from allot.planning import take
from allot.planning.defrag import NoPlan, Plan, again, from_manifests, of_profile, plan, waiting
from allot.planning.manifests import Manifest
from allot.scheduler import PODS
from kep import compute
from scheduler.cluster import NS, tell
from scheduler.cluster import Cluster as Live
from scheduler.cluster import pod as waiting_pod
from scheduler.numeric import Numeric

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


def test_numeric_claims_that_are_made_anew_move_with_their_pods():
    """KEP-4381: what they take of the counters of their node is free there, and taken where they go."""

    async def story(live: Live) -> None:
        numeric = await Numeric(live).furnish({"a": 4})
        await numeric.wanting("one", 1)
        await numeric.template("one", "one")
        alike = {"app": "web"}
        made = {"metadata": {"labels": alike}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
        owner = await live.client.resource("apps", "v1", "replicasets").create(
            {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": alike}, "template": made}}, NS
        )
        mover = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": owner.uid,
            "controller": True,
        }
        fields = waiting_pod("p", template="one")
        fields["metadata"]["ownerReferences"] = [mover]
        await live.create("pods", fields)
        assert await live.bound("p") == ["a"]
        await live.node("b")
        await numeric.publish("b", 2)
        await numeric.asks("big", 4)
        await numeric.waits("big", "needs 4")

        async def planned() -> Plan | NoPlan:
            town = Town((await take(live.client, live.gates)).gathered, live.gates)
            return plan(course(waiting(town, "big", NS)), 2)

        found = await planned()
        assert isinstance(found, Plan), found
        assert [(one.pod.key.name, one.node, one.to) for one in found.steps] == [("p", "a", "b")]
        assert found.places == {f"{NS}/big": "a"}

        await numeric.publish("b", 0)
        none = await planned()
        assert isinstance(none, NoPlan) and none.is_certain, "what it takes would be free nowhere else"

    tell(story)
