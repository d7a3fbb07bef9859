"""Who holds what in one pool, as a record that a write changes together with a claim.

Where it sits
    Two claims are two objects, so comparing a claim's own revision cannot stop one
    device from going to both. The API server therefore keeps one record per pool
    and writes it in the same transaction as a claim's `status.allocation`: of two
    writers that hand out the same device, the second meets the record as the first
    leaves it, sees the overlap and gets a 409.

What it promises
    HOLD1  A device is held once, or in several different shares where its slice allows
           several allocations; by one claim as by many.
    HOLD2  What is taken anew never brings the shares of a device above its capacity, nor
           the draws of a pool's devices above a counter set, nor devices together that draw
           from one set without a compatibility group in common.
    HOLD3  A claim's devices are freed all at once, and only its own.
    HOLD4  Administrator access holds nothing and is never in anybody's way.
    HOLD5  Slices that change, shrink or vanish make nobody forget what is held: as long as
           a device is held, the record knows what it draws, what it may share, and what the
           counter sets had that it draws from.

How much there is
    Where the slices name a device or a counter they are believed, also when they have
    less than is in use: then nothing more is given. Where they no longer name it, what
    the record remembers counts. A held device draws what it drew when it was taken, or
    what its slice says now if that is more.

    A share says of every capacity of its device how much it consumes, as the allocator
    does (`allocation.capacity`: what was not requested takes the policy's default, or
    all). One that is silent about a capacity could be counted as nothing or as all of
    it; it is refused instead. Names may carry the driver's domain or leave it out.
    Instances of numeric models are taken in parts: a share names the slots or zones that
    it takes, at least one, and takes nothing of the others.

    A device of which nobody here knows how much there is (the instance of a numeric model that this server
    does not have) is shared without being measured: what is held whole is held once, and that is all.

    A device that no slice names can be held, by one claim. What it draws is not known,
    so it is not held in a pool with counters, and while it is held no device of its
    pool that draws is taken.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ..kind import Fields
from ..meta import View
from ..quantity import Quantity
from .stock import EMPTY, Counters, Groups, Offer, Stock
from .types import Amount, DeviceRequestAllocationResult

PoolId = tuple[str, str]
"""Driver and pool name."""


class Holder(View, frozen=True):
    claim: str  # uid
    share_id: str | None = msgspec.field(default=None, name="shareID")
    capacity: Mapping[str, Amount] = {}


class HeldDevice(View, frozen=True):
    """Who holds a device, and what was known of it when it was last taken. HOLD5."""

    holders: tuple[Holder, ...] = ()
    counters: Mapping[str, Mapping[str, Amount]] = {}
    groups: Mapping[str, tuple[str, ...]] = {}
    shared: bool = False
    capacity: Mapping[str, Amount] = {}  # of a device that is shared
    unlisted: bool = False  # no slice has named it yet
    unmeasured: bool = False  # nobody here knows how much there is of it


class Record(View, frozen=True):
    """What is held in one pool, by device name, and what the counter sets had that it draws from."""

    devices: Mapping[str, HeldDevice] = {}
    counters: Mapping[str, Mapping[str, Amount]] = {}


class Refusal(NamedTuple):
    """Why something may not be held."""

    text: str


def read(stored: bytes | None) -> Record:
    return msgspec.json.decode(stored, type=Record) if stored else Record()


def write(record: Record) -> bytes:
    return msgspec.json.encode(record)


def held_by(claim: Fields | None) -> dict[PoolId, list[DeviceRequestAllocationResult]]:
    """The results of a claim that hold something, by pool. HOLD4."""
    held: dict[PoolId, list[DeviceRequestAllocationResult]] = {}
    for fields in results_of(claim):
        result = msgspec.convert(fields, DeviceRequestAllocationResult)
        if not result.admin_access:
            held.setdefault((result.driver, result.pool), []).append(result)
    return held


def results_of(claim: Fields | None) -> Sequence[Fields]:
    allocation = ((claim or {}).get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def hold(
    record: Record, claim: str, results: Sequence[DeviceRequestAllocationResult], stock: Stock = EMPTY
) -> Record | Refusal:
    """The record with `results`, and nothing else, held by `claim`; or why that may not be."""
    others = release(record, claim)
    devices = dict(others.devices)
    for result in results:
        before = devices.get(result.device)
        offer = stock.devices.get(result.device)
        holder = Holder(claim=claim, share_id=result.share_id, capacity=result.consumed_capacity)
        after = _with(before, holder, offer)
        totals = offer.capacity if offer is not None else after.capacity
        in_parts = offer is not None and offer.in_parts
        if text := _taken(before, after, result) or _overfull(after, result, totals, in_parts=in_parts):
            return Refusal(text)
        devices[result.device] = after
    counters = _totals(others.counters, stock.counters)
    if stock.counts or any(held.counters for held in devices.values()):
        drawing = {name: _drawing(held, stock.devices.get(name)) for name, held in devices.items()}
        new = [name for name in drawing if name not in others.devices]
        if text := _Pool(drawing, counters).refusal(new):
            return Refusal(text)
    return Record(devices=devices, counters=_still_drawn(counters, devices))


def release(record: Record, claim: str) -> Record:
    """The record without anything held by `claim`. HOLD3."""
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
            devices[name] = msgspec.structs.replace(before, holders=left)
    return Record(devices=devices, counters=_still_drawn(record.counters, devices))


def _with(before: HeldDevice | None, holder: Holder, offer: Offer | None) -> HeldDevice:
    known = _known(before or HeldDevice(unlisted=True), offer)
    return msgspec.structs.replace(known, holders=(*known.holders, holder))


def _known(held: HeldDevice, offer: Offer | None) -> HeldDevice:
    """What is known of a device from when it was taken, and from what its slice says now. HOLD5."""
    if offer is None:
        return held
    drawing = _drawing(held, offer)
    return HeldDevice(
        holders=held.holders,
        counters=drawing.counters,
        groups=drawing.groups,
        shared=offer.shared,
        capacity=offer.capacity if offer.shared else {},
        unmeasured=offer.unmeasured,
    )


def _drawing(held: HeldDevice, offer: Offer | None) -> HeldDevice:
    """The same, as far as it is about counters."""
    if offer is None or (offer.counters == held.counters and not held.unlisted):
        return held
    return msgspec.structs.replace(
        held,
        counters=_most(held.counters, offer.counters),
        groups={**_of_other_sets(offer.groups, held.counters), **held.groups},
        unlisted=False,
    )


def _of_other_sets(groups: Groups, counters: Counters) -> Groups:
    return {name: group for name, group in groups.items() if name not in counters}


def _most(before: Counters, now: Counters) -> Counters:
    if not before or before == now:
        return now
    return {name: _larger(before.get(name, {}), now.get(name, {})) for name in {**before, **now}}


def _larger(before: Mapping[str, Amount], now: Mapping[str, Amount]) -> Mapping[str, Amount]:
    kept = {name: amount for name, amount in before.items() if _nano(amount) > _nano(now.get(name, "0"))}
    return {**before, **now, **kept}


def _taken(before: HeldDevice | None, after: HeldDevice, result: DeviceRequestAllocationResult) -> str | None:
    """HOLD1."""
    if before is None:
        return None
    name, claim = _full_name(result), after.holders[-1].claim
    who = "another claim" if any(one.claim != claim for one in before.holders) else "this claim already"
    if result.share_id is None:
        return f"device {name} is held by {who}"
    if any(holder.share_id is None for holder in before.holders):
        return f"device {name} is held by {who}, which does not share it"
    if not after.shared:
        return f"device {name} is held by {who}, and no slice allows several allocations of it"
    if any(holder.share_id == result.share_id for holder in before.holders):
        return f"share {result.share_id} of device {name} is held by {who}"
    return None


def _overfull(
    device: HeldDevice,
    result: DeviceRequestAllocationResult,
    totals: Mapping[str, Amount],
    *,
    in_parts: bool = False,
) -> str | None:
    """HOLD2, for shares of one device."""
    consumed = result.consumed_capacity
    if device.unlisted or device.unmeasured or not (consumed or totals):
        return None
    name, driver = _full_name(result), result.driver
    named = dict.fromkeys(_spelled(key, totals, driver) for key in consumed)
    for key in named:
        if key not in totals:
            return f"device {name} has no capacity {key}"
    for key, total in totals.items():
        if key in named:
            amounts = [
                amount
                for holder in device.holders
                for other, amount in holder.capacity.items()
                if other == key or _spelled(other, totals, driver) == key
            ]
            if _sum_nano(amounts) > _nano(total):
                return f"the shares of device {name} need {_sum(amounts)} of {key}, which has {total}"
        elif device.shared and result.share_id is not None and not (in_parts and named):
            return f"share {result.share_id} of device {name} does not say how much it consumes of {key}"
    return None


def _spelled(name: str, known: Mapping[str, Amount], driver: str) -> str:
    """The name as its slice has it: `memory` and, of the driver's own, `gpu.example.com/memory` are one."""
    if name in known:
        return name
    domain, slash, bare = name.partition("/")
    other = bare if slash and domain == driver else f"{driver}/{name}"
    return other if other in known else name


