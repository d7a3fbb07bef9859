"""Pods with classic claims and a driver that allocates them, end to end: what a person sees."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from allot.api import Gates, Object, errors, transaction
from allot.scheduler import Settings

from .classic import API_VERSION, DRIVER
from .classic_driver import GROUP, VERSION, Driver, Fields
from .cluster import NS, Cluster, pod, tell
from .test_crashes import die
from .test_why import why
from .wire import Wire

LONG = Settings()
SHORT = Settings(driver_timeout_s=1.0)


class Classic:
    """A cluster with classic claims, and its driver."""

    def __init__(self, here: Cluster) -> None:
        self.here = here
        self.claims = here.client.resource(GROUP, VERSION, "resourceclaims")
        self.templates = here.client.resource(GROUP, VERSION, "resourceclaimtemplates")
        self.classes = here.client.resource(GROUP, VERSION, "resourceclasses", namespaced=False)
        self.talks = here.client.resource(GROUP, VERSION, "podschedulings")
        self.seen: list[tuple[str, Object]] = []

    async def furnish(self, nodes: str = "ab", driver: str = DRIVER, name: str = "gpu") -> None:
        for one in nodes:
            await self.here.node(one)
        await self.resource_class(name, driver)

    async def resource_class(self, name: str = "gpu", driver: str = DRIVER, **more: Any) -> None:
        fields = {"apiVersion": API_VERSION, "kind": "ResourceClass", "driverName": driver, **more}
        await self.classes.create({**fields, "metadata": {"name": name}})

    async def claim(self, name: str, mode: str = "WaitForFirstConsumer", resource_class: str = "gpu") -> None:
        spec = {"resourceClassName": resource_class, "allocationMode": mode}
        await self.claims.create(
            {"apiVersion": API_VERSION, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}, NS
        )

    async def template(self, name: str = "one") -> None:
        spec = {"spec": {"resourceClassName": "gpu"}}
        fields = {"apiVersion": API_VERSION, "kind": "ResourceClaimTemplate", "metadata": {"name": name}}
        await self.templates.create({**fields, "spec": spec}, NS)

    async def pod(self, name: str, *claims: str, **more: Any) -> Object:
        entries = [{"name": one, "resourceClaimName": one} for one in claims]
        return await self.here.create("pods", pod(name, resourceClaims=entries, **more))

    async def status(self, name: str) -> Fields:
        return (await self.claims.get(name, NS)).fields.get("status") or {}

    async def users(self, name: str) -> list[str]:
        return [one["name"] for one in (await self.status(name)).get("reservedFor") or ()]

    async def talk(self, name: str) -> Object | None:
        try:
            return await self.talks.get(name, NS)
        except errors.NotFound:
            return None

    async def ended(self, name: str) -> None:
        async def gone() -> bool:
            return await self.talk(name) is None

        await self.here.until(gone, f"podscheduling {name} gone")

    async def said(self, name: str, words: str) -> str:
        async def told() -> str:
            condition = await self.here.condition(name)
            return condition["message"] if words in condition["message"] else ""

        found: str = await self.here.until(told, f"{name} told {words!r}")
        return found


Story = Callable[[Classic, Driver], Awaitable[None]]


def story_of(
    story: Story,
    devices: dict[str, int] | None = None,
    *,
    settings: Settings = LONG,
    transactions: bool = True,
    runs: bool = True,
    started: bool = True,
) -> None:
    async def whole(here: Cluster) -> None:
        world = Classic(here)
        driver = Driver(here.client, devices if devices is not None else {"a": 2, "b": 2})
        task = asyncio.ensure_future(driver.run()) if runs else None
        try:
            await story(world, driver)
        finally:
            if task is not None:
                if task.done():
                    task.result()
                task.cancel()

    tell(whole, settings=settings, transactions=transactions, started=started)


both_ways = pytest.mark.parametrize("transactions", [True, False])


# -- how it goes ----------------------------------------------------------------------------------


@both_ways
def test_a_pod_with_a_generated_claim_is_bound_where_its_driver_allocated(transactions: bool):
    """3063-COMP-05, 3063-COORD-15, 3063-STATE-06, 3063-PSCHED-02, 3063-GOAL-17."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish()
        await world.template()
        await world.here.pod("web", template="one")
        (node,) = await world.here.bound("web")
        (claim,) = (await world.claims.list()).objects
        allocation = claim.fields["status"]["allocation"]
        assert allocation["resourceHandle"].startswith(f"{node}/")
        assert await world.users(claim.name) == ["web"]
        assert claim.fields["status"]["driverName"] == DRIVER
        await world.ended("web")
        assert driver.allocations == 1

    story_of(story, transactions=transactions)


