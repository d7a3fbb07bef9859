"""The tree behind the one line of a condition: pods that wait, run, have ended, and claims."""

import json

import pytest

from allot.api import Gates
from allot.base import SystemClock
from allot.informers import Key
from allot.scheduler import Why, names_of, read, why_claim, why_pod
from allot.scheduler.plugins.devices.telling import EXPLAINED_MAX

from .cluster import NS, Cluster, claim_spec, slice_of, tell
from .test_preemption import is_waiting, leave, priorities


async def why(here: Cluster, name: str) -> Why:
    reading = await read(here.client, here.gates)
    key = Key(NS, name)
    named = names_of(reading.snapshot, NS)
    found = why_pod(reading.pods[key], reading, SystemClock().now(), named, here.settings)
    assert json.loads(json.dumps(found.as_json()))["verdict"] == found.verdict
    return found


async def why_of_claim(here: Cluster, name: str) -> Why:
    reading = await read(here.client, here.gates)
    claim = reading.snapshot.claim(Key(NS, name))
    assert claim is not None
    return why_claim(claim, reading)


async def furnish(here: Cluster) -> None:
    for name in "ab":
        await here.node(name)
        await here.devices(name, 1, attributes={"memory": {"int": 40}})
    await here.node("plain")
    await here.device_class(extendedResourceName="example.com/gpu")
    await here.template()


def test_the_condition_and_the_answer_say_the_same_of_devices():
    """One wants more than any node has, one wants what cannot be had together."""

    async def story(here: Cluster) -> None:
        for name, count in (("a", 3), ("b", 2)):
            await here.node(name)
            roots = [{"pcieRoot": {"string": f"p{at}"}} for at in range(count)]
            devices = [{"name": f"gpu-{at}", "attributes": one} for at, one in enumerate(roots)]
            await here.create("resourceslices", slice_of(name, devices))
        await here.device_class(extendedResourceName="example.com/gpu")
        rule = {"matchAttribute": "gpu.example.com/pcieRoot"}
        (request,) = claim_spec(2)["devices"]["requests"]
        spec = {"devices": {"requests": [request], "constraints": [rule]}}
        await here.create("resourceclaims", {"metadata": {"name": "c"}, "spec": spec})
        await here.pod("many", requests={"example.com/gpu": "4"})
        await here.pod("near", claim="c")
        for name, words in (
            ("many", "wants 4, and of 5 devices at most 3 free on one node (5 in all)."),
            ("near", "2 devices with one value of gpu.example.com/pcieRoot are needed"),
        ):
            told, message = await why(here, name), (await here.condition(name))["message"]
            assert words in told.devices
            assert message.endswith(told.devices)
            assert told.devices in told.text()

    tell(story)


# -- pods that wait -----------------------------------------------------------------------------------


def test_a_pod_that_fits_nowhere_is_told_why_by_groups_of_nodes():
    async def story(here: Cluster) -> None:
        await furnish(here)
        large = {"cel": {"expression": 'device.attributes["gpu.example.com"].memory >= 80'}}
        await here.template("large", selectors=[large])
        await here.pod("p", template="large", nodeSelector={"zone": "x"})
        await here.pod("q", template="large")
        await here.condition("q")
        assert (await why(here, "p")).text().splitlines()[0] == "pod default/p: none of 3 nodes takes it"
        told = await why(here, "q")
        assert told.verdict == "none of 3 nodes takes it"
        by_nodes = {one.nodes: one for one in told.nodes}
        assert set(by_nodes) == {("a", "b"), ("plain",)}
        assert "memory is 40" in told.text()
        assert "none is offered to this node" in told.text()

    tell(story)


def test_the_node_with_devices_is_explained_however_many_have_none():
    """By name it comes last, behind more nodes than are explained."""

    async def story(here: Cluster) -> None:
        for number in range(EXPLAINED_MAX + 3):
            await here.node(f"plain-{number:02}")
        await here.node("zz-gpu")
        await here.devices("zz-gpu", 1)
        await here.device_class()
        for name in ("first", "second"):
            await here.claim(f"of-{name}")
            await here.pod(name, claim=f"of-{name}")
            await (here.bound(name) if name == "first" else here.condition(name))
        told = await why(here, "second")
        assert [one.nodes[0] for one in told.nodes] == ["zz-gpu", "plain-00"]
        assert "1 in use by of-first" in told.text()
        assert len(told.nodes[1].nodes) == EXPLAINED_MAX + 3
        assert "none is offered to this node" in told.text()

    tell(story)


def test_who_holds_the_devices_is_said_by_name():
    async def story(here: Cluster) -> None:
        await furnish(here)
        for name in ("x", "y"):
            await here.claim(f"of-{name}")
            await here.pod(name, claim=f"of-{name}")
        await here.bound("x", "y")
        await here.pod("late", template="one")
        await here.condition("late")
        text = (await why(here, "late")).text()
        assert "in use by of-x" in text or "in use by of-y" in text
        assert "a, b: cannot allocate all claims" in text  # the same, with other holders

    tell(story)


