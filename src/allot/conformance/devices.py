"""Which devices a case may use: published by the driver, on its node, and in nobody's hands. Pure.

They may be used all at once: of devices that draw on the same counters there is one, and of a device that
claims share there are as many shares as fit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from allot.api import Object, Quantity, resource

SHARES_MAX: Final = 4
"""Of one device: no case needs more."""


class Free(NamedTuple):
    pool: str
    device: str
    consumes: Mapping[str, str] | None = None  # capacity of a share; None: the device is had whole


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
    taken: set[tuple[str, str]] = set()
    for claim in claims:
        allocation = claim.view(resource.ResourceClaim).status.allocation
        if allocation is not None:
            taken |= {(one.pool, one.device) for one in allocation.devices.results if one.driver == driver}
    mine = newest(one for one in slices if one.spec.node_name == node)
    devices = [(pool, device) for pool, own in mine.items() for one in own for device in one.spec.devices]
    drawn = {
        (pool, use.counter_set)
        for pool, device in devices
        if (pool, device.name) in taken
        for use in device.consumes_counters
    }
    found: list[Free] = []
    for pool, device in devices:
        counters = {(pool, use.counter_set) for use in device.consumes_counters}
        if (pool, device.name) not in taken and not counters & drawn:
            drawn |= counters
            found += _offered(pool, device)
    return found


def _offered(pool: str, device: resource.Device) -> Iterator[Free]:
    if not device.allow_multiple_allocations:
        yield Free(pool, device.name)
        return
    share = {name: _least(capacity) for name, capacity in device.capacity.items()}
    left = {name: Quantity.parse(capacity.value) for name, capacity in device.capacity.items()}
    for _ in range(SHARES_MAX):
        left = {name: amount - Quantity.parse(share[name]) for name, amount in left.items()}
        if any(amount.sign < 0 for amount in left.values()):
            return
        yield Free(pool, device.name, share)


def _least(capacity: resource.DeviceCapacity) -> str:
    """What a claim takes that asks for nothing in particular."""
    policy = capacity.request_policy
    return (policy.default if policy is not None else None) or capacity.value