@both_ways
def test_reservation_comes_before_the_binding_and_the_talk_ends_with_it(transactions: bool):
    """3063-FLOW-11, 3063-FLOW-07, 3063-COORD-08: read from the history of the server."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        since = (await world.claims.list()).resource_version
        await world.pod("web", "c")
        await world.here.bound("web")
        await world.ended("web")
        revisions = {}
        for what, when in (
            (world.here.client.resource("", "v1", "pods"), _is_bound),
            (world.claims, _is_reserved),
            (world.talks, _is_there),
        ):
            revisions[what.plural] = await _when(what, since, when)
        gone = await _when(world.talks, since, lambda type, one: type == "DELETED")
        assert revisions["podschedulings"] < revisions["resourceclaims"] < revisions["pods"] <= gone

    story_of(story, transactions=transactions)


async def _when(what: Any, since: str, matches: Callable[[str, Object], bool]) -> int:
    async for event in what.watch(namespace=NS, resource_version=since, timeout_s=5):
        if matches(event.type.value, event.object):
            return int(event.object.resource_version)
    raise AssertionError(f"nothing of that sort happened to {what.plural}")


def _is_bound(type: str, one: Object) -> bool:
    return bool(one.fields["spec"].get("nodeName"))


def _is_reserved(type: str, one: Object) -> bool:
    return bool((one.fields.get("status") or {}).get("reservedFor"))


def _is_there(type: str, one: Object) -> bool:
    return type == "ADDED"


@both_ways
def test_a_driver_that_allocates_and_does_not_reserve_does_as_well(transactions: bool):
    """3063-PSCHED-09, 3063-RSV-05, 3063-FLOW-10."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.reserves = False
        await world.furnish()
        await world.claim("c")
        await world.pod("web", "c")
        await world.here.bound("web")
        assert await world.users("c") == ["web"]

    story_of(story, transactions=transactions)


def test_two_claims_of_two_drivers_are_asked_about_and_then_allocated_together():
    """3063-COORD-02, 3063-COORD-03, 3063-COORD-11, 3063-RSV-03."""

    async def story(world: Classic, driver: Driver) -> None:
        other = Driver(world.here.client, {"b": 1}, "nic.example.com")
        task = asyncio.ensure_future(other.run())
        await world.furnish("ab")
        await world.resource_class("nic", "nic.example.com")
        await world.claim("c")
        await world.claim("d", resource_class="nic")
        await world.pod("web", "c", "d")
        assert await world.here.bound("web") == ["b"]
        assert (driver.allocations, other.allocations) == (1, 1)
        assert (driver.deallocations, other.deallocations) == (0, 0)
        task.cancel()

    story_of(story)


def test_an_immediate_claim_is_waited_for_and_has_no_talk():
    """3063-PREF-02, 3063-MODE-04, X-09."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.allocates = False
        await world.furnish()
        await world.claim("c", "Immediate")
        await world.pod("web", "c")
        await world.said("web", "has not been allocated yet by its driver")
        assert await world.talk("web") is None
        driver.allocates = True
        assert await world.here.bound("web") == ["a"]

    story_of(story)


def test_a_pod_whose_claim_comes_later_waits_for_it():
    """3063-CORE-12, 3063-SCHED-02."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish()
        await world.pod("web", "c")
        await world.said("web", 'resourceclaim "c" not found')
        await world.claim("c")
        await world.here.bound("web")

    story_of(story)


