"""Which slices make up each pool, kept from slice events, and how a write proves that this is current.

A write that hands out devices is decided on the slices as this server has seen them,
while another server on the same store may be ahead. So every write of a slice also
writes a mark, and whoever decides on a pool's slices compares the mark with the
revision that it has seen: if a slice has moved since, the write is refused, this
server catches up, and decides anew.

There is a fixed number of marks, and each stands for many pools: pools come and go
with their nodes, and a mark that went with its pool could come back as if nothing had
happened in between. Two pools with one mark cost each other a second attempt, where
the slices of one change at the moment at which devices of the other are handed out.

The capacity that nodes publish for numeric models is kept in the same way, with marks of
its own: `capacities` makes a pool of what a driver has on a node.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import msgspec

from allot.api import Quantity, errors, numeric, resource
from allot.numeric import Registry, TypeId, read_instances
from allot.store import Compare, Entry, Put

from ..reading.cache import Cache
from ..reading.history import Change
from ..storing.pending import FIRST_REVISION

holds = resource.holds
offers = resource.stock

_MARKS_MAX = 4096
_CATCH_UP_S = 10.0


class _Pool(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    driver: str = ""
    pool: _Pool = _Pool()
    node_name: str | None = None


class _SlicePlace(msgspec.Struct, frozen=True):
    """Where a slice belongs, read without the rest of it."""

    spec: _Spec = _Spec()


def _slice_place(stored: bytes) -> holds.PoolId:
    spec = msgspec.json.decode(stored, type=_SlicePlace).spec
    return spec.driver, spec.pool.name


def _slice_stock(stored: Sequence[bytes]) -> offers.Stock:
    return offers.read(msgspec.json.decode(one, type=offers.OfferedSlice) for one in stored)


class Pools:
    def __init__(
        self,
        marks: str = "/pools/",
        place: Callable[[bytes], holds.PoolId] = _slice_place,
        read: Callable[[Sequence[bytes]], offers.Stock] = _slice_stock,
    ) -> None:
        """`place` says which pool a stored object is of, `read` what those of one pool offer, in the order
        of their names."""
        self._marks = marks
        self._place = place
        self._read = read
        self._slices: dict[holds.PoolId, dict[str, bytes]] = {}
        self._stock: dict[holds.PoolId, offers.Stock] = {}
        self._seen: dict[str, int] = {}  # mark -> its revision, as far as slices were seen
        self._cache: Cache | None = None

    def follow(self, slices: Cache) -> None:
        self._cache = slices
        slices.listeners.append(self.observe)

    def observe(self, change: Change) -> None:
        if change.previous is not None:
            self._forget(self._place(change.previous.stored), change.key)
        place = self._place(change.object.stored)
        if change.type != "DELETED":
            self._slices.setdefault(place, {})[change.key] = change.object.stored
            self._stock.pop(place, None)
        mark = self._mark(place)
        self._seen[mark] = max(change.revision, self._seen.get(mark, 0))

    def stock(self, pool: holds.PoolId) -> offers.Stock:
        """What the pool's slices offer."""
        found = self._stock.get(pool)
        if found is None:
            if pool not in self._slices:
                return offers.EMPTY  # not kept: anybody can name pools that nobody publishes
            found = self._read([stored for _, stored in sorted(self._slices[pool].items())])
            self._stock[pool] = found
        return found

    def publishers(self, pool: holds.PoolId) -> frozenset[str]:
        """The nodes whose slices make up the pool; "" for slices that are not of one node."""
        places = (
            msgspec.json.decode(stored, type=_SlicePlace) for stored in self._slices.get(pool, {}).values()
        )
        return frozenset(place.spec.node_name or "" for place in places)

    def unchanged(self, pool: holds.PoolId) -> Compare:
        """Holds as long as the pool's slices are those that this server has seen."""
        mark = self._mark(pool)
        return Compare(mark, self._seen.get(mark, 0))

    def changed(self, pool: holds.PoolId) -> Put:
        """What a write of one of the pool's slices writes besides."""
        return Put(self._mark(pool), b"{}")

    async def catch_up(self, current: Mapping[str, Entry | None]) -> None:
        """See what the marks among `current` stand for, so that the next attempt is decided on it."""
        for key, entry in current.items():
            if not key.startswith(self._marks) or self._cache is None:
                continue
            revision = entry.revision if entry is not None else 0
            if revision >= FIRST_REVISION:
                raise errors.BadRequest(
                    "a transaction that writes resource slices cannot also hand out devices of their pools: "
                    "send the slices first"
                )
            if not await self._cache.reach(revision, _CATCH_UP_S):
                raise errors.Unavailable(
                    f"the resource slices of revision {revision} have not reached this server",
                    retry_after_s=1,
                )
            self._seen[key] = revision

    def _mark(self, pool: holds.PoolId) -> str:
        return f"{self._marks}{crc32('/'.join(pool).encode()) % _MARKS_MAX}"

    def _forget(self, pool: holds.PoolId, key: str) -> None:
        slices = self._slices.get(pool, {})
        slices.pop(key, None)
        if not slices:
            self._slices.pop(pool, None)
        self._stock.pop(pool, None)


def pool_of(slice: Mapping[str, Any]) -> holds.PoolId:
    """The pool of a slice; what it does not say is empty."""
    spec = slice.get("spec") or {}
    return spec.get("driver") or "", (spec.get("pool") or {}).get("name") or ""


# -- what nodes have of numeric models ------------------------------------------------------------


class _CapacityPlace(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    driver_name: str = ""


def capacities(models: Registry) -> Pools:
    """Instances are devices that are shared; of one that two objects have, the first by name counts, and of
    more than NODE_INSTANCES_MAX those of the first objects."""

    def read(stored: Sequence[bytes]) -> offers.Stock:
        devices: dict[str, offers.Offer] = {}
        counted = 0
        for one in stored:
            listed = msgspec.json.decode(one, type=numeric.NodeResourceCapacity).instances
            if counted + len(listed) > numeric.limits.NODE_INSTANCES_MAX:
                continue
            counted += len(listed)
            for id, offer in _instance_offers(listed, models).items():
                devices.setdefault(id, offer)
        return offers.Stock(devices=devices)

    return Pools("/capacities/", _capacity_place, read)


def capacity_pool(fields: Mapping[str, Any]) -> holds.PoolId:
    return fields.get("driverName") or "", numeric.limits.pool_of(fields.get("nodeName") or "")


def _capacity_place(stored: bytes) -> holds.PoolId:
    place = msgspec.json.decode(stored, type=_CapacityPlace)
    return place.driver_name, numeric.limits.pool_of(place.node_name)


def _instance_offers(
    listed: Sequence[numeric.NodeResourceInstance], models: Registry
) -> Mapping[str, offers.Offer]:
    """What is of a model that nobody here knows is shared unmeasured; what cannot be read offers nothing."""
    found: dict[str, offers.Offer] = {}
    read, unreadable = read_instances(listed, models)
    for instance in read:
        amounts = {name: str(Quantity.of(amount)) for name, amount in instance.amounts.items()}
        found[instance.id] = offers.Offer(shared=True, capacity=amounts, in_parts=True)
    known = {*found, *(one.id for one in unreadable)}
    for one in listed:
        if one.id not in known and models.for_capacity(TypeId(one.api_version, one.kind)) is None:
            found[one.id] = offers.Offer(shared=True, unmeasured=True)
    return found
