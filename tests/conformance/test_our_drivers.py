"""All drivers of ours conform: whole devices, partitions, shares."""

import pytest

from allot.api import Object, encode, resource
from allot.conformance.devices import Free, free
from allot.drivers import sim
from allot.fleet import CATALOGUE
from driver.world import NODE

from .conforming import not_tried

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
    (driver,) = [one for one in sim.drivers(fleet, NODE, build) if one.name == name]
    left = not_tried(lambda: driver)
    assert left == ({"order does not matter"} if fleet == "edge" else set()), "one has no second device"


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