def test_a_pod_whose_class_comes_later_waits_for_it():
    """O-07."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.here.node("a")
        await world.claim("c")
        await world.pod("web", "c")
        await world.said("web", 'resourceclass "gpu" of resourceclaim "c" not found')
        await world.resource_class()
        await world.here.bound("web")

    story_of(story)


# -- refusals and contention ----------------------------------------------------------------------


def test_a_refused_node_is_followed_by_another():
    """3063-COORD-04, 3063-RISK-01."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.refuses = {"a", "b", "d"}
        await world.furnish("abcd")
        for name in "cd":
            driver.devices[name] = 1
        await world.claim("c")
        await world.pod("web", "c")
        assert await world.here.bound("web") == ["c"]

    story_of(story)


def test_where_every_node_is_refused_the_pod_says_so_and_goes_on_when_one_is_free():
    """3063-PSCHED-19."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("ab")
        for name in ("c", "d", "e"):
            await world.claim(name)
        await world.pod("one", "c")
        await world.pod("two", "d")
        await world.here.bound("one", "two")
        await world.pod("three", "e")
        await world.said("three", f"driver {DRIVER} refused claim e on 2 of 2 nodes")
        await world.here.resource("pods").delete("one", NS, grace_period_s=0)
        await world.claims.delete("c", NS)
        await world.here.bound("three")

    story_of(story, {"a": 1, "b": 1})


def test_pods_that_compete_for_one_exclusive_claim_have_it_one_after_the_other():
    """3063-STATE-23, 3063-STATE-24, 3063-STATE-25, 3063-GOAL-03."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("ab")
        await world.claim("c")
        names = [f"web-{number}" for number in range(3)]
        for name in names:
            await world.pod(name, "c")
        left = list(names)
        while left:
            done = await world.here.until(lambda: _first_bound(world.here, left), "somebody bound")
            assert await world.users("c") == [done]
            await world.here.resource("pods").delete(done, NS, grace_period_s=0)
            left.remove(done)
        assert driver.allocations == 1

    story_of(story)


async def _first_bound(here: Cluster, names: Sequence[str]) -> str:
    for name in names:
        if await here.node_of(name):
            return name
    return ""


def test_pods_share_a_claim_whose_driver_allows_it():
    """3063-GOAL-02, 3063-SHARE-03, 3063-LIFE-02."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.shareable = True
        await world.furnish("ab")
        await world.claim("c")
        for number in range(4):
            await world.pod(f"web-{number}", "c")
        nodes = await world.here.bound(*(f"web-{number}" for number in range(4)))
        assert len(set(nodes)) == 1
        assert sorted(await world.users("c")) == [f"web-{number}" for number in range(4)]
        assert driver.allocations == 1

    story_of(story)


def test_two_pods_that_need_the_same_two_exclusive_claims_do_not_wait_for_each_other():
    """3063-UNRSV-02, P2: with two schedulers that know nothing of each other."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.here.start_scheduler(Settings(names=("other",)))
        await world.furnish("ab")
        await world.claim("c")
        await world.claim("d")
        await world.pod("one", "c", "d")
        await world.pod("two", "d", "c", schedulerName="other")
        left = ["one", "two"]
        while left:
            done = await world.here.until(lambda: _first_bound(world.here, left), "somebody bound")
            await world.here.resource("pods").delete(done, NS, grace_period_s=0)
            left.remove(done)

    story_of(story)


def test_claims_in_places_that_exclude_each_other_are_moved_one_at_a_time():
    """3063-COORD-05, 3063-COORD-07, 3063-POSTF-04, 3063-CLAIM-15, C10."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("ab")
        driver.devices = {"a": 1, "b": 0}
        await world.claim("c")
        await world.claim("d")
        await world.pod("first", "c")
        await world.here.bound("first")
        driver.devices = {"a": 1, "b": 1}
        await world.pod("second", "d")
        await world.here.bound("second")
        for name in ("first", "second"):
            await world.here.resource("pods").delete(name, NS, grace_period_s=0)
        driver.devices = {"a": 2, "b": 2}
        await world.pod("web", "c", "d")
        await world.here.bound("web")
        assert driver.deallocations == 1
        assert (driver.allocations, await world.users("c"), await world.users("d")) == (3, ["web"], ["web"])

    story_of(story)


def test_an_immediate_claim_in_the_wrong_place_stays_there():
    """3063-MODE-03, 3063-POSTF-03."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("ab")
        await world.claim("c", "Immediate")
        await world.pod("web", "c", nodeSelector={"kubernetes.io/hostname": "b"})
        await world.here.condition("web")
        await world.here.quiet()
        assert driver.deallocations == 0
        assert not (await world.status("c")).get("deallocationRequested")

    story_of(story)


