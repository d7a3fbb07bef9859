"""All drivers of ours conform: whole devices, partitions, shares."""

import random

import pytest

from allot.api import Object, encode, resource
from allot.base import RandomIds
from allot.conformance import Settings, Verdict, play
from allot.conformance.devices import Free, free
from allot.driver import Node, Places, Surroundings, running
from allot.drivers import sim
from allot.fleet import CATALOGUE
from allot.wire import UnixSockets
from driver.world import NODE, tell, until

NEED_A_RESTART = {
    "a restarted driver knows its claims",
    "a restart between prepare and answer",
    "a reboot is survived",
}
DRIVERS = sorted(
    {
        (fleet, build.name, pool.driver)
        for fleet, design in CATALOGUE.items()
        for build in design.builds
        for pool in build.pools(NODE)
    }
)


@pytest.mark.parametrize(("fleet", "build", "name"), DRIVERS)
def test_a_driver_of_the_catalogue_conforms(fleet, build, name):
    async def story(world):
        (driver,) = [one for one in sim.drivers(fleet, NODE, build) if one.name == name]
        places = Places(driver.name, world.places.root, world.places.cdi)
        async with running(driver, Node(NODE), places, Surroundings(world.server.client())):
            await until(world.devices)
            settings = Settings(
                places.registration_socket,
                UnixSockets(),
                RandomIds(random.Random(1)),
                client=world.client,
                cdi=places.cdi,
            )
            return await play(settings)

    report = tell(story)
    assert report.failed == (), report.text()
    left = {one.case: one.seen for one in report.outcomes if one.verdict is Verdict.NOT_TRIED}
    assert set(left) == NEED_A_RESTART | ({"order does not matter"} if fleet == "edge" else set()), left


def test_shares_end_where_the_device_does():
    """Half a device to everybody who says nothing: two shares, and no third."""
    halves = {"memory": {"value": "8Gi", "requestPolicy": {"default": "4Gi"}}}
    whole = {"memory": {"value": "8Gi"}}
    devices = [
        {"name": "halves", "allowMultipleAllocations": True, "capacity": halves},
        {"name": "whole", "allowMultipleAllocations": True, "capacity": whole},
        {"name": "own"},
    ]
    spec = {"driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1}, "devices": devices}
    slice = Object(encode({"metadata": {"name": "s"}, "spec": spec})).view(resource.ResourceSlice)
    assert free([slice], [], "d", "n") == [
        Free("p", "halves", {"memory": "4Gi"}),
        Free("p", "halves", {"memory": "4Gi"}),
        Free("p", "whole", {"memory": "8Gi"}),
        Free("p", "own"),
    ]
    assert free([slice], [], "d", "elsewhere") == []
