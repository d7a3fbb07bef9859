"""Pods with classic claims that are not placed after all: what they leave, and what they are told."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest

from allot.api import errors

from .classic import API_VERSION, DRIVER
from .classic_driver import Driver
from .cluster import NS, pod
from .test_classic import SHORT, Classic, both_ways, story_of
from .wire import Wire

OTHER = "nic.example.com"


@asynccontextmanager
async def other_driver(world: Classic, **devices: int) -> Any:
    """A second driver with a class of its own, `nic`."""
    driver = Driver(world.here.client, devices, OTHER)
    await world.resource_class("nic", OTHER)
    task = asyncio.ensure_future(driver.run())
    try:
        yield driver
    finally:
        task.cancel()


async def allocate(world: Classic, driver: Driver, name: str, node: str, user: str) -> None:
    """As the driver left it that was asked by an earlier scheduler."""
    found = await world.here.get("pods", user)
    await driver._allocate(await world.claims.get(name, NS), node, found)


async def until_left(world: Classic, name: str) -> None:
    async def is_free() -> bool:
        return not await world.users(name)

    await world.here.until(is_free, f"claim {name} reserved for nobody")


# -- what they leave ------------------------------------------------------------------------------


@both_ways
def test_what_one_driver_reserved_is_left_when_the_other_does_not_answer(transactions: bool):
    """TALK6, 3063-UNRSV-01, 3063-UNRSV-03: the reservation goes, the allocation stays."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        async with other_driver(world, a=1) as other:
            other.allocates = False
            await world.claim("c")
            await world.claim("d", resource_class="nic")
            await world.pod("web", "c", "d")
            await world.said("web", f"driver {OTHER} has not answered for claim d")
            assert await world.users("c") == []
            assert (await world.status("c"))["allocation"]
            assert driver.deallocations == 0

    story_of(story, settings=SHORT, transactions=transactions)


@both_ways
def test_what_was_reserved_before_this_scheduler_came_is_left_too(transactions: bool):
    """3063-UNRSV-01: the driver reserved it for a scheduler that is gone; another pod waits for the claim."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.resource_class("nic", OTHER)
        await world.claim("c")
        await world.claim("d", resource_class="nic")
        await world.pod("web", "c", "d")
        await allocate(world, driver, "c", "a", "web")
        await world.here.start_controllers()
        await world.here.start_scheduler(SHORT)
        await world.said("web", f"driver {OTHER} has not answered for claim d")
        assert await world.users("c") == []
        await world.pod("next", "c")
        await world.here.bound("next")

    story_of(story, runs=False, started=False, transactions=transactions)


@both_ways
def test_a_claim_that_is_being_deleted_is_left_by_the_pod_that_waits_for_it(transactions: bool):
    """Its driver reserved it for a scheduler that is gone, and takes it back when nobody has it any more."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.resource_class("nic", OTHER)
        await world.claim("c")
        await world.claim("d", resource_class="nic")
        await world.pod("web", "c", "d")
        await allocate(world, driver, "c", "a", "web")
        await world.claims.delete("c", NS)
        assert await world.users("c") == ["web"]
        await world.here.start_controllers()
        await world.here.start_scheduler(SHORT)

        async def is_gone() -> bool:
            return await world.here.get("resourceclaims", "c") is None

        await world.here.until(is_gone, "the deleted claim gone")
        assert driver.deallocations == 1

    story_of(story, started=False, transactions=transactions)


def test_what_is_reserved_is_left_when_the_binding_is_refused():
    """3063-UNRSV-01: also after a failed bind, whoever had listed the pod."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c")
        await allocate(world, driver, "c", "a", "web")
        await world.here.start_controllers()
        wire = Wire.to(world.here)
        wire.refuse_all("pods/web/binding", errors.Forbidden("a policy says no"))
        await world.here.start_scheduler(transport=wire)
        await world.said("web", "a policy says no")
        assert await world.users("c") == []
        wire.refuse_all("pods/web/binding", None)
        await world.here.bound("web")
        assert await world.users("c") == ["web"]

    story_of(story, runs=False, started=False, transactions=False)


def test_what_is_reserved_is_left_while_a_rival_has_the_other_claim():
    """3063-UNRSV-02, P2: an earlier scheduler got one claim each for two pods that need both."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        await world.claim("d")
        await world.pod("web", "c", "d")
        await world.here.create("pods", pod("rival", schedulerName="nobody"))
        await allocate(world, driver, "c", "a", "web")
        await allocate(world, driver, "d", "a", "rival")
        await world.here.start_controllers()
        await world.here.start_scheduler()
        await until_left(world, "c")
        assert await world.users("d") == ["rival"]
        await world.here.resource("pods").delete("rival", NS, grace_period_s=0)
        await world.here.bound("web")
        assert (await world.users("c"), await world.users("d")) == (["web"], ["web"])

    story_of(story, started=False)


