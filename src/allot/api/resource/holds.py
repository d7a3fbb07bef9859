"""Who holds what in one pool, as a record that a write changes together with a claim.

Where it sits
    Two claims are two objects, so comparing a claim's own revision cannot stop one
    device from going to both. The API server therefore keeps one record per pool
    and writes it in the same transaction as a claim's `status.allocation`: of two
    writers that hand out the same device, the second meets the record as the first
    leaves it, sees the overlap and gets a 409.

What it promises
    H1  A device is held by one claim, or by several that all share it.
    H2  Shares of a device do not add up to more than its capacity, and devices
        of different claims do not draw more from a counter set than it has, nor
        draw from one without having a compatibility group in common.
    H3  A claim's devices are freed all at once, and only its own.
    H4  Administrator access holds nothing and is never in anybody's way.

H2 needs to know what the pool has (`stock`, from its slices) and speaks up only
where two claims meet: one claim alone may hold what the slices no longer offer.
The record keeps what each device draws from counters, because a slice may be
gone while its device is still held.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..kind import Fields
from ..meta import View
from ..quantity import Quantity
from .types import (
    Amount,
    CounterSet,
    DeviceCounterConsumption,
    DeviceRequestAllocationResult,
    ResourcePool,
)

PoolId = tuple[str, str]
"""Driver and pool name."""

Counters = Mapping[str, Mapping[str, Amount]]
"""Counter set -> counter -> amount."""


class Holder(View, frozen=True):
    claim: str  # uid
    share_id: str | None = msgspec.field(default=None, name="shareID")
    capacity: Mapping[str, Amount] = {}


class HeldDevice(View, frozen=True):
    holders: tuple[Holder, ...] = ()
    counters: Mapping[str, Mapping[str, Amount]] = {}
    groups: Mapping[str, tuple[str, ...]] = {}  # by counter set


class Record(View, frozen=True):
    """What is held in one pool, by device name."""

    devices: Mapping[str, HeldDevice] = {}


class OfferedCapacity(View, frozen=True):
    value: Amount = "0"


class OfferedDevice(View, frozen=True):
    name: str = ""
    capacity: Mapping[str, OfferedCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()


class OfferedSpec(View, frozen=True):
    pool: ResourcePool = ResourcePool()
    devices: tuple[OfferedDevice, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class OfferedSlice(View, frozen=True):
    """What `stock` reads of a slice. Most of a slice are attributes, and those need not be made."""

    spec: OfferedSpec = OfferedSpec()


class Stock(View, frozen=True):
    """What a pool has: capacity and draw of each device, and the counters they draw from."""

    capacity: Mapping[str, Mapping[str, Amount]] = {}
    draws: Mapping[str, Counters] = {}
    groups: Mapping[str, Mapping[str, tuple[str, ...]]] = {}  # by device and counter set
    counters: Mapping[str, Mapping[str, Amount]] = {}


def read(stored: bytes | None) -> Record:
    return msgspec.json.decode(stored, type=Record) if stored else Record()


def write(record: Record) -> bytes:
    return msgspec.json.encode(record)


def held_by(claim: Fields | None) -> dict[PoolId, list[DeviceRequestAllocationResult]]:
    """The results of a claim that hold something, by pool. H4."""
    held: dict[PoolId, list[DeviceRequestAllocationResult]] = {}
    for fields in results_of(claim):
        result = msgspec.convert(fields, DeviceRequestAllocationResult)
        if not result.admin_access:
            held.setdefault((result.driver, result.pool), []).append(result)
    return held


def results_of(claim: Fields | None) -> Sequence[Fields]:
    allocation = ((claim or {}).get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def stock(slices: Iterable[OfferedSlice]) -> Stock:
    """What the slices of one pool offer, in their newest generation."""
    listed = list(slices)
    newest = max((one.spec.pool.generation for one in listed), default=0)
    specs = [one.spec for one in listed if one.spec.pool.generation == newest]
    devices = [device for spec in specs for device in spec.devices]
    return Stock(
        capacity={
            device.name: {name: capacity.value for name, capacity in device.capacity.items()}
            for device in devices
            if device.capacity
        },
        draws={
            device.name: {
                one.counter_set: {name: counter.value for name, counter in one.counters.items()}
                for one in device.consumes_counters
            }
            for device in devices
            if device.consumes_counters
        },
        groups={
            device.name: {
                one.counter_set: one.compatibility_groups
                for one in device.consumes_counters
                if one.compatibility_groups
            }
            for device in devices
            if device.consumes_counters
        },
        counters={
            one.name: {name: counter.value for name, counter in one.counters.items()}
            for spec in specs
            for one in spec.shared_counters
        },
    )


def overlap(
    record: Record,
    claim: str,
    results: Sequence[DeviceRequestAllocationResult],
    stock: Stock | None = None,
) -> str | None:
    """Why `claim` may not hold `results`, or None. What it holds already is no obstacle."""
    stock = stock or Stock()
    others = release(record, claim)
    for result in results:
        if text := _taken(others, result):
            return text
    shared = dict.fromkeys(result.device for result in results if result.device in others.devices)
    if not shared and not any(device.counters for device in others.devices.values()):
        return None  # they meet nobody
    after = hold(others, claim, results, stock)
    for name in shared:
        if text := _overfull(name, after.devices[name], stock.capacity.get(name, {})):
            return text
    return _overdrawn(others, after, stock.counters) or _incompatible(others, after)


def hold(
    record: Record, claim: str, results: Sequence[DeviceRequestAllocationResult], stock: Stock | None = None
) -> Record:
    """The record with `results`, and nothing else, held by `claim`."""
    devices = dict(release(record, claim).devices)
    for result in results:
        before = devices.get(result.device, HeldDevice())
        holder = Holder(claim=claim, share_id=result.share_id, capacity=result.consumed_capacity)
        draws = before.counters or (stock.draws.get(result.device, {}) if stock else {})
        groups = before.groups or (stock.groups.get(result.device, {}) if stock else {})
        devices[result.device] = HeldDevice(holders=(*before.holders, holder), counters=draws, groups=groups)
    return Record(devices=devices)


def release(record: Record, claim: str) -> Record:
    """The record without anything held by `claim`. H3."""
    touched = dict.fromkeys(
        name for name, device in record.devices.items() for holder in device.holders if holder.claim == claim
    )
    if not touched:
        return record
    devices = dict(record.devices)
    for name in touched:
        before = devices.pop(name)
        left = tuple(holder for holder in before.holders if holder.claim != claim)
        if left:
            devices[name] = HeldDevice(holders=left, counters=before.counters, groups=before.groups)
    return Record(devices=devices)


def _taken(others: Record, result: DeviceRequestAllocationResult) -> str | None:
    """H1."""
    device = others.devices.get(result.device)
    if device is None:
        return None
    name = f"{result.driver}/{result.pool}/{result.device}"
    if result.share_id is None:
        return f"device {name} is held by another claim"
    if any(holder.share_id is None for holder in device.holders):
        return f"device {name} is held by another claim that does not share it"
    if any(holder.share_id == result.share_id for holder in device.holders):
        return f"share {result.share_id} of device {name} is held by another claim"
    return None


def _overfull(name: str, device: HeldDevice, capacity: Mapping[str, Amount]) -> str | None:
    """H2, for shares of one device."""
    for key, total in capacity.items():
        taken = _sum(holder.capacity[key] for holder in device.holders if key in holder.capacity)
        if taken > Quantity.parse(total):
            return f"the shares of device {name} need {taken} of {key}, which has {total}"
    return None


def _overdrawn(others: Record, after: Record, counters: Counters) -> str | None:
    """H2, for devices that draw from the same counters. A device draws once, however often shared."""
    for set_name, available in counters.items():
        if not any(device.counters.get(set_name) for device in others.devices.values()):
            continue
        draws = [device.counters.get(set_name, {}) for device in after.devices.values()]
        for counter, total in available.items():
            taken = _sum(draw[counter] for draw in draws if counter in draw)
            if taken > Quantity.parse(total):
                return f"the held devices need {taken} of counter {set_name}/{counter}, which has {total}"
    return None


def _incompatible(others: Record, after: Record) -> str | None:
    """H2. Devices without a group go together, and with no other."""
    met = dict.fromkeys(name for device in others.devices.values() for name in device.counters)
    for set_name in met:
        drawing = [device for device in after.devices.values() if set_name in device.counters]
        groups = [frozenset(device.groups.get(set_name, ())) for device in drawing]
        if any(groups) and not frozenset.intersection(*groups):
            return f"the held devices that draw from {set_name} have no compatibility group in common"
    return None


def _sum(amounts: Iterable[Amount]) -> Quantity:
    return sum((Quantity.parse(amount) for amount in amounts), start=Quantity(0))
