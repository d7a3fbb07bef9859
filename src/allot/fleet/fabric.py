"""Accelerators on a fabric: every node of a rack reaches all of the rack's devices.

They belong to no node, so the slices name the nodes by label.
"""

from typing import Any

from allot.api import resource

Fields = dict[str, Any]

DRIVER = "fabric.example.com"
RACK = "fabric.example.com/rack"
RACK_NODES = 16
RACK_DEVICES = 32


def rack_of(number: int) -> str:
    """The rack of the `number`-th node."""
    return f"rack-{number // RACK_NODES}"


def accelerators(rack: str, count: int = RACK_DEVICES) -> resource.pools.Pool:
    devices = [
        {
            "name": f"acc-{at}",
            "attributes": {"type": {"string": "accelerator"}, "generation": {"int": 2}},
            "capacity": {"memory": {"value": "96Gi"}},
        }
        for at in range(count)
    ]
    return resource.pools.Pool(DRIVER, rack, devices, reached_by={RACK: rack})