def test_what_is_reserved_and_not_to_be_moved_is_left_by_a_pod_that_has_no_place():
    """3063-UNRSV-01: an immediate claim stays where it is, and its node is full."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c", "Immediate")
        await world.pod("web", "c", requests={"cpu": "8"})
        await allocate(world, driver, "c", "a", "web")
        await world.here.create("pods", pod("full", nodeName="a", requests={"cpu": "8"}))
        await world.here.start_controllers()
        await world.here.start_scheduler()
        await until_left(world, "c")
        await world.pod("next", "c")
        await world.here.bound("next")

    story_of(story, started=False)


def test_an_own_claim_in_the_wrong_place_is_left_and_given_back_in_one_write():
    """3063-POSTF-02, C10: the pod itself had reserved it, and nobody but its driver clears it."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("ab")
        await world.claim("c")
        await world.pod("web", "c", requests={"cpu": "8"})
        await allocate(world, driver, "c", "a", "web")
        since = (await world.claims.list()).resource_version
        await world.here.create("pods", pod("full", nodeName="a", requests={"cpu": "8"}))
        await world.here.start_controllers()
        await world.here.start_scheduler()
        assert await world.here.bound("web") == ["b"]
        assert driver.deallocations == 1
        seen = [
            event.object.fields["status"]
            async for event in world.claims.watch(NS, resource_version=since, timeout_s=1, bookmarks=False)
        ]
        assert seen[0]["deallocationRequested"]
        assert not seen[0].get("reservedFor")
        assert seen[0]["allocation"]

    story_of(story, started=False)


@both_ways
def test_claim_and_node_are_free_again_after_a_talk_that_failed(transactions: bool):
    """The driver refuses the only node once, and would take it the next time."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.refuses = {"a"}
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c", requests={"cpu": "8"})
        await world.said("web", "refused claim c on 1 of 1 nodes")
        driver.refuses = set()
        await world.here.bound("web")

    story_of(story, transactions=transactions)


# -- what was said ---------------------------------------------------------------------------------


def test_what_stood_in_a_talk_that_was_removed_is_not_believed():
    """3063-STATE-05: a driver that has gone refused every node; without its word the pod may be tried."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.refuses, driver.allocates = {"a", "b"}, False
        await world.furnish("ab")
        await world.claim("c")
        await world.pod("web", "c")
        await world.said("web", "on 2 of 2 nodes")
        driver.answers = False
        first = await world.talk("web")
        assert first is not None
        await world.talks.delete("web", NS)

        async def chosen_anew() -> bool:
            now = await world.talk("web")
            return now is not None and now.uid != first.uid and bool(now.fields["spec"].get("selectedNode"))

        await world.here.until(chosen_anew, "a node chosen without the word of the former talk")

    story_of(story)


def test_a_node_that_is_refused_does_not_stay_selected():
    """3063-PSCHED-20: drivers look again only while nothing is selected."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.refuses = {"a", "b"}
        await world.furnish("ab")
        await world.claim("c")
        await world.pod("web", "c")
        await world.said("web", "on 2 of 2 nodes")

        async def taken_back() -> bool:
            now = await world.talk("web")
            return now is not None and not now.fields["spec"].get("selectedNode")

        await world.here.until(taken_back, "no node selected")

    story_of(story)


# -- what they are told ----------------------------------------------------------------------------


async def reasons(world: Classic, name: str) -> set[str]:
    """Of the condition, in all that happened to the pod so far."""
    since = "1"
    told = set()
    async for event in world.here.resource("pods").watch(
        NS, resource_version=since, timeout_s=1, bookmarks=False
    ):
        if event.object.name != name:
            continue
        conditions = (event.object.fields.get("status") or {}).get("conditions") or ()
        told |= {one.get("reason", "") for one in conditions if one["type"] == "PodScheduled"}
    return told


def test_a_refused_node_is_no_error_of_the_scheduler():
    async def story(world: Classic, driver: Driver) -> None:
        driver.refuses = {"a", "b", "c"}
        await world.furnish("abcd")
        driver.devices["d"] = 1
        await world.claim("c")
        await world.pod("web", "c")
        assert await world.here.bound("web") == ["d"]
        assert "SchedulerError" not in await reasons(world, "web")

    story_of(story)


def test_a_driver_that_does_not_answer_is_no_error_of_the_scheduler():
    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c")
        await world.said("web", f"driver {DRIVER} has not answered for claim c since")
        condition = await world.here.condition("web")
        assert condition["reason"] == "Unschedulable"
        assert condition["message"].startswith("not placed on a: driver")

    story_of(story, settings=SHORT, runs=False)


# -- objects that somebody made up -----------------------------------------------------------------


@pytest.mark.parametrize("is_owned", [False, True])
def test_a_podscheduling_that_no_pod_owns_is_not_gone_on_with(is_owned: bool):
    """P5: it selects a node and refuses another; neither has any effect, and it goes."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        owners = []
        if is_owned:
            made = await world.here.create("configmaps", {"metadata": {"name": "web"}})
            owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": made.uid}]
        metadata = {"name": "web", "ownerReferences": owners}
        spec = {"selectedNode": "z", "potentialNodes": ["z"]}
        body = {"apiVersion": API_VERSION, "kind": "PodScheduling", "metadata": metadata, "spec": spec}
        found = await world.talks.create(body, NS)
        said = {"resourceClaims": [{"name": "c", "unsuitableNodes": ["a"]}]}
        await world.talks.update_status({**found.fields, "status": said})
        await world.pod("web", "c")
        assert await world.here.bound("web") == ["a"]
        await world.ended("web")

    story_of(story)
