"""Pods and their devices, end to end: what a person sees."""

import asyncio

from allot.scheduler.loop import NEWS_AT_ONCE
from allot.scheduler.plugins.devices.telling import EXAMPLES_MAX

from .cluster import NS, Cluster, tell


def test_a_pod_with_a_template_gets_a_claim_a_device_and_a_node():
    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 2)
        await here.device_class()
        await here.template()
        await here.pod("web", template="one")

        assert await here.bound("web") == ["a"]
        (claim,) = await here.all("resourceclaims")
        assert len((await here.held())[claim.name]) == 1
        assert claim.metadata.finalizers == ["resource.kubernetes.io/delete-protection"]
        assert [one["name"] for one in claim.fields["status"]["reservedFor"]] == ["web"]

    tell(story)


def test_a_pod_for_which_no_device_is_left_is_told_so_and_placed_when_one_is_given_back():
    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 1)
        await here.device_class()
        await here.template()
        await here.pod("first", template="one")
        await here.bound("first")
        await here.pod("second", template="one")

        told = await here.condition("second")
        assert told["reason"] == "Unschedulable"
        assert "0/1 nodes are available: 1 cannot allocate all claims." in told["message"]
        assert "request gpu wants 1, and of 1 device 1 in use" in told["message"]

        await here.resource("pods").delete("first", NS, grace_period_s=0)
        assert await here.bound("second") == ["a"]

    tell(story)


def test_pods_that_share_a_claim_go_where_its_devices_are():
    async def story(here: Cluster) -> None:
        for name in "abc":
            await here.node(name)
            await here.devices(name, 1)
        await here.device_class()
        await here.claim("shared")
        for number in range(5):
            await here.pod(f"user-{number}", claim="shared")

        nodes = await here.bound(*(f"user-{number}" for number in range(5)))
        assert len(set(nodes)) == 1
        claim = await here.get("resourceclaims", "shared")
        assert claim is not None
        assert len(claim.fields["status"]["reservedFor"]) == 5

    tell(story)


def test_a_pod_waits_for_its_claim_to_be_made_and_is_told_when_that_lasts():
    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 1)
        await here.device_class()
        await here.pod("early", claim="later")

        told = await here.condition("early")
        assert told["message"] == 'resourceclaim "later" not found'
        await here.claim("later")
        assert await here.bound("early") == ["a"]

    tell(story)


def test_an_unmodified_pod_with_an_extended_resource_lands_on_devices():
    """KEP-5004 in one pod."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 2)
        await here.device_class(extendedResourceName="example.com/gpu")
        await here.pod("web", requests={"example.com/gpu": "2"})

        assert await here.bound("web") == ["a"]
        found = await here.get("pods", "web")
        assert found is not None
        status = found.fields["status"]["extendedResourceClaimStatus"]
        assert sorted((await here.held())[status["resourceClaimName"]]) == ["a/gpu-0", "a/gpu-1"]

        await here.resource("pods").delete("web", NS, grace_period_s=0)
        await here.until(lambda: _none_left(here), "the claim goes with its pod")

    tell(story)


def test_who_asked_for_an_extended_resource_is_told_of_it_by_that_name():
    """Neither the claim nor the names of its requests were ever written by anybody."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 1)
        await here.device_class(extendedResourceName="example.com/gpu")
        await here.pod("web", requests={"example.com/gpu": "2"})
        assert (await here.condition("web"))["message"] == (
            "0/1 nodes are available: 1 cannot allocate all claims. Devices on the node looked at: "
            "request example.com/gpu of container main wants 2, and of 1 device 1 free."
        )

    tell(story)


async def _none_left(here: Cluster) -> bool:
    return not await here.all("resourceclaims")


def test_pods_that_no_node_can_hold_are_told_by_how_many_and_why():
    async def story(here: Cluster) -> None:
        await here.node("small", cpu="1")
        await here.node("tainted", taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
        await here.pod("big", requests={"cpu": "2"})

        told = await here.condition("big")
        assert told["message"] == (
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s) {team}."
        )

    tell(story)