def test_a_pod_that_would_fit_is_told_where():
    """Nobody has looked at it yet."""

    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.claim("c")
        await here.pod("p", claim="c")
        told = await why(here, "p")
        assert told.verdict == "2 of 3 nodes would take it now"
        assert [one.nodes for one in told.nodes if not one.reason] == [("a", "b")]
        assert told.claims == ("claim c: no devices yet",)

    tell(story, started=False)


def test_a_pod_of_another_scheduler_says_whose_it_is():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("p", schedulerName="theirs")
        assert "it is for the scheduler theirs" in (await why(here, "p")).text()

    tell(story, started=False)


def test_a_gated_pod_says_what_it_waits_for():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("gate", schedulingGates=[{"name": "example.com/wait"}])
        await here.pod("claim", claim="missing")
        await here.pod("template", template="missing")
        assert "example.com/wait" in (await why(here, "gate")).verdict
        assert 'resourceclaim "missing" not found' in (await why(here, "claim")).verdict
        assert 'from its template "missing"' in (await why(here, "template")).verdict

    tell(story, started=False)


def test_a_pod_that_wants_more_extended_resources_than_there_are_is_told_what_would_do():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("p", requests={"example.com/gpu": "2"})
        text = (await why(here, "p")).text()
        request = "claim for extended resources, request example.com/gpu of container main"
        assert f"{request} wants 2 of 1 device: 1 free" in text
        assert f"it would fit with 1 instead of 2 for {request}" in text

    tell(story, started=False)


@pytest.mark.parametrize("asks", [{"requests": {"example.com/gpu": "1"}}, {"claim": "mine"}])
def test_only_who_writes_a_claim_is_advised_to_tolerate_a_taint(asks):
    """An extended resource has no place for a toleration, and its claim is written by the scheduler."""

    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.claim("mine")
        taint = {"key": "example.com/bad", "value": "x", "effect": "NoExecute"}
        rule = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint}
        await here.create("devicetaintrules", {"metadata": {"name": "bad"}, "spec": rule})
        await here.pod("p", **asks)
        text = (await why(here, "p")).text()
        assert "1 tainted (example.com/bad=x:NoExecute)" in text
        advice = "it would fit if claim default/mine, request gpu tolerated example.com/bad=x:NoExecute"
        assert (advice in text) == ("claim" in asks)
        assert ("it would fit" in text) == ("claim" in asks)

    tell(story, started=False)


