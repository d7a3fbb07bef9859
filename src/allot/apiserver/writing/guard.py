"""What a write must keep true about other objects: no device is given twice (D1, D2; D7 in `compute_guard`).

Which guard a kind has is said by its table entry (`Kind.guard`); a guard is a row here.

Two claims are two objects, so comparing a claim with itself cannot stop two
schedulers from handing one device to both. Every write that changes what a claim
holds therefore also revises the hold records of the pools concerned
(`allot.api.resource.holds`), in the same transaction. What the pools have is known
from slices, which other servers may have changed: `pools` makes that a condition of
the transaction.
"""

from collections.abc import Callable, Mapping
from functools import partial

from allot.api import Fields, Guard, Kind, errors, numeric, resource
from allot.numeric import Registry
from allot.store import Refused, Revise

from ..deciding.context import ServerWriteContext
from ..deciding.pools import Pools, capacities, capacity_pool, pool_of
from .compute_guard import ComputeGuard, FindNode

holds = resource.holds

HOLDS = "/holds/"


Add = Callable[[Fields | None, Fields | None, ServerWriteContext], None]
"""Adds to the write of an object, from old to new, what else it changes and compares."""


class Guards:
    def __init__(self, find_node: FindNode, models: Registry) -> None:
        """`models` say how much of what nodes publish there is to be shared."""
        self.pools = Pools()
        self.capacities = capacities(models)
        self._rows: Mapping[Guard, Add] = {
            Guard.DEVICES_HELD: self._hold_devices,
            Guard.DEVICES_OFFERED: self._offer_devices,
            Guard.CAPACITY_OFFERED: self._offer_capacity,
            Guard.COMPUTE_HELD: ComputeGuard(find_node),
        }

    def guard(self, kind: Kind, old: Fields | None, new: Fields | None, context: ServerWriteContext) -> None:
        if kind.guard is not None:
            self._rows[kind.guard](old, new, context)

    async def catch_up(self, refused: Refused) -> None:
        """Learn what made the store refuse a write, where that was a slice."""
        await self.pools.catch_up(refused.current)
        await self.capacities.catch_up(refused.current)

    def _offer_devices(self, old: Fields | None, new: Fields | None, context: ServerWriteContext) -> None:
        """The mark of each pool that the slice is or was in."""
        pools = {pool_of(fields) for fields in (old, new) if fields is not None}
        context.extra_writes.extend(self.pools.changed(pool) for pool in sorted(pools))

    def _offer_capacity(self, old: Fields | None, new: Fields | None, context: ServerWriteContext) -> None:
        pools = {capacity_pool(fields) for fields in (old, new) if fields is not None}
        context.extra_writes.extend(self.capacities.changed(pool) for pool in sorted(pools))

    def _of(self, pool: holds.PoolId) -> Pools:
        return self.pools if numeric.limits.node_of(pool[1]) is None else self.capacities

    def _hold_devices(self, old: Fields | None, new: Fields | None, context: ServerWriteContext) -> None:
        """The records of the claim's pools.

        The store is told how they change, not to what: allocations in one pool that meet on
        their way to the disk follow each other there, and none of them starts over.
        """
        if holds.results_of(old) == holds.results_of(new):
            return  # most writes to a claim are about something else
        before, after = holds.held_by(old), holds.held_by(new)
        if before == after:
            return
        metadata = (new or old or {})["metadata"]
        for pool in sorted({*before, *after}):
            wanted = after.get(pool, [])
            if wanted and (compare := self._of(pool).unchanged(pool)) not in context.compares:
                context.compares.append(compare)
            make = partial(self._moved, pool, metadata["uid"], metadata["name"], wanted)
            context.extra_writes.append(Revise(f"{HOLDS}{pool[0]}/{pool[1]}", make))

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
        stock = self._of(pool).stock(pool)
        if numeric.limits.node_of(pool[1]) is not None:  # D6: what is not there has nothing to take
            for result in wanted:
                if result.device not in stock.devices:
                    raise _refused(name, f"instance {result.device} of {pool[0]} is not in {pool[1]}")
        held = holds.hold(record, uid, wanted, stock)
        if isinstance(held, holds.Refusal):
            raise _refused(name, held.text)
        return _written(held)


def _refused(claim: str, why: str) -> errors.Conflict:
    return errors.Conflict(
        f'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "{claim}": {why}',
        group="resource.k8s.io",
        kind="resourceclaims",
        name=claim,
    )


def _written(record: holds.Record) -> bytes | None:
    return holds.write(record) if record.devices else None