def test_a_pod_that_wants_more_devices_than_a_claim_holds_is_told_after_the_count_of_nodes():
    """A number of nodes comes before the reason, and used to run into the pod's own: "2 the pod needs 33"."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.node("b")
        await here.device_class(extendedResourceName="example.com/gpu")
        await here.pod("greedy", requests={"example.com/gpu": "33"})
        told = await here.condition("greedy")
        assert told["message"] == (
            "0/2 nodes are available: "
            "2 node(s) cannot serve 33 of example.com/gpu by devices: one claim holds 32 at most."
        )

    tell(story)


def test_what_is_wrong_with_a_claim_is_not_said_in_the_name_of_another_pods():
    """Pods of one template share what is worked out for the first of them, but not its claims' names."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.template(device_class="missing")
        for name in ("first", "second"):
            await here.pod(name, template="one")
        for name in ("first", "second"):
            told = await here.condition(name)
            assert (
                "a claim of the pod, request gpu: could not retrieve device class missing" in told["message"]
            )

    tell(story)


def test_the_selector_that_kept_the_nearest_devices_away_is_named_with_the_best_that_was_seen():
    """What users of selectors ask for most: which part, and how far off."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 2, attributes={"memory": {"int": 40}})
        await here.node("b")
        await here.devices("b", 3, driver="nic.example.com")
        await here.device_class()
        large = {"cel": {"expression": 'device.attributes["gpu.example.com"].memory >= 80'}}
        await here.template("large", selectors=[large])
        await here.pod("p", template="large")
        assert (await here.condition("p"))["message"] == (
            "0/2 nodes are available: 2 cannot allocate all claims. Devices on the 2 nodes looked at: "
            "request gpu wants 1, and of 5 devices 5 not selected (the nearest 2 by "
            '`device.attributes["gpu.example.com"].memory >= 80`: memory is 40).'
        )

    tell(story)


def test_among_many_nodes_without_devices_the_one_that_has_some_is_looked_at():
    """By name it comes last, behind more nodes than are looked at."""

    async def story(here: Cluster) -> None:
        for number in range(EXAMPLES_MAX + 3):
            await here.node(f"plain-{number:02}")
        await here.node("zz-gpu")
        await here.devices("zz-gpu", 1)
        await here.device_class()
        await here.template()
        await here.pod("first", template="one")
        await here.bound("first")
        await here.pod("second", template="one")
        assert (await here.condition("second"))["message"] == (
            "0/36 nodes are available: 36 cannot allocate all claims. Devices on the 2 nodes looked at: "
            "request gpu wants 1, and of 1 device 1 in use."
        )

    tell(story)


def test_a_pod_with_scheduling_gates_is_the_servers_to_tell():
    """kubectl shows SchedulingGated; the scheduler has nothing to add."""

    async def story(here: Cluster) -> None:
        await here.pod("p", schedulingGates=[{"name": "example.com/wait"}])
        await asyncio.sleep(2.5)  # longer than a gate that opens in a moment is waited for
        condition = await here.condition("p")
        assert condition["reason"] == "SchedulingGated"

    tell(story)


def test_a_scheduler_says_that_it_leads_once_it_knows_all_that_is_there():
    """More nodes than it takes in at one go: who waits for it does not wait for its start as well."""

    async def story(here: Cluster) -> None:
        for number in range(NEWS_AT_ONCE + 20):
            await here.node(f"n{number}")
        known: list[int] = []
        here.leading = lambda: known.append(len(list(here.scheduler.snapshot.nodes())))
        await here.start_scheduler()

        async def leads() -> bool:
            return bool(known)

        await here.until(leads, "the scheduler to lead")
        assert known == [NEWS_AT_ONCE + 20]

    tell(story, started=False)