def test_a_pod_with_both_is_advised_about_its_own_claim_alone():
    """That its extended resource comes after it does not keep it from being changed."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        nic = {"name": "nic", "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
        await here.create("resourceslices", slice_of("a", [nic], driver="nic.example.com"))
        await here.devices("a", 1)
        await here.device_class(extendedResourceName="example.com/gpu")
        await here.device_class("nic", driver="nic.example.com")
        await here.claim("mine", device_class="nic")
        await here.pod("p", claim="mine", requests={"example.com/gpu": "1"})
        text = (await why(here, "p")).text()
        assert text.endswith("it would fit if claim default/mine, request gpu tolerated k=v:NoSchedule")

    tell(story, started=False)


def test_of_two_extended_resources_the_one_that_is_short_is_told():
    """Their names begin alike, and are not alternatives of one request."""

    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.device_class("nic", driver="nic.example.com", extendedResourceName="example.com/nic")
        await here.pod("p", requests={"example.com/gpu": "1", "example.com/nic": "1"})
        text = (await why(here, "p")).text()
        assert "request example.com/nic of container main wants 1 of 1 device: 1 not selected" in text
        assert "request example.com/gpu of container main wants 1 of 1 device" not in text

    tell(story, started=False)


def test_a_name_that_nobody_serves_is_pointed_out():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("p", requests={"example.com/gpux": "1"})
        told = await why(here, "p")
        assert told.notes == ("no node offers example.com/gpux and no DeviceClass serves it",)

    tell(story, started=False)


def test_a_pod_whose_claim_has_its_devices_is_told_which_nodes_are_left():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.claim("shared")
        await here.pod("first", claim="shared")
        (node,) = await here.bound("first")
        other = "ab".replace(node, "")
        await here.pod("second", claim="shared", nodeSelector={"kubernetes.io/hostname": other})
        await here.condition("second")
        told = await why(here, "second")
        assert told.verdict == "none of 3 nodes takes it"
        assert told.notes == (f"its claims or its spec leave {node} only",)

    tell(story)


def test_a_pod_that_is_for_another_node_than_its_claim_is_told_that_none_is_left():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.claim("shared")
        await here.pod("first", claim="shared")
        await here.bound("first")
        plain = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["plain"]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [plain]}}
        await here.pod("second", claim="shared", affinity={"nodeAffinity": required})
        await here.condition("second")
        assert (await why(here, "second")).notes == ("its claims or its spec leave no node",)

    tell(story)


def test_a_pod_for_which_room_is_being_made_says_where_and_for_whom_it_waits():
    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 1)
        await here.node("plain")
        await here.device_class()
        await here.template()
        await priorities(here)
        await here.pod("batch", template="one", priorityClassName="low")
        await here.bound("batch")
        await here.pod("urgent", template="one", priorityClassName="high")
        await is_waiting(here, "urgent")

        async def is_going() -> bool:
            batch = await here.get("pods", "batch")
            return batch is not None and bool(batch.metadata.deletion_timestamp)

        await here.until(is_going, "batch is being deleted")
        told = await why(here, "urgent")
        assert told.verdict == (
            "room is being made on a: waits for batch (being deleted) to end; "
            "until then none of 2 nodes takes it"
        )
        await leave(here, "batch")
        await here.bound("urgent")

    tell(story)


# -- pods that do not wait ------------------------------------------------------------------------------


def test_a_pod_that_runs_says_where_and_with_what_each_claim_once():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("p", requests={"example.com/gpu": "1"})
        (node,) = await here.bound("p")
        told = await why(here, "p")
        assert told.verdict == f"on node {node}"
        (line,) = told.claims
        assert line.endswith(f": example.com/gpu of container main = gpu.example.com/{node}/gpu-0")

    tell(story)


def test_a_pod_that_has_ended_or_whose_node_is_gone_is_still_known():
    async def story(here: Cluster) -> None:
        await furnish(here)
        for name in ("ended", "orphan"):
            await here.pod(name, nodeName="plain" if name == "ended" else "gone")
        ended = {"status": {"phase": "Succeeded"}}
        await here.resource("pods").patch("ended", ended, NS, subresource="status")
        assert (await why(here, "ended")).verdict == "has ended (Succeeded), on node plain"
        assert (await why(here, "orphan")).verdict == "on node gone, which is not there"

    tell(story, started=False)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"reason": "OutOfexample.com/gpu", "message": "no room"}, ": OutOfexample.com/gpu: no room"),
        ({"reason": "Evicted"}, ": Evicted"),
        ({"message": "no room"}, ": no room"),
        ({}, ""),
    ],
)
def test_a_pod_that_failed_says_what_is_known_of_why(status, says):
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("p", nodeName="plain")
        failed = {"status": {"phase": "Failed", **status}}
        await here.resource("pods").patch("p", failed, NS, subresource="status")
        assert (await why(here, "p")).verdict == f"has ended (Failed), on node plain{says}"

    tell(story, started=False)


def test_a_pod_that_was_bound_by_hand_is_told_that_nobody_allocates_for_it():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.claim("c")
        for name in ("p", "ended"):
            await here.pod(name, claim="c", nodeName="a")
        await here.resource("pods").patch("ended", {"status": {"phase": "Failed"}}, NS, subresource="status")
        told = await why(here, "p")
        assert told.text().splitlines() == [
            "pod default/p: on node a",
            "  claim c: no devices yet",
            "  note: nobody allocates for a pod that was given its node without a scheduler",
        ]
        assert (await why(here, "ended")).notes == ()

    tell(story, started=False)


# -- claims -------------------------------------------------------------------------------------------


def test_a_claim_says_who_uses_it_or_who_waits_with_it():
    async def story(here: Cluster) -> None:
        await furnish(here)
        for name in ("used", "wide", "idle"):
            await here.claim(name, count=9 if name == "wide" else 1)
        await here.pod("p", claim="used")
        await here.pod("q", claim="wide")
        await here.bound("p")
        assert (await why_of_claim(here, "used")).verdict == "has its devices, used by p"
        wide = await why_of_claim(here, "wide")
        assert wide.verdict == "has no devices yet; it waits with q"
        assert wide.notes == ("`allot explain pod/q` says why",)
        assert "none waits" in (await why_of_claim(here, "idle")).verdict

    tell(story)


def test_a_claim_of_pods_that_were_bound_by_hand_says_who_waits_in_vain():
    """Until one comes that a scheduler is to place."""

    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.claim("c")
        nobody = "nobody allocates for a pod that was given its node without a scheduler"
        await here.pod("p", claim="c", nodeName="a")
        alone = await why_of_claim(here, "c")
        assert alone.verdict == f"has no devices: pod p on node a waits for it, and {nobody}"
        await here.pod("q", claim="c", nodeName="b")
        both = await why_of_claim(here, "c")
        assert both.verdict == f"has no devices: pods p on node a, q on node b wait for it, and {nobody}"
        await here.pod("late", claim="c")
        assert (await why_of_claim(here, "c")).verdict == "has no devices yet; it waits with late"

    tell(story, started=False)


def test_a_claim_does_not_wait_with_a_pod_that_has_ended():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.claim("c")
        await here.pod("p", claim="c", nodeName="a")
        await here.resource("pods").patch("p", {"status": {"phase": "Failed"}}, NS, subresource="status")
        assert "none waits" in (await why_of_claim(here, "c")).verdict

    tell(story, started=False)


def test_without_the_gate_no_class_serves_extended_resources():
    async def story(here: Cluster) -> None:
        await furnish(here)
        await here.pod("p", requests={"example.com/gpu": "1"})
        assert "no DeviceClass serves it" in (await why(here, "p")).text()

    tell(story, started=False, gates=Gates({"DRAExtendedResource": False}))