# -- drivers in trouble ---------------------------------------------------------------------------


def test_a_driver_that_does_not_answer_is_named_and_room_is_given_back():
    """O-22, 3063-SCHED-01, 3063-MON-09."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c", requests={"cpu": "8"})
        await world.said("web", f"driver {DRIVER} has not answered for claim c since")
        await world.pod("other", requests={"cpu": "8"})
        await world.here.bound("other")

    story_of(story, settings=SHORT, runs=False)


def test_while_a_driver_works_the_pods_room_is_held():
    """PLUGIN5, P1: nobody takes the place that a driver allocates for."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.allocates = False
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c", requests={"cpu": "8"})

        async def chosen() -> bool:
            talk = await world.talk("web")
            return talk is not None and talk.fields["spec"].get("selectedNode") == "a"

        await world.here.until(chosen, "a node chosen")
        await world.pod("rival", requests={"cpu": "8"})
        await world.here.condition("rival")
        driver.allocates = True
        assert await world.here.bound("web") == ["a"]
        assert await world.here.node_of("rival") == ""

    story_of(story)


def test_a_driver_that_comes_late_is_welcome():
    async def story(world: Classic, driver: Driver) -> None:
        driver.allocates = False
        await world.furnish("ab")
        await world.claim("c")
        await world.pod("web", "c")
        await world.said("web", "has not answered")
        driver.allocates = True
        await world.here.bound("web")
        assert driver.allocations == 1

    story_of(story, settings=SHORT)


def test_a_driver_that_allocates_elsewhere_does_not_get_the_pod_bound_wrongly():
    """3063-COORD-12, 3063-PSCHED-08: a wrong answer costs an attempt, never a wrong binding."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("ab")
        driver.lies_about = {"a": "b", "b": "a"}
        await world.claim("c")
        await world.pod("web", "c")
        (node,) = await world.here.bound("web")
        status = await world.status("c")
        (term,) = status["allocation"]["availableOnNodes"]["nodeSelectorTerms"]
        assert term["matchFields"][0]["values"] == [node]

    story_of(story)


@both_ways
def test_a_reservation_that_fails_ends_the_attempt_and_a_change_of_the_claim_begins_another(
    transactions: bool,
):
    """3063-RSV-06, 3063-STATE-23: somebody is faster, between the allocation and the reservation."""

    async def story(world: Classic, driver: Driver) -> None:
        here = world.here
        driver.reserves = False
        await here.start_controllers()
        wire = Wire.to(here)
        await world.furnish("a")
        await world.claim("c")
        rival = await here.create("pods", pod("rival", schedulerName="nobody"))
        user = {"resource": "pods", "name": "rival", "uid": rival.uid}

        async def take() -> None:
            now = await world.claims.get("c", NS)
            await world.claims.update_status(now.changed({"status": {"reservedFor": [user]}}))

        wire.before("transactions" if transactions else "resourceclaims/c/status", take)
        await here.start_scheduler(transport=wire)
        await world.pod("web", "c")
        await world.said("web", "rival")
        assert await world.users("c") == ["rival"]
        assert await here.node_of("web") == ""
        await here.resource("pods").delete("rival", NS, grace_period_s=0)
        assert await here.bound("web") == ["a"]

    story_of(story, started=False, transactions=transactions)


def test_nodes_are_proposed_anew_until_all_claims_are_allocated():
    """3063-PSCHED-05, 3063-COORD-14: in rounds, however few nodes a list has room for."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        await world.claim("d")
        driver.devices = {"a": 1, "b": 2}
        await world.pod("web", "c", "d")
        await world.said("web", "refused claim")
        await world.here.node("b")
        assert await world.here.bound("web") == ["b"]

    story_of(story)


