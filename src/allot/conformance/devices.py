"""Which devices a case may use: published by the driver, on its node, whole, and in nobody's hands. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from allot.api import Object, resource


class Free(NamedTuple):
    pool: str
    device: str


class ManyNodes(Exception):
    """The driver has devices on several nodes, and nobody said which is meant."""


def newest(slices: Iterable[resource.ResourceSlice]) -> dict[str, list[resource.ResourceSlice]]:
    """By pool, the slices of its newest generation."""
    pools: dict[str, list[resource.ResourceSlice]] = {}
    for one in slices:
        pools.setdefault(one.spec.pool.name, []).append(one)
    return {
        name: [one for one in own if one.spec.pool.generation == max(o.spec.pool.generation for o in own)]
        for name, own in pools.items()
    }


def node_of(slices: Sequence[resource.ResourceSlice], named: str) -> str:
    """Raises ManyNodes."""
    nodes = sorted({one.spec.node_name for one in slices if one.spec.node_name})
    if named or len(nodes) <= 1:
        return named or "".join(nodes)
    raise ManyNodes(f"the driver has devices on {', '.join(nodes[:5])}: say with --node which one this is")


def free(
    slices: Iterable[resource.ResourceSlice], claims: Iterable[Object], driver: str, node: str
) -> list[Free]:
    """Those that need no share of something come first; the rest is left to others."""
    taken = set()
    for claim in claims:
        allocation = claim.view(resource.ResourceClaim).status.allocation
        if allocation is not None:
            taken |= {(one.pool, one.device) for one in allocation.devices.results if one.driver == driver}
    mine = [one for one in slices if one.spec.node_name == node]
    return [
        Free(pool, device.name)
        for pool, own in newest(mine).items()
        for one in own
        for device in one.spec.devices
        if not device.allow_multiple_allocations and (pool, device.name) not in taken
    ]
