"""Network cards whose bandwidth is shared: many claims, each with its part of a capacity."""

from typing import Any

from allot.api import resource

from .gpu import place

Fields = dict[str, Any]

DRIVER = "nic.example.com"


def nics(node: str, count: int, gigabits: int = 400) -> resource.pools.Pool:
    devices = [_nic(at, count, gigabits) for at in range(count)]
    return resource.pools.Pool(DRIVER, node, devices, node=node)


def _nic(at: int, count: int, gigabits: int) -> Fields:
    whole = f"{gigabits}G"
    policy = {"default": "10G", "validRange": {"min": "1G", "max": whole, "step": "1G"}}
    return {
        "name": f"nic-{at}",
        "attributes": {
            "type": {"string": "rdma"},
            "mtu": {"int": 9000},
            **place(at, count),
        },
        "allowMultipleAllocations": True,
        "capacity": {"bandwidth": {"value": whole, "requestPolicy": policy}},
    }