def test_a_talk_that_somebody_removes_is_made_anew():
    """3063-STATE-05."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.allocates = False
        await world.furnish("ab")
        await world.claim("c")
        await world.pod("web", "c")
        first = await world.here.until(lambda: world.talk("web"), "a talk")
        await world.talks.delete("web", NS)

        async def another() -> bool:
            now = await world.talk("web")
            return now is not None and now.uid != first.uid

        await world.here.until(another, "another talk")
        driver.allocates = True
        await world.here.bound("web")

    story_of(story)


def test_who_quarrels_about_the_selected_node_is_not_answered_in_a_storm_of_writes():
    """Somebody takes the selection back whenever it is made: the pod gives up when the driver is late."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.allocates = driver.answers = False
        await world.here.start_controllers()
        wire = Wire.to(world.here)
        await world.here.start_scheduler(SHORT, transport=wire)
        await world.furnish("a")
        await world.claim("c")

        async def quarrel() -> None:
            while True:
                talk = await world.talk("web")
                if talk is not None and talk.fields["spec"].get("selectedNode"):
                    with contextlib.suppress(errors.Conflict, errors.NotFound):
                        await world.talks.update({**talk.fields, "spec": {"potentialNodes": ["a"]}})
                await asyncio.sleep(0)

        quarrelling = asyncio.ensure_future(quarrel())
        await world.pod("web", "c")
        await world.said("web", "has not answered for claim c")
        quarrelling.cancel()
        assert len([one for one in wire.writes if "podschedulings" in one]) < 20

    story_of(story, started=False)


@both_ways
def test_an_object_left_by_a_former_pod_is_removed_and_has_no_effect(transactions: bool):
    """3063-STATE-07, 3063-STATE-08, P5."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "web",
            "uid": "00000000-0000-0000-0000-000000000001",
        }
        stale = await world.talks.create(
            {
                "apiVersion": API_VERSION,
                "kind": "PodScheduling",
                "metadata": {"name": "web", "ownerReferences": [owner]},
                "spec": {"selectedNode": "z", "potentialNodes": ["z"]},
            },
            NS,
        )
        said = {"resourceClaims": [{"name": "c", "unsuitableNodes": ["a"]}]}
        await world.talks.update_status({**stale.fields, "status": said})
        await world.claim("c")
        await world.pod("web", "c")
        assert await world.here.bound("web") == ["a"]
        await world.ended("web")

    story_of(story, transactions=transactions)


@both_ways
def test_a_scheduler_that_dies_while_a_driver_works_is_followed_by_one_that_goes_on(transactions: bool):
    """3063-TROUBLE-02, 3063-STATE-04."""

    async def story(world: Classic, driver: Driver) -> None:
        driver.allocates = False
        here = world.here
        await world.furnish("abc")
        driver.devices["c"] = 2
        await world.claim("c")
        await world.pod("web", "c")

        async def chosen() -> str:
            talk = await world.talk("web")
            return talk.fields["spec"].get("selectedNode") or "" if talk is not None else ""

        node = await here.until(chosen, "a node chosen")
        await here.stop()
        driver.allocates = True

        async def allocated() -> bool:
            return bool((await world.status("c")).get("allocation"))

        await here.until(allocated, "allocated")
        await here.start_controllers()
        await here.start_scheduler()
        assert await here.bound("web") == [node]
        await world.ended("web")
        assert driver.allocations == 1

    story_of(story, transactions=transactions)


def test_a_talk_whose_pod_was_bound_is_swept_away():
    """P5: by whoever comes after a scheduler that died between the binding and the end of the talk."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c")
        await world.here.bound("web")
        await world.ended("web")
        now = await world.here.get("pods", "web")
        assert now is not None
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": now.uid}
        metadata = {"name": "web", "ownerReferences": [owner]}
        body = {"apiVersion": API_VERSION, "kind": "PodScheduling", "metadata": metadata, "spec": {}}
        await world.talks.create(body, NS)
        await world.ended("web")

    story_of(story)


