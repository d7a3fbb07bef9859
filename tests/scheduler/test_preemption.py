"""Preemption end to end: who is evicted, what is written, and whose the room is."""

from typing import Any

from allot.api import errors
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.controllers import ALL
from allot.informers import Events, Telemetry
from allot.scheduler.evicting import Evictor
from allot.scheduler.pod import PodInfo
from allot.scheduler.reading import read

from .cluster import DRIVER, GROUP, NS, Cluster, tell
from .wire import Wire

DISRUPTION = tuple(one for one in ALL if one.name == "disruption-controller")


async def priorities(here: Cluster) -> None:
    for name, value in (("low", 1), ("middle", 10), ("high", 1000)):
        fields = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
        await here.create("priorityclasses", {**fields, "metadata": {"name": name}})
    await here.quiet()  # the server admits pods by the classes that it has heard of


async def budget(here: Cluster, app: str, **spec: Any) -> None:
    fields = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}}
    selector = {"matchLabels": {"app": app}}
    await here.create("poddisruptionbudgets", {**fields, "spec": {"selector": selector, **spec}})


async def leave(here: Cluster, name: str) -> None:
    """What the agent of a node does with a pod that is being deleted."""

    async def is_evicted() -> bool:
        found = await here.get("pods", name)
        return found is None or bool(found.metadata.deletion_timestamp)

    await here.until(is_evicted, f"{name} evicted")
    if await here.get("pods", name) is not None:
        await here.resource("pods").delete(name, NS, grace_period_s=0)


async def is_waiting(here: Cluster, name: str) -> dict[str, Any]:
    async def nominated() -> dict[str, Any] | None:
        found = await here.get("pods", name)
        status = found.fields.get("status") or {} if found is not None else {}
        return status if status.get("nominatedNodeName") else None

    status: dict[str, Any] = await here.until(nominated, f"{name} nominated")
    return status


async def urgent_waits_for_batch(here: Cluster, cpu: str = "4", priority: str = "high") -> None:
    """One node of four cores, all of them taken; whoever has them is told to make room."""
    await here.node("a", cpu="4")
    await priorities(here)
    await here.pod("batch", requests={"cpu": "4"}, priorityClassName="low")
    await here.bound("batch")
    await here.pod("urgent", requests={"cpu": cpu}, priorityClassName=priority)
    await is_waiting(here, "urgent")


async def urgent_waits_for_the_devices_of_batch(here: Cluster) -> None:
    """One node of two devices, both of them taken."""
    await here.node("a")
    await here.devices("a", 2)
    await here.device_class()
    await here.template("two", count=2)
    await priorities(here)
    await here.pod("batch", template="two", priorityClassName="low")
    await here.bound("batch")
    await here.pod("urgent", template="two", priorityClassName="high")
    await is_waiting(here, "urgent")


def test_a_pod_of_higher_priority_gets_the_devices_of_another():
    """The victim is told why, its claim gives the device back, and the device goes to the other pod."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 1)
        await here.device_class()
        await here.template()
        await priorities(here)
        await here.pod("batch", template="one", priorityClassName="low")
        await here.bound("batch")
        await here.pod("urgent", template="one", priorityClassName="high")

        assert (await is_waiting(here, "urgent"))["nominatedNodeName"] == "a"
        await leave(here, "batch")
        assert await here.bound("urgent") == ["a"]
        urgent = await here.get("pods", "urgent")
        assert urgent is not None and "nominatedNodeName" not in urgent.fields["status"]
        (held,) = (await here.held()).values()
        assert held == ["a/gpu-0"]

    tell(story)


def test_the_fewest_pods_go_and_the_others_keep_their_devices():
    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 3)
        await here.device_class()
        await here.template()
        await here.template("two", count=2)
        await priorities(here)
        await here.pod("pair", template="two", priorityClassName="low")
        await here.pod("single", template="one", priorityClassName="low")
        await here.bound("pair", "single")
        await here.pod("urgent", template="two", priorityClassName="high")

        await leave(here, "pair")
        assert await here.bound("urgent") == ["a"]
        assert await here.node_of("single") == "a"

    tell(story)


def test_devices_behind_an_extended_resource_change_hands_too():
    """KEP-5004: neither pod knows of claims."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 2)
        await here.device_class(extendedResourceName="example.com/gpu")
        await priorities(here)
        await here.pod("batch", requests={"example.com/gpu": "2"}, priorityClassName="low")
        await here.bound("batch")
        await here.pod("urgent", requests={"example.com/gpu": "1"}, priorityClassName="high")

        await is_waiting(here, "urgent")
        await leave(here, "batch")
        assert await here.bound("urgent") == ["a"]
        (held,) = (await here.held()).values()
        assert len(held) == 1

    tell(story)


