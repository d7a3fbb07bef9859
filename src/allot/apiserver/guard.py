"""No device is given twice, whoever writes the claims (D1, D2).

Two claims are two objects, so comparing a claim with itself cannot stop two
schedulers from handing one device to both. Every write that changes what a claim
holds therefore also compares and writes the hold records of the pools concerned
(`allot.api.resource.holds`), in the same transaction.
"""

from typing import NamedTuple

import msgspec

from allot.api import Fields, Kind, errors, resource
from allot.store import Compare, Delete, Put

from .history import Change
from .occasion import WriteOccasion
from .repository import Repository

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
            decoded = [msgspec.json.decode(stored, type=resource.ResourceSlice) for stored in slices]
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


class Moved(NamedTuple):
    """What one pool's record must become."""

    key: str
    revision: int
    record: holds.Record


class DeviceGuard:
    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.pools = PoolSlices()

    async def guard(
        self, kind: Kind, old: Fields | None, new: Fields | None, occasion: WriteOccasion
    ) -> None:
        """Add to the write what the records of its pools must be and become."""
        if kind.group != "resource.k8s.io" or kind.plural != "resourceclaims":
            return
        before, after = holds.held_by(old), holds.held_by(new)
        if before == after:
            return
        metadata = (new or old or {})["metadata"]
        for pool in sorted({*before, *after}):
            moved = await self._move(pool, metadata, after.get(pool, []))
            occasion.compares.append(Compare(moved.key, moved.revision))
            if moved.record.devices:
                occasion.extra_writes.append(Put(moved.key, holds.write(moved.record)))
            elif moved.revision:
                occasion.extra_writes.append(Delete(moved.key))

    async def _move(
        self, pool: holds.PoolId, metadata: Fields, wanted: list[resource.DeviceRequestAllocationResult]
    ) -> Moved:
        key, uid = f"{HOLDS}{pool[0]}/{pool[1]}", metadata["uid"]
        entry = await self._repository.store.get(key)
        record = holds.read(entry.value if entry else None)
        revision = entry.revision if entry else 0
        if not wanted:
            return Moved(key, revision, holds.release(record, uid))
        stock = self.pools.stock(pool)
        text = holds.overlap(record, uid, wanted, stock)
        if text is not None:
            what = f'resourceclaims.resource.k8s.io "{metadata["name"]}"'
            raise errors.Conflict(
                f"Operation cannot be fulfilled on {what}: {text}",
                group="resource.k8s.io",
                kind="resourceclaims",
                name=metadata["name"],
            )
        return Moved(key, revision, holds.hold(record, uid, wanted, stock))