def test_a_talk_whose_pod_has_ended_is_swept_away():
    """P5: also where nobody remembers the pod any more."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.pod("web")
        await world.here.bound("web")
        now = await world.here.get("pods", "web")
        assert now is not None
        await world.here.resource("pods").update_status(now.changed({"status": {"phase": "Succeeded"}}))
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": now.uid}
        metadata = {"name": "web", "ownerReferences": [owner]}
        body = {"apiVersion": API_VERSION, "kind": "PodScheduling", "metadata": metadata, "spec": {}}
        await world.talks.create(body, NS)
        await world.ended("web")

    story_of(story)


def test_a_pod_that_is_deleted_while_a_driver_works_gives_its_room_back_at_once():
    async def story(world: Classic, driver: Driver) -> None:
        driver.allocates = False
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c", requests={"cpu": "8"})
        await world.here.until(lambda: world.talk("web"), "a talk")
        await world.here.resource("pods").delete("web", NS, grace_period_s=0)
        await world.pod("next", requests={"cpu": "8"})
        await world.here.bound("next")

    story_of(story)


# -- with other kinds of claims -------------------------------------------------------------------


@both_ways
def test_a_pod_with_classic_structured_and_extended_resources_gets_all_of_them(transactions: bool):
    async def story(world: Classic, driver: Driver) -> None:
        here = world.here
        await world.furnish("ab")
        await here.device_class("dev", driver="dev.example.com")
        await here.device_class("ext", driver="ext.example.com", extendedResourceName="example.com/ext")
        for name in "ab":
            await here.devices(name, 1, driver="dev.example.com")
            await here.devices(name, 1, driver="ext.example.com")
        await world.claim("c")
        await here.claim("s", device_class="dev")
        await world.pod("web", "c", "s", requests={"example.com/ext": "1"})
        (node,) = await here.bound("web")
        assert sorted(await _held(here)) == [f"{node}/dev.example.com", f"{node}/ext.example.com"]
        assert (await world.status("c"))["allocation"]["resourceHandle"].startswith(f"{node}/")

    story_of(story, transactions=transactions)


@both_ways
def test_none_of_them_is_held_while_one_of_them_is_not_to_be_had(transactions: bool):
    """P1: all are placed together or not at all."""

    async def story(world: Classic, driver: Driver) -> None:
        here = world.here
        driver.allocates = driver.answers = False
        await world.furnish("a")
        await here.device_class("dev", driver="dev.example.com")
        await here.device_class("ext", driver="ext.example.com", extendedResourceName="example.com/ext")
        await here.devices("a", 1, driver="dev.example.com")
        await here.devices("a", 1, driver="ext.example.com")
        await world.claim("c")
        await here.claim("s", device_class="dev")
        await world.pod("web", "c", "s", requests={"example.com/ext": "1"})
        await world.said("web", "has not answered")
        assert await _held(here) == []
        assert await world.users("c") == []
        assert [one.name for one in await here.all("resourceclaims")] == ["c", "s"]
        driver.allocates = True
        await here.bound("web")
        assert len(await _held(here)) == 2

    story_of(story, settings=SHORT, transactions=transactions)


async def _held(here: Cluster) -> list[str]:
    """Structured devices, by node and driver."""
    claims = await here.all("resourceclaims")
    allocations = [(one.fields.get("status") or {}).get("allocation") or {} for one in claims]
    results = [one for given in allocations for one in (given.get("devices") or {}).get("results") or ()]
    return [f"{one['pool']}/{one['driver']}" for one in results]


# -- why ------------------------------------------------------------------------------------------


def test_allot_explain_says_which_driver_is_waited_for_and_for_how_long():
    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c")
        await world.here.until(lambda: world.talk("web"), "a talk")
        told = await why(world.here, "web")
        assert re.fullmatch(
            rf"waits on a: driver {DRIVER} has not answered for claim c since \d+ s", told.verdict
        )
        assert told.claims == ("claim c: not allocated yet by the driver of class gpu",)

    story_of(story, runs=False)


def test_allot_explain_says_on_which_nodes_a_driver_refuses():
    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("ab")
        driver.refuses = {"a", "b"}
        await world.claim("c")
        await world.pod("web", "c")
        await world.said("web", "on 2 of 2 nodes")
        told = await why(world.here, "web")
        assert told.verdict == "none of 2 nodes takes it"
        (story,) = told.nodes
        assert story.reason == f"node(s) refused by driver {DRIVER} for claim c"
        assert story.plugin == "DynamicResources"
        assert told.devices == f"driver {DRIVER} refused claim c on 2 of 2 nodes."

    story_of(story)


def test_an_allocated_claim_says_who_allocated_it_and_where_it_can_be_used():
    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c")
        await world.here.bound("web")
        told = await why(world.here, "web")
        assert told.claims == (f"claim c: allocated by driver {DRIVER}, usable on a",)

    story_of(story)


def test_negotiations_are_counted_by_driver_and_by_how_they_ended():
    """3063-MON-05."""

    async def story(world: Classic, driver: Driver) -> None:
        await world.furnish("a")
        await world.claim("c")
        await world.pod("web", "c")
        await world.here.bound("web")
        labels = f'profile="default-scheduler",driver="{DRIVER}",result="allocated"'

        async def counted() -> bool:  # the scheduler hears of the end a moment after the server
            return f"allot_scheduler_negotiations_total{{{labels}}} 1" in world.here.metrics.text()

        await world.here.until(counted, "one negotiation counted")

    story_of(story)


# -- what it costs --------------------------------------------------------------------------------


def test_a_pod_with_one_generated_claim_costs_the_scheduler_two_writes():
    """3063-SCALE-02: the PodScheduling, and then binding and end of the talk together."""

    async def story(world: Classic, driver: Driver) -> None:
        here = world.here
        await here.start_controllers()
        wire = Wire.to(here)
        await here.start_scheduler(transport=wire)
        await world.furnish("a")
        await world.template()
        await here.pod("web", template="one")
        await here.bound("web")
        await world.ended("web")
        assert wire.writes == [
            f"POST /apis/{GROUP}/{VERSION}/namespaces/{NS}/podschedulings",
            f"POST {transaction.PATH}",
        ]

    story_of(story, started=False)


def test_with_the_gate_off_nothing_of_it_is_followed_and_structured_pods_are_placed():
    """3063-PRR-02, 3063-SKEW-04: a pod with a classic claim waits, and says for what."""

    async def whole(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 1)
        await here.device_class()
        await here.claim("s")
        await here.pod("structured", claim="s")
        await here.bound("structured")
        await here.pod("classic", claim="c")
        assert 'resourceclaim "c" not found' in (await here.condition("classic"))["message"]

    tell(whole, gates=Gates({"DRAControlPlaneController": False}))


def test_scheduler_and_controllers_have_the_gate_each_for_itself():
    """3063-PRR-01: off, the controller makes no claims and the scheduler places pods without theirs; both go
    on with everything else, and on again they do their work."""

    async def story(here: Cluster) -> None:
        these = Classic(here)
        await these.furnish()
        await these.template()
        await these.claim("c")
        is_on, here.gates = here.gates, Gates({"DRAControlPlaneController": False})
        await here.start_controllers()
        await here.start_scheduler()
        await these.pod("direct", "c")
        await here.bound("direct")
        assert await these.talk("direct") is None
        assert await these.users("c") == []
        entries = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
        await here.create("pods", pod("generated", resourceClaims=entries))
        await here.device_class()
        await here.template("structured")
        await here.pod("other", template="structured")
        await these.said("other", "claim")
        assert [one.name for one in (await these.claims.list(NS)).objects if "generated" in one.name] == []

        await here.stop()
        here.gates = is_on
        await here.start_controllers()
        await here.start_scheduler()
        await here.until(lambda: these.talk("generated"), "the driver asked")
        assert (await these.claims.get("generated-gpu", NS)).name

    tell(story, started=False)


# -- deaths ---------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies_at", range(1, 4))
def test_whoever_comes_next_mends_what_a_dead_scheduler_left(dies_at: int, after: bool, transactions: bool):
    """3063-TROUBLE-02: the object made, the pod bound, the talk ended: before and after each of these."""

    async def story(world: Classic, driver: Driver) -> None:
        here = world.here
        await here.start_controllers()
        await world.furnish("ab")
        await world.claim("c")
        await world.pod("web", "c")
        await die(here, dies_at, after)
        await here.start_scheduler()
        (node,) = await here.bound("web")
        await world.ended("web")
        assert (await world.status("c"))["allocation"]["resourceHandle"].startswith(f"{node}/")
        assert await world.users("c") == ["web"]
        assert driver.allocations == 1

    story_of(story, started=False, transactions=transactions)