def test_a_pod_that_waits_for_room_is_placed_though_the_scheduler_was_restarted():
    """The nomination is in the pod's status, and what was decided is not decided again."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 2)
        await here.device_class()
        await here.template()
        await priorities(here)
        for name in ("one", "two"):
            await here.pod(name, template="one", priorityClassName="low")
        await here.bound("one", "two")
        await here.pod("urgent", template="one", priorityClassName="high")
        await is_waiting(here, "urgent")
        await here.quiet()
        going = [name for name in ("one", "two") if await _is_going(here, name)]
        assert len(going) == 1

        await here.stop()
        await here.start_controllers()
        await here.start_scheduler()
        await here.quiet()
        assert [name for name in ("one", "two") if await _is_going(here, name)] == going
        await leave(here, going[0])
        assert await here.bound("urgent") == ["a"]

    tell(story)


def test_room_that_was_made_is_not_taken_by_a_pod_of_lower_priority():
    """EVICT5: a small pod arrives while the room is being made."""

    async def story(here: Cluster) -> None:
        await urgent_waits_for_batch(here)
        await here.pod("sneaky", requests={"cpu": "1"}, priorityClassName="low")
        await leave(here, "batch")

        assert await here.bound("urgent") == ["a"]
        assert await here.node_of("sneaky") == ""

    tell(story)


def test_what_is_left_of_the_room_goes_to_others_once_the_pod_has_its_place():
    async def story(here: Cluster) -> None:
        await urgent_waits_for_batch(here, cpu="3")
        await here.pod("small", requests={"cpu": "1"}, priorityClassName="low")
        await leave(here, "batch")
        assert await here.bound("urgent", "small") == ["a", "a"]

    tell(story)


async def _keeps_no_room(here: Cluster, name: str) -> None:
    async def withdrawn() -> bool:
        found = await here.get("pods", name)
        return found is not None and "nominatedNodeName" not in found.fields["status"]

    await here.until(withdrawn, f"{name} not nominated any more")


def test_room_for_a_pod_that_cannot_have_it_after_all_goes_to_others():
    """P2: a device is tainted while its holder ends. And the pod is not nominated again by its own past."""

    async def story(here: Cluster) -> None:
        await urgent_waits_for_the_devices_of_batch(here)
        await here.pod("small", priorityClassName="low")
        assert "kept for a pod of higher priority" in (await here.condition("small"))["message"]

        taint = {"key": "bad", "effect": "NoSchedule"}
        selector = {"driver": DRIVER, "pool": "a", "device": "gpu-1"}
        rule = {"apiVersion": f"{GROUP}/v1", "kind": "DeviceTaintRule", "metadata": {"name": "ill"}}
        await here.create("devicetaintrules", {**rule, "spec": {"deviceSelector": selector, "taint": taint}})
        await leave(here, "batch")
        assert await here.bound("small") == ["a"]
        await _keeps_no_room(here, "urgent")

        await here.resource("pods").patch("urgent", {"metadata": {"labels": {"seen": "again"}}}, NS)
        await here.quiet()
        await here.pod("another", priorityClassName="low")
        assert await here.bound("another") == ["a"]

    tell(story)


def test_room_that_a_more_important_pod_takes_is_not_kept_for_the_other():
    async def story(here: Cluster) -> None:
        await urgent_waits_for_batch(here, priority="middle")
        await here.pod("boss", requests={"cpu": "3"}, priorityClassName="high")
        await here.pod("small", requests={"cpu": "1"}, priorityClassName="low")
        await leave(here, "batch")
        assert await here.bound("boss", "small") == ["a", "a"]
        await _keeps_no_room(here, "urgent")

    tell(story)


async def _over_a_wire(here: Cluster) -> Wire:
    await here.stop()
    await here.start_controllers()
    wire = Wire.to(here)
    await here.start_scheduler(transport=wire)
    return wire


def test_room_stays_for_a_pod_whose_binding_failed():
    """It tries again in a second; whoever is less important and awake at once must not be faster."""

    async def story(here: Cluster) -> None:
        wire = await _over_a_wire(here)
        await urgent_waits_for_batch(here)
        await here.pod("sneaky", requests={"cpu": "1"}, priorityClassName="low")
        await here.condition("sneaky")

        async def fails() -> None:
            raise errors.Forbidden("not now")

        wire.before("pods/urgent/binding", fails)
        await leave(here, "batch")
        assert await here.bound("urgent") == ["a"]
        assert await here.node_of("sneaky") == ""

    tell(story)


def test_a_pod_that_left_and_came_back_while_room_was_made_is_tried_like_any_other():
    """QUEUE1: the attempt that made room is not the one that it waits for now."""

    async def story(here: Cluster) -> None:
        wire = await _over_a_wire(here)
        await here.node("a", cpu="4")
        await priorities(here)
        await here.pod("batch", requests={"cpu": "4"}, priorityClassName="low")
        await here.bound("batch")
        wire.before("POST /apis/transaction", lambda: here.come_back("urgent"))
        await here.pod("urgent", requests={"cpu": "4"}, priorityClassName="high")
        await leave(here, "batch")
        assert await here.bound("urgent") == ["a"]

    tell(story, started=False)


def test_room_that_a_pod_leaves_for_room_elsewhere_goes_to_others():
    """Its node shrinks while it is bound, so it moves; whoever was kept away until then is woken."""

    async def story(here: Cluster) -> None:
        wire = await _over_a_wire(here)
        await urgent_waits_for_batch(here)
        await here.node("b", cpu="4")
        await here.pod("elsewhere", requests={"cpu": "4"}, priorityClassName="low", nodeName="b")
        await here.pod("small", requests={"cpu": "1"}, priorityClassName="low")
        await here.condition("small")

        async def shrinks() -> None:
            less = {"allocatable": {"cpu": "3", "memory": "32Gi", "pods": "110"}}
            await here.resource("nodes").patch("a", {"status": less}, subresource="status")
            raise errors.Forbidden("not now")

        wire.before("pods/urgent/binding", shrinks)
        await leave(here, "batch")
        assert await here.bound("small") == ["a"]
        await leave(here, "elsewhere")
        assert await here.bound("urgent") == ["b"]

    tell(story)


def test_room_that_nobody_makes_goes_to_others():
    """The eviction is refused. What is free besides the victim is not kept for a pod that cannot come."""

    async def story(here: Cluster) -> None:
        wire = await _over_a_wire(here)
        await here.node("a", cpu="4")
        await priorities(here)
        await here.pod("batch", requests={"cpu": "3"}, priorityClassName="low")
        await here.bound("batch")

        async def fails() -> None:
            await here.pod("small", requests={"cpu": "1"}, priorityClassName="low")
            assert "kept for a pod of higher priority" in (await here.condition("small"))["message"]
            raise errors.Forbidden("not this one")

        wire.before("DELETE /api/v1/namespaces/default/pods/batch", fails)
        await here.pod("urgent", requests={"cpu": "4"}, priorityClassName="high")
        assert await here.bound("small") == ["a"]

    tell(story, transactions=False)  # refused between its two writes


def test_room_is_kept_while_devices_return_though_the_scheduler_was_restarted():
    """The victim is gone, and the controller that gives back its devices has not looked yet."""

    async def story(here: Cluster) -> None:
        await urgent_waits_for_the_devices_of_batch(here)

        await here.stop()
        await here.start_scheduler()
        await here.quiet()
        await leave(here, "batch")
        await here.pod("sneaky", priorityClassName="low")
        assert "kept for a pod of higher priority" in (await here.condition("sneaky"))["message"]
        await here.quiet()
        assert (await is_waiting(here, "urgent"))["nominatedNodeName"] == "a"

        await here.start_controllers()
        assert await here.bound("urgent", "sneaky") == ["a", "a"]

    tell(story)


def evictor_of(here: Cluster) -> Evictor:
    clock, metrics, ids = SystemClock(), Metrics(), RandomIds()
    client = here.server.client(identities.SCHEDULER)
    events = Events(client, "tests", clock, ids, Telemetry(metrics, clock), metrics)
    return Evictor(client, clock, events)


async def bound_by_hand(here: Cluster, *names: str) -> list[PodInfo]:
    for name in names:
        await here.pod(name, schedulerName="nobody")
        await here.resource("pods").bind(name, NS, "a")
    found = [await here.get("pods", name) for name in names]
    return [PodInfo.of(one) for one in found if one is not None]


def test_a_nomination_and_its_victims_are_written_at_one_moment():
    async def story(here: Cluster) -> None:
        await here.node("a")
        victims = await bound_by_hand(here, "x", "y")
        urgent = PodInfo.of(await here.pod("urgent", schedulerName="nobody"))
        await evictor_of(here).evict(urgent, "a", victims)
        found = [await here.get("pods", name) for name in ("urgent", "x", "y")]
        assert len({one.resource_version for one in found if one is not None}) == 1
        assert found[0] is not None and found[0].fields["status"]["nominatedNodeName"] == "a"
        for one in found[1:]:
            assert one is not None and one.metadata.deletion_timestamp
            assert one.fields["status"]["conditions"][-1]["reason"] == "PreemptionByScheduler"

    tell(story)


def test_a_victim_that_is_gone_does_not_save_the_others():
    async def story(here: Cluster) -> None:
        await here.node("a")
        victims = await bound_by_hand(here, "x", "y")
        await here.resource("pods").delete("x", NS, grace_period_s=0)
        urgent = PodInfo.of(await here.pod("urgent", schedulerName="nobody"))
        await evictor_of(here).evict(urgent, "a", victims)
        other = await here.get("pods", "y")
        assert other is not None and other.metadata.deletion_timestamp
        nominated = await here.get("pods", "urgent")
        assert nominated is not None and nominated.fields["status"]["nominatedNodeName"] == "a"

    tell(story)


def test_what_is_withdrawn_is_what_was_meant():
    """A nomination to another node that was written meanwhile stays."""

    async def story(here: Cluster) -> None:
        urgent = PodInfo.of(await here.pod("urgent", schedulerName="nobody"))
        await here.resource("pods").patch(
            "urgent", {"status": {"nominatedNodeName": "b"}}, NS, subresource="status"
        )
        evictor = evictor_of(here)
        for node, left in (("a", "b"), ("b", None)):
            await evictor.withdraw(urgent, node)
            found = await here.get("pods", "urgent")
            assert found is not None and found.fields["status"].get("nominatedNodeName") == left

    tell(story)


def test_who_asks_from_outside_sees_whose_room_it_is():
    """`allot explain` must not say that a node would take a pod that is kept away from it."""

    async def story(here: Cluster) -> None:
        await urgent_waits_for_batch(here)
        reading = await read(here.client, here.gates, NS)
        assert [one.key.name for one in reading.snapshot.prospects.nominees("a")] == ["urgent"]

    tell(story)


def test_several_pods_of_higher_priority_each_get_a_victim_of_their_own():
    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 3)
        await here.device_class()
        await here.template()
        await priorities(here)
        batch = [f"batch-{index}" for index in range(3)]
        for name in batch:
            await here.pod(name, template="one", priorityClassName="low")
        await here.bound(*batch)
        urgent = [f"urgent-{index}" for index in range(2)]
        for name in urgent:
            await here.pod(name, template="one", priorityClassName="high")
        for name in urgent:
            await is_waiting(here, name)
        await here.quiet()
        going = [name for name in batch if await _is_going(here, name)]
        assert len(going) == 2
        for name in going:
            await leave(here, name)
        assert await here.bound(*urgent) == ["a", "a"]

    tell(story)


async def _is_going(here: Cluster, name: str) -> bool:
    found = await here.get("pods", name)
    return found is None or bool(found.metadata.deletion_timestamp)


def test_who_could_not_preempt_does_when_the_more_important_user_of_a_claim_has_left():
    """The devices stay where they are; but now only a pod of lower priority uses them."""

    async def story(here: Cluster) -> None:
        await here.node("a")
        await here.devices("a", 1)
        await here.device_class()
        await here.template()
        await here.claim("shared")
        await priorities(here)
        for name, priority in (("lowly", "low"), ("lofty", "high")):
            await here.pod(name, claim="shared", priorityClassName=priority)
        await here.bound("lowly", "lofty")
        await here.pod("middling", template="one", priorityClassName="middle")
        await here.condition("middling")
        await here.quiet()
        assert not await _is_going(here, "lowly")

        await here.resource("pods").delete("lofty", NS, grace_period_s=0)
        await leave(here, "lowly")
        assert await here.bound("middling") == ["a"]

    tell(story)


def test_a_pod_that_a_budget_protects_is_spared():
    async def story(here: Cluster) -> None:
        await here.node("a", cpu="2")
        await here.node("b", cpu="2")
        await priorities(here)
        await here.pod("guarded", requests={"cpu": "2"}, priorityClassName="low", labels={"app": "db"})
        await here.bound("guarded")
        await here.pod("free", requests={"cpu": "2"}, priorityClassName="low")
        (room,) = await here.bound("free")
        await budget(here, "db", minAvailable=1)
        await here.pod("urgent", requests={"cpu": "2"}, priorityClassName="high")
        await is_waiting(here, "urgent")
        await leave(here, "free")
        assert await here.bound("urgent") == [room]
        assert not await _is_going(here, "guarded")

    tell(story)


def test_of_two_budgets_the_one_that_allows_it_is_used():
    """The disruption controller counts. Its pod has the higher priority and would be spared otherwise."""

    async def story(here: Cluster) -> None:
        await here.start_controllers(DISRUPTION)
        await here.node("a", cpu="2")
        await here.node("b", cpu="2")
        await priorities(here)
        for name, least, priority in (("guarded", 1, "low"), ("spare", 0, "middle")):
            await budget(here, name, minAvailable=least)
            labels = {"app": name}
            await here.pod(name, requests={"cpu": "2"}, priorityClassName=priority, labels=labels)
            await here.bound(name)
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await here.resource("pods").patch(name, {"status": ready}, NS, subresource="status")

        async def counted() -> bool:
            found = await here.all("poddisruptionbudgets")
            allowed = {one.name: (one.fields.get("status") or {}).get("disruptionsAllowed") for one in found}
            return allowed == {"guarded": 0, "spare": 1}

        await here.until(counted, "both budgets counted")
        await here.quiet()  # the scheduler hears of it too
        await here.pod("urgent", requests={"cpu": "2"}, priorityClassName="high")
        await is_waiting(here, "urgent")
        await leave(here, "spare")
        await here.bound("urgent")
        assert not await _is_going(here, "guarded")

    tell(story)
