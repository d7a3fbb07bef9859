"""How many more fit: exactly as many as the scheduler then places, and the next one waits."""

import random
from typing import Any

import pytest

from allot.allocation import Refused
from allot.api import meta, resource
from allot.base import RandomIds
from allot.scheduler import Room, read, room_for

from .cluster import NS, Cluster, Fields, slice_of, tell


async def room(here: Cluster, name: str = "one") -> Room:
    answer = await asked(here, name)
    assert isinstance(answer, Room), answer
    return answer


async def asked(here: Cluster, name: str = "one") -> Room | Refused:
    reading = await read(here.client, here.gates)
    assert not reading.unread
    found = await here.resource("resourceclaimtemplates").get(name, NS)
    spec = found.view(resource.ResourceClaimTemplate).spec.spec
    claim = resource.ResourceClaim(metadata=meta.ObjectMeta(name="one", namespace=NS), spec=spec)
    return room_for([claim], reading.snapshot, RandomIds(random.Random(1)))


async def nodes(here: Cluster, *names: str) -> None:
    for name in names:
        await here.node(name)


async def template(here: Cluster, **exactly: Any) -> None:
    await here.device_class()
    await here.template("one", **exactly)


# -- kinds of devices ---------------------------------------------------------------------------------


async def plain(here: Cluster) -> Room:
    """Two nodes with devices, one without; a claim takes two."""
    await nodes(here, "a", "b", "c")
    await here.devices("a", 4)
    await here.devices("b", 3)
    await template(here, count=2)
    return Room(3, {"a": 2, "b": 1, "c": 0}, {})


async def fabric(here: Cluster) -> Room:
    """Devices that every node reaches are had once."""
    await nodes(here, "a", "b")
    await here.create(
        "resourceslices", slice_of("rack", [{"name": f"x{n}"} for n in range(3)], allNodes=True)
    )
    await template(here)
    return Room(3, {"a": 3, "b": 3}, {})


async def consumable(here: Cluster) -> Room:
    """A NIC of 10G takes three shares of 3G."""
    await nodes(here, "a")
    nic = {"name": "nic", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10G"}}}
    await here.create("resourceslices", slice_of("a", [nic, {**nic, "name": "second"}]))
    await template(here, capacity={"requests": {"bandwidth": "3G"}})
    return Room(6, {"a": 6}, {})


async def partitions(here: Cluster) -> Room:
    """Halves and a whole that draw on one counter: two halves or one whole."""
    await nodes(here, "a")
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 2}
    counters = [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]

    def part(name: str, memory: str) -> Fields:
        drawn = [{"counterSet": "gpu", "counters": {"memory": {"value": memory}}}]
        return {"name": name, "consumesCounters": drawn, "attributes": {"part": {"bool": memory != "80Gi"}}}

    parts = [part("whole", "80Gi"), part("left", "40Gi"), part("right", "40Gi"), part("third", "40Gi")]
    for name, spec in (("counters", {"sharedCounters": counters}), ("parts", {"devices": parts})):
        fields = slice_of("a", (), pool=pool)
        fields["metadata"]["name"] = name
        fields["spec"].pop("devices")
        fields["spec"] |= spec
        await here.create("resourceslices", fields)
    selector = {"cel": {"expression": 'device.attributes["gpu.example.com"].part'}}
    await template(here, selectors=[selector])
    return Room(2, {"a": 2}, {})


async def cordoned(here: Cluster) -> Room:
    """What is on a node that takes no pods is shown, and not counted."""
    await nodes(here, "a", "b")
    for name in "ab":
        await here.devices(name, 2)
    await here.resource("nodes").patch("a", {"spec": {"unschedulable": True}})
    await template(here)
    return Room(2, {"a": 2, "b": 2}, {"a": "cordoned"})


async def unreachable(here: Cluster) -> Room:
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    await here.node("a", taints=[taint])
    await here.devices("a", 2)
    await nodes(here, "b")
    await here.devices("b", 1)
    await template(here)
    return Room(1, {"a": 2, "b": 1}, {"a": "unreachable"})


@pytest.mark.parametrize("fleet", [plain, fabric, consumable, partitions, cordoned, unreachable])
def test_as_many_fit_as_the_scheduler_then_places(fleet):
    async def story(here: Cluster) -> None:
        expected = await fleet(here)
        found = await room(here)
        assert found == expected
        assert found.total is not None
        names = [f"p{n}" for n in range(found.total)]
        for name in names:
            await here.pod(name, template="one")
        await here.bound(*names)
        assert (await room(here)).total == 0
        await here.pod("late", template="one")
        assert "cannot allocate all claims" in (await here.condition("late"))["message"]

    tell(story)


def test_what_others_have_is_not_there():
    async def story(here: Cluster) -> None:
        await plain(here)
        await here.pod("first", template="one")
        await here.bound("first")
        assert (await room(here)).total == 2

    tell(story)


def test_nodes_that_share_devices_are_said_to():
    async def story(here: Cluster) -> None:
        await fabric(here)
        found = await room(here)
        assert found.is_shared
        assert found.as_json() == {"total": 3, "nodes": {"a": 3, "b": 3}, "closed": {}, "undecided": []}

    tell(story, started=False)


def test_administrators_may_look_at_devices_any_number_of_times():
    """Their access takes nothing: counting would not end."""

    async def story(here: Cluster) -> None:
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await here.client.resource("", "v1", "namespaces", namespaced=False).patch(NS, label)
        await nodes(here, "a", "b")
        await here.devices("a", 1)
        await template(here, adminAccess=True)
        found = await room(here)
        assert (found.total, found.by_node) == (None, {"a": None, "b": 0})
        assert not found.is_shared

    tell(story, started=False)


def test_a_claim_that_asks_for_nothing_fits_any_number_of_times():
    """Nothing is taken by it either; and a node that is closed is closed for it too."""

    async def story(here: Cluster) -> None:
        await nodes(here, "a", "b")
        await here.resource("nodes").patch("a", {"spec": {"unschedulable": True}})
        fields = {"metadata": {"name": "one"}, "spec": {"spec": {}}}
        await here.create("resourceclaimtemplates", fields)
        assert await room(here) == Room(None, {"a": None, "b": None}, {"a": "cordoned"})

    tell(story, started=False)


def test_a_class_that_is_not_there_is_said():
    async def story(here: Cluster) -> None:
        await nodes(here, "a")
        await here.template("one", device_class="nothing")
        answer = await asked(here)
        assert isinstance(answer, Refused) and "device class nothing" in answer.error

    tell(story, started=False)


def test_a_selector_that_fails_on_every_device_is_said():
    async def story(here: Cluster) -> None:
        await nodes(here, "a")
        await here.devices("a", 1)
        await template(
            here, selectors=[{"cel": {"expression": 'device.attributes["gpu.example.com"].modle'}}]
        )
        answer = await asked(here)
        assert isinstance(answer, Refused) and "no such key: modle" in answer.error

    tell(story, started=False)


def test_an_empty_cluster_has_no_room():
    async def story(here: Cluster) -> None:
        await template(here)
        assert await room(here) == Room(0, {}, {})

    tell(story, started=False)
