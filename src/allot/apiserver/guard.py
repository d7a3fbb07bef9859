"""No device is given twice, whoever writes the claims (D1, D2).

Two claims are two objects, so comparing a claim with itself cannot stop two
schedulers from handing one device to both. Every write that changes what a claim
holds therefore also revises the hold records of the pools concerned
(`allot.api.resource.holds`), in the same transaction.
"""

from functools import partial

import msgspec

from allot.api import Fields, Kind, errors, resource
from allot.store import Revise

from .history import Change
from .occasion import WriteOccasion

holds = resource.holds

HOLDS = "/holds/"


class _Pool(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True):
    driver: str = ""
    pool: _Pool = _Pool()


class _SlicePlace(msgspec.Struct, frozen=True):
    """Where a slice belongs, read without the rest of it."""

    spec: _Spec = _Spec()


class PoolSlices:
    """Which slices make up each pool, and what they offer, kept from slice events."""

    def __init__(self) -> None:
        self._slices: dict[holds.PoolId, dict[str, bytes]] = {}
        self._stock: dict[holds.PoolId, holds.Stock] = {}

    def observe(self, change: Change) -> None:
        if change.previous is not None:
            self._forget(_place(change.previous.stored), change.key)
        if change.type != "DELETED":
            place = _place(change.object.stored)
            self._slices.setdefault(place, {})[change.key] = change.object.stored
            self._stock.pop(place, None)

    def stock(self, pool: holds.PoolId) -> holds.Stock:
        found = self._stock.get(pool)
        if found is None:
            if pool not in self._slices:
                return holds.stock([])  # not kept: anybody can name pools that nobody publishes
            slices = self._slices[pool].values()
            decoded = [msgspec.json.decode(stored, type=holds.OfferedSlice) for stored in slices]
            found = self._stock[pool] = holds.stock(decoded)
        return found

    def _forget(self, pool: holds.PoolId, key: str) -> None:
        slices = self._slices.get(pool, {})
        slices.pop(key, None)
        if not slices:
            self._slices.pop(pool, None)
        self._stock.pop(pool, None)


def _place(stored: bytes) -> holds.PoolId:
    place = msgspec.json.decode(stored, type=_SlicePlace)
    return place.spec.driver, place.spec.pool.name


class DeviceGuard:
    def __init__(self) -> None:
        self.pools = PoolSlices()

    def guard(self, kind: Kind, old: Fields | None, new: Fields | None, occasion: WriteOccasion) -> None:
        """Add to the write what the records of its pools must become.

        The store is told how, not what: allocations in one pool that meet on their way to the disk
        follow each other there, and none of them starts over.
        """
        if kind.group != "resource.k8s.io" or kind.plural != "resourceclaims":
            return
        if holds.results_of(old) == holds.results_of(new):
            return  # most writes to a claim are about something else
        before, after = holds.held_by(old), holds.held_by(new)
        if before == after:
            return
        metadata = (new or old or {})["metadata"]
        for pool in sorted({*before, *after}):
            make = partial(self._moved, pool, metadata["uid"], metadata["name"], after.get(pool, []))
            occasion.extra_writes.append(Revise(f"{HOLDS}{pool[0]}/{pool[1]}", make))

    def _moved(
        self,
        pool: holds.PoolId,
        uid: str,
        name: str,
        wanted: list[resource.DeviceRequestAllocationResult],
        stored: bytes | None,
    ) -> bytes | None:
        """What the record becomes when the claim holds `wanted`. Raises Conflict."""
        record = holds.read(stored)
        if not wanted:
            return _written(holds.release(record, uid))
        stock = self.pools.stock(pool)
        text = holds.overlap(record, uid, wanted, stock)
        if text is not None:
            raise errors.Conflict(
                f'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "{name}": {text}',
                group="resource.k8s.io",
                kind="resourceclaims",
                name=name,
            )
        return _written(holds.hold(record, uid, wanted, stock))


def _written(record: holds.Record) -> bytes | None:
    return holds.write(record) if record.devices else None
