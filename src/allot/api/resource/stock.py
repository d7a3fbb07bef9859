"""What the slices of one pool offer, as far as it decides who may hold what.

A slice may be outdated by a newer generation before the devices that it listed are
given back, and a new generation arrives piece by piece. So nothing that some slice
says is forgotten while the slice exists: of each device and of each counter set, the
newest slice that names it counts, and among equals the first by name.

Most of a slice are attributes, and those are not read here.
"""

from collections.abc import Iterable, Mapping

from ..meta import View
from .types import Amount, CounterSet, DeviceCounterConsumption, ResourcePool

Counters = Mapping[str, Mapping[str, Amount]]
"""Counter set -> counter -> amount."""

Groups = Mapping[str, tuple[str, ...]]
"""Counter set -> compatibility groups."""


class Offer(View, frozen=True):
    """One device: whether several claims may share it, what they share, and what it draws."""

    shared: bool = False
    capacity: Mapping[str, Amount] = {}
    counters: Mapping[str, Mapping[str, Amount]] = {}
    groups: Mapping[str, tuple[str, ...]] = {}
    unmeasured: bool = False  # it is shared, and nobody here knows how much there is of it
    in_parts: bool = False  # a share names what it takes, and takes nothing of the rest


class Stock(View, frozen=True):
    """What a pool has: its devices by name, and the counters that they draw from."""

    devices: Mapping[str, Offer] = {}
    counters: Mapping[str, Mapping[str, Amount]] = {}
    counts: bool = False  # whether there are counters, or devices that draw from some


EMPTY = Stock()


class OfferedCapacity(View, frozen=True):
    value: Amount = "0"


class OfferedDevice(View, frozen=True):
    name: str = ""
    capacity: Mapping[str, OfferedCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    allow_multiple_allocations: bool | None = None


class OfferedSpec(View, frozen=True):
    pool: ResourcePool = ResourcePool()
    devices: tuple[OfferedDevice, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class OfferedSlice(View, frozen=True):
    """What `read` reads of a slice."""

    spec: OfferedSpec = OfferedSpec()


def read(slices: Iterable[OfferedSlice]) -> Stock:
    """What the slices of one pool, in the order of their names, offer together."""
    specs = [one.spec for one in slices]
    specs.reverse()
    specs.sort(key=lambda spec: spec.pool.generation)  # what counts comes last
    devices = {device.name: _offer(device) for spec in specs for device in spec.devices}
    counters = {
        one.name: {name: counter.value for name, counter in one.counters.items()}
        for spec in specs
        for one in spec.shared_counters
    }
    counts = bool(counters) or any(offer.counters for offer in devices.values())
    return Stock(devices=devices, counters=counters, counts=counts)


_PLAIN = Offer()


def _offer(device: OfferedDevice) -> Offer:
    if not (device.capacity or device.consumes_counters or device.allow_multiple_allocations):
        return _PLAIN
    return Offer(
        shared=bool(device.allow_multiple_allocations),
        capacity={name: capacity.value for name, capacity in device.capacity.items()},
        counters={
            one.counter_set: {name: counter.value for name, counter in one.counters.items()}
            for one in device.consumes_counters
        },
        groups={
            one.counter_set: one.compatibility_groups
            for one in device.consumes_counters
            if one.compatibility_groups
        },
    )
