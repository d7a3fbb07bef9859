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
"""

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import msgspec

from allot.api import errors, resource
from allot.store import Compare, Entry, Put

from ..reading.cache import Cache
from ..reading.history import Change
from ..storing.pending import FIRST_REVISION

holds = resource.holds
offers = resource.stock

_MARKS = "/pools/"
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


class Pools:
    def __init__(self) -> None:
        self._slices: dict[holds.PoolId, dict[str, bytes]] = {}
        self._stock: dict[holds.PoolId, offers.Stock] = {}
        self._seen: dict[str, int] = {}  # mark -> its revision, as far as slices were seen
        self._cache: Cache | None = None

    def follow(self, slices: Cache) -> None:
        self._cache = slices
        slices.listeners.append(self.observe)

    def observe(self, change: Change) -> None:
        if change.previous is not None:
            self._forget(_place(change.previous.stored), change.key)
        place = _place(change.object.stored)
        if change.type != "DELETED":
            self._slices.setdefault(place, {})[change.key] = change.object.stored
            self._stock.pop(place, None)
        mark = _mark(place)
        self._seen[mark] = max(change.revision, self._seen.get(mark, 0))

    def stock(self, pool: holds.PoolId) -> offers.Stock:
        """What the pool's slices offer."""
        found = self._stock.get(pool)
        if found is None:
            if pool not in self._slices:
                return offers.EMPTY  # not kept: anybody can name pools that nobody publishes
            slices = sorted(self._slices[pool].items())
            decoded = (msgspec.json.decode(stored, type=offers.OfferedSlice) for _, stored in slices)
            found = self._stock[pool] = offers.read(decoded)
        return found

    def publishers(self, pool: holds.PoolId) -> frozenset[str]:
        """The nodes whose slices make up the pool; "" for slices that are not of one node."""
        places = (
            msgspec.json.decode(stored, type=_SlicePlace) for stored in self._slices.get(pool, {}).values()
        )
        return frozenset(place.spec.node_name or "" for place in places)

    def unchanged(self, pool: holds.PoolId) -> Compare:
        """Holds as long as the pool's slices are those that this server has seen."""
        mark = _mark(pool)
        return Compare(mark, self._seen.get(mark, 0))

    def changed(self, pool: holds.PoolId) -> Put:
        """What a write of one of the pool's slices writes besides."""
        return Put(_mark(pool), b"{}")

    async def catch_up(self, current: Mapping[str, Entry | None]) -> None:
        """See what the marks among `current` stand for, so that the next attempt is decided on it."""
        for key, entry in current.items():
            if not key.startswith(_MARKS) or self._cache is None:
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


def _place(stored: bytes) -> holds.PoolId:
    spec = _spec(stored)
    return spec.driver, spec.pool.name


def _spec(stored: bytes) -> _Spec:
    return msgspec.json.decode(stored, type=_SlicePlace).spec


def _mark(pool: holds.PoolId) -> str:
    return f"{_MARKS}{crc32('/'.join(pool).encode()) % _MARKS_MAX}"
