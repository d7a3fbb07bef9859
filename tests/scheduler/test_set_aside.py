"""MIRROR1: what cannot be read is set aside. It ends nothing, holds what it held, and is taken in again."""

import logging
from typing import Any

import pytest

from allot.allocation import DeviceId, PoolId, taken_by
from allot.api import meta, resource
from allot.informers import Added, Key, Updated
from allot.scheduler.mirror import BUDGETS, CLAIMS, CLASSES, NODES, PODS, SLICES, TAINT_RULES, News
from allot.scheduler.queue import Where

from .cluster import DRIVER, Cluster, claim_spec, slice_of, tell
from .test_intake import Ear, thing

ODD = "as much as there is"  # an amount that is none
KINDS = {
    "pods": (
        PODS,
        {"containers": [{"name": "m", "resources": {"requests": {"cpu": ODD}}}]},
        {"containers": [{"name": "m"}]},
    ),
    "classes": (CLASSES, {"selectors": "none"}, {"selectors": []}),
    "taint rules": (TAINT_RULES, {"taint": "bad"}, {"taint": {"key": "k", "effect": "NoSchedule"}}),
    "budgets": (BUDGETS, {"selector": "all"}, {"selector": {}}),
    "slices": (SLICES, {"driver": DRIVER, "devices": "many"}, slice_of("n", [{"name": "gpu-0"}])["spec"]),
    "claims": (CLAIMS, {"devices": "many"}, claim_spec()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_cannot_be_read_is_set_aside_until_it_changes(kind: str, caplog):
    what, odd, plain = KINDS[kind]
    ear = Ear()
    with caplog.at_level(logging.ERROR):
        ear.added(what, thing("x", 1, spec=odd))
        ear.updated(what, thing("x", 2, spec=odd))
    assert ear.intake.aside.counts() == {what.plural: 1}
    assert len([one for one in caplog.records if "set aside" in one.message]) == 1  # logged once
    ear.updated(what, thing("x", 3, spec=plain))
    assert not ear.intake.aside
    ear.updated(what, thing("x", 4, spec=odd))
    ear.deleted(what, thing("x", 4, spec=odd))
    assert not ear.intake.aside


def test_a_node_that_cannot_be_read_takes_nobody_until_it_can():
    ear = Ear()
    ear.added(NODES, thing("n", 1, namespace=""))
    ear.updated(NODES, thing("n", 2, namespace="", status={"allocatable": {"cpu": ODD}}))
    assert ear.snapshot.node("n") is None
    ear.updated(NODES, thing("n", 3, namespace="", status={"allocatable": {"cpu": "4"}}))
    assert ear.snapshot.node("n") is not None


def test_a_pod_that_cannot_be_read_any_more_is_not_tried_and_still_counted_where_it_is():
    ear = Ear()
    ear.added(NODES, thing("n", 1, namespace="", status={"allocatable": {"cpu": "4"}}))
    fits = {"containers": [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]}
    odd = {"containers": [{"name": "m", "resources": {"requests": {"cpu": ODD}}}]}
    ear.added(PODS, thing("waits", spec=fits))
    assert ear.queue.where("uid-of-waits") is Where.ACTIVE
    ear.updated(PODS, thing("waits", 2, spec=odd))
    assert ear.queue.where("uid-of-waits") is None
    ear.added(PODS, thing("there", spec={**fits, "nodeName": "n"}))
    ear.updated(PODS, thing("there", 2, spec={**odd, "nodeName": "n"}))
    node = ear.snapshot.node("n")
    assert node is not None and node.used["cpu"] == 1000
    ear.deleted(PODS, thing("there", 2, spec={**odd, "nodeName": "n"}))
    node = ear.snapshot.node("n")
    assert node is not None and node.used["cpu"] == 0


def result(device: str, **more: Any) -> dict[str, Any]:
    return {"request": "gpu", "driver": DRIVER, "pool": "p", "device": device, **more}


def status(*results: Any) -> dict[str, Any]:
    return {"allocation": {"devices": {"results": list(results)}}}


def held(ear: Ear) -> set[str]:
    return set(ear.snapshot.ledger.usage(PoolId(DRIVER, "p")))


def test_the_devices_of_a_claim_that_cannot_be_read_stay_held():
    """D1: what it names, as far as that can be made out, and what it held before."""
    ear = Ear()
    ear.added(CLAIMS, thing("c", 1, spec=claim_spec(), status=status(result("gpu-0"))))
    odd = status(result("gpu-1"), result("gpu-2", pool=7), "nothing", result("gpu-3", tolerations="all"))
    ear.updated(CLAIMS, thing("c", 2, spec=claim_spec(), status=odd))
    assert held(ear) == {"gpu-0", "gpu-1", "gpu-3"}
    assert ear.snapshot.claim(Key("default", "c")) is None
    ear.added(
        PODS,
        thing("user", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}], "containers": []}),
    )
    assert ear.told == [("user", 'resourceclaim "c" cannot be read')]
    ear.updated(CLAIMS, thing("c", 3, spec=claim_spec(), status=status(result("gpu-1"))))
    assert held(ear) == {"gpu-1"}
    assert ear.queue.where("uid-of-user") is Where.ACTIVE
    ear.updated(CLAIMS, thing("c", 5, spec=claim_spec(), status=odd))
    ear.updated(CLAIMS, thing("c", 4, spec=claim_spec()))  # an answer that was overtaken (SNAP4)
    assert held(ear) == {"gpu-1", "gpu-3"}
    ear.deleted(CLAIMS, thing("c", 5, spec=claim_spec(), status=odd))
    assert held(ear) == set()


@pytest.mark.parametrize("amount", [ODD, "", "-1", "1e99999"])
def test_a_share_of_which_nobody_can_tell_how_much_it_is_counts_as_the_whole_device(amount: str):
    written = {"devices": {"results": [result("nic", shareID="s", consumedCapacity={"bandwidth": amount})]}}
    (taken,) = taken_by(meta.view(resource.AllocationResult, written))
    assert (taken.device, taken.share) == (DeviceId(DRIVER, "p", "nic"), None)


def test_a_scheduler_that_cannot_read_a_claim_goes_on_with_the_others():
    """The amount came from a server that writes larger numbers than we can read."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 2)
        await here.device_class()
        await here.template()
        assert here.scheduler is not None
        odd = status(result("gpu-0", pool="a", consumedCapacity="a lot"))
        here.scheduler._put(News(CLAIMS, Added(thing("odd", 1, spec=claim_spec(), status=odd))))
        await here.pod("p", template="one")
        await here.bound("p")
        assert [name for names in (await here.held()).values() for name in names] == ["a/gpu-1"]
        shown = here.metrics.text()
        assert 'allot_scheduler_objects_set_aside{resource="resourceclaims"} 1' in shown

    tell(story)


def test_a_pod_that_cannot_be_read_says_so_in_an_event():
    async def story(here: Cluster) -> None:
        assert here.scheduler is not None
        made = await here.pod("p", schedulingGates=[{"name": "example.com/wait"}])
        odd = made.changed({"spec": {"containers": "many"}})
        here.scheduler._put(News(PODS, Updated(made, odd)))

        async def reported() -> bool:
            events = await here.client.resource("", "v1", "events").list("default")
            return any("cannot read this pod" in one.fields.get("message", "") for one in events.objects)

        await here.until(reported, "an event")

    tell(story)