class _Pool(NamedTuple):
    """What would draw from the counters of a pool, and what they have. HOLD2."""

    devices: Mapping[str, HeldDevice]
    counters: Counters

    def refusal(self, new: Sequence[str]) -> str | None:
        for name in new:
            if text := self._unknown(name) or self._overdrawn(name):
                return text
        return self._incompatible(new)

    def _unknown(self, name: str) -> str | None:
        """What a device draws that no slice names, nobody knows."""
        if self.devices[name].unlisted:
            return f"no slice has device {name}, so what it draws from the counters of its pool is not known"
        for other, held in self.devices.items() if self.devices[name].counters else ():
            if held.unlisted:
                return f"device {name} draws from counters, and what {other} draws is not known"
        return None

    def _overdrawn(self, name: str) -> str | None:
        """A device draws once, however often it is shared."""
        for set_name, draws in self.devices[name].counters.items():
            drawn = [held.counters[set_name] for held in self.devices.values() if set_name in held.counters]
            totals = self.counters.get(set_name, {})
            for counter, amount in draws.items():
                if _nano(amount) <= 0:
                    continue
                where = f"counter {set_name}/{counter}"
                if counter not in totals:
                    return f"device {name} draws from {where}, which no slice of its pool has"
                amounts = [one[counter] for one in drawn if counter in one]
                if _sum_nano(amounts) > _nano(totals[counter]):
                    return f"the held devices need {_sum(amounts)} of {where}, which has {totals[counter]}"
        return None

    def _incompatible(self, new: Iterable[str]) -> str | None:
        """Devices without a group go together, and with no other."""
        for set_name in dict.fromkeys(one for name in new for one in self.devices[name].counters):
            drawing = [held for held in self.devices.values() if set_name in held.counters]
            groups = [frozenset(held.groups.get(set_name, ())) for held in drawing]
            if any(groups) and not frozenset.intersection(*groups):
                return f"the held devices that draw from {set_name} have no compatibility group in common"
        return None


def _totals(remembered: Counters, offered: Counters) -> Counters:
    """HOLD5."""
    if not remembered or remembered == offered:
        return offered
    return {name: {**remembered.get(name, {}), **offered.get(name, {})} for name in {**remembered, **offered}}


def _still_drawn(counters: Counters, devices: Mapping[str, HeldDevice]) -> Counters:
    if not counters:
        return counters
    drawn = {name for held in devices.values() for name in held.counters}
    return {name: amounts for name, amounts in counters.items() if name in drawn}


def _full_name(result: DeviceRequestAllocationResult) -> str:
    return f"{result.driver}/{result.pool}/{result.device}"


def _nano(amount: Amount) -> int:
    return Quantity.parse(amount).nano


def _sum_nano(amounts: Iterable[Amount]) -> int:
    return sum(nano for amount in amounts if (nano := _nano(amount)) > 0)


def _sum(amounts: Iterable[Amount]) -> Quantity:
    """Of what is consumed. Nobody gives anything back by consuming less than nothing."""
    parsed = (Quantity.parse(amount) for amount in amounts)
    return sum((one for one in parsed if one.nano > 0), start=Quantity(0))
