"""Who holds each device.

Where it sits
    informers tell it what the server has accepted; the scheduler tells it what it
    has decided and not yet written; `question` asks it what is free. Nothing else
    in the program remembers which devices are taken.

What it promises
    LEDGER1  Of its own accord it gives a device to one claim, or shares of it to several;
             never both. Admin access is recorded and holds nothing.
    LEDGER2  `revision` grows whenever devices change hands, and only then; `moved_since`
             names their pools.
    LEDGER3  Cancelling never frees what the server has accepted.
    LEDGER4  What it says about a device is the sum of the claims' holds, so it can be
             rebuilt from the claims at any time.
    LEDGER5  A fork costs what is changed on it, and its parent never notices.

Why the server is believed
    A claim that the server has accepted is a fact, even where it takes a device that
    another claim holds: two schedulers may run, and a real Kubernetes does not guard
    devices. Refusing the fact would make the device look free once either claim goes.
    So both holds are kept, the device stays taken until the last of them is released,
    and the overlap is reported (D1). A plan of our own that overlaps is refused.

Why one object
    Upstream keeps accepted claims, claims in flight and shared capacity in three
    structures; readers that visited them in an unlucky order have handed one device
    to two pods. With one owner LEDGER1 is a local property.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from allot.api import Quantity, resource
from allot.base import Journal, Overlay, require

from .kind import DeviceId, PoolId

ClaimUid = str


class Taken(msgspec.Struct, frozen=True, gc=False):
    """One device of an allocation: whole, or a share of it with what the share consumes."""

    device: DeviceId
    share: str | None = None
    consumed: Mapping[str, Quantity] = {}
    admin: bool = False


def taken_by(allocation: resource.AllocationResult) -> tuple[Taken, ...]:
    """What an allocation in a claim's status holds. A share whose amounts cannot be read, or are below
    nothing, counts as the whole device: what nobody can tell is not given to others."""
    return tuple(_taken(result) for result in allocation.devices.results)


def _taken(result: resource.DeviceRequestAllocationResult) -> Taken:
    device, admin = DeviceId(result.driver, result.pool, result.device), bool(result.admin_access)
    try:
        consumed = {name: Quantity.parse(text) for name, text in result.consumed_capacity.items()}
    except (ValueError, TypeError):
        return Taken(device, admin=admin)
    if any(amount.sign < 0 for amount in consumed.values()):
        return Taken(device, admin=admin)
    return Taken(device, share=result.share_id, consumed=consumed, admin=admin)


class Hold(msgspec.Struct, frozen=True, gc=False):
    devices: tuple[Taken, ...]
    settled: bool  # the server has accepted it; until then it is in flight


class Usage(msgspec.Struct, frozen=True, gc=False):
    """What is taken of one device: by whom, and how much of its capacity."""

    owners: tuple[ClaimUid, ...] = ()  # of the whole device; more than one is an overlap
    sharers: tuple[ClaimUid, ...] = ()  # one entry a share
    consumed: Mapping[str, int] = {}  # nano units

    def plus(self, claim: ClaimUid, taken: Taken) -> "Usage":
        if taken.share is None:
            return Usage((*self.owners, claim), self.sharers, self.consumed)
        consumed = dict(self.consumed)
        for name, amount in taken.consumed.items():
            if amount:
                consumed[name] = consumed.get(name, 0) + amount.nano
        return Usage(self.owners, (*self.sharers, claim), consumed)

    def minus(self, claim: ClaimUid, taken: Taken) -> "Usage":
        if taken.share is None:
            return Usage(_without(self.owners, claim), self.sharers, self.consumed)
        consumed = dict(self.consumed)
        for name, amount in taken.consumed.items():
            if amount:
                consumed[name] -= amount.nano
                if not consumed[name]:
                    del consumed[name]
        return Usage(self.owners, _without(self.sharers, claim), consumed)

    @property
    def is_nothing(self) -> bool:
        return not self.owners and not self.sharers

    @property
    def overlaps(self) -> bool:
        return len(self.owners) > 1 or bool(self.owners and self.sharers)


class Overlap(msgspec.Struct, frozen=True, gc=False):
    """D1: the server accepted, or a plan asked for, a device that others hold already."""

    device: DeviceId
    claims: tuple[ClaimUid, ...]

    def __str__(self) -> str:
        return f"D1: {self.device} is held by {', '.join(self.claims)}"


UNUSED: Mapping[str, Usage] = {}
NOTHING = Usage()


class Ledger:
    def __init__(self) -> None:
        self._holds: Overlay[ClaimUid, Hold] = Overlay()
        self._pools: Overlay[PoolId, dict[str, Usage]] = Overlay()  # _holds, indexed by device
        self._overlaps: Overlay[DeviceId, Overlap] = Overlay()
        self._journal: Journal[PoolId] = Journal()
        self.remembered: dict[object, object] = {}
        """Answers that depend on this ledger, by the question's own key."""

    @property
    def revision(self) -> int:
        return self._journal.revision

    def fork(self) -> "Ledger":
        """A copy that pays for its own changes only. Leave the parent alone while it is used."""
        child = Ledger.__new__(Ledger)
        child._holds = self._holds.fork()
        child._pools = self._pools.fork()
        child._overlaps = self._overlaps.fork()
        child._journal = Journal(self.revision)
        child.remembered = {}
        return child

    # Questions

    def usage(self, pool: PoolId) -> Mapping[str, Usage]:
        """What is taken of a pool, by device name. A view: read it, do not keep it."""
        return self._pools.get(pool) or UNUSED

    def is_free(self, device: DeviceId) -> bool:
        """Whether nobody holds the device or a share of it."""
        return device.name not in self.usage(device.pool_id)

    def hold(self, claim: ClaimUid) -> Hold | None:
        return self._holds.get(claim)

    def overlaps(self) -> Iterator[Overlap]:
        """Every device that more than one claim believes to have (D1)."""
        for _, overlap in self._overlaps.items():
            yield overlap

    def moved_since(self, revision: int) -> frozenset[PoolId] | None:
        """Pools whose devices changed hands after `revision`; None when it may be any."""
        return self._journal.since(revision)

    # Changes

    def fly(self, claim: ClaimUid, devices: Iterable[Taken]) -> tuple[Overlap, ...]:
        """Hold devices for a claim whose allocation is not yet written.

        Refused, with nothing changed, when others hold one of them: the overlaps say
        which. A claim that the server has accepted meanwhile keeps what it has, since the
        plan may come from an older view: there is nothing to refuse, and nothing to cancel
        later (LEDGER3).
        """
        if self._is_settled(claim):
            return ()
        planned = tuple(devices)
        refusals = tuple(self._conflicts(claim, planned))
        if refusals:
            return refusals
        self._replace(claim, Hold(planned, settled=False))
        return ()

    def rename(self, old: ClaimUid, new: ClaimUid) -> None:
        """A flight for a claim that did not exist goes on under the uid that it has got. No device changes
        hands by that, so nobody needs to look again."""
        hold = self._holds.get(old)
        if hold is None or hold.settled or old == new:
            return
        if self._holds.get(new) is not None:
            self.cancel(old)
            self.fly(new, hold.devices)
            return
        self._change(hold, Usage.minus, old)
        self._change(hold, Usage.plus, new)
        self._holds.drop(old)
        self._holds.set(new, hold)

    def settle(self, claim: ClaimUid, devices: Iterable[Taken]) -> None:
        """Record what the server accepted, whoever else holds it."""
        self._replace(claim, Hold(tuple(devices), settled=True))

    def cancel(self, claim: ClaimUid) -> None:
        """Give up a flight."""
        if not self._is_settled(claim):
            self._replace(claim, None)

    def release(self, claim: ClaimUid) -> None:
        """The server says the claim holds nothing any more."""
        self._replace(claim, None)

    def check(self) -> None:
        """Verify what no single method can see. Slow: for tests and `sim`."""
        index: dict[PoolId, dict[str, Usage]] = {}
        for claim, hold in self._holds.items():
            for taken in _held(hold):
                pool = index.setdefault(taken.device.pool_id, {})
                name = taken.device.name
                pool[name] = pool.get(name, Usage()).plus(claim, taken)
        kept = {pool: used for pool, used in self._pools.items() if used}
        require(
            {pool: _comparable(used) for pool, used in kept.items()}
            == {pool: _comparable(used) for pool, used in index.items()},
            "LEDGER4: the index is the sum of the holds",
        )
        overlapping = {
            DeviceId(*pool, name) for pool, used in kept.items() for name in used if used[name].overlaps
        }
        require(set(self._overlaps) == overlapping, "D1: every overlap is reported, and only those")

    def _is_settled(self, claim: ClaimUid) -> bool:
        hold = self._holds.get(claim)
        return hold is not None and hold.settled

    def _conflicts(self, claim: ClaimUid, devices: Iterable[Taken]) -> Iterator[Overlap]:
        mine: dict[DeviceId, bool] = {}  # whether the plan has the device as a whole
        for taken in devices:
            if taken.admin:
                continue
            whole = taken.share is None
            used = self.usage(taken.device.pool_id).get(taken.device.name, NOTHING)
            holders = (*used.owners, *used.sharers) if whole else used.owners
            others = tuple(holder for holder in holders if holder != claim)
            twice = taken.device in mine and (whole or mine[taken.device])
            if others or twice:
                yield Overlap(taken.device, (*others, claim))
            mine[taken.device] = whole

    def _replace(self, claim: ClaimUid, new: Hold | None) -> None:
        """The only place a ledger changes. Either all of it happens or none."""
        old = self._holds.get(claim)
        if new == old:
            return
        if new is not None and old is not None and new.devices == old.devices:
            self._holds.set(claim, new)  # a flight has settled: no device changes hands
            return
        self._change(old, Usage.minus, claim)
        self._change(new, Usage.plus, claim)
        if new is None:
            self._holds.drop(claim)
        else:
            self._holds.set(claim, new)
        for pool in {taken.device[:2] for hold in (old, new) if hold for taken in hold.devices}:
            self._journal.add(PoolId(*pool))

    def _change(
        self, hold: Hold | None, change: Callable[[Usage, ClaimUid, Taken], Usage], claim: ClaimUid
    ) -> None:
        pools: dict[tuple[str, str], dict[str, Usage]] = {}  # few: the devices of a claim are neighbours
        for taken in _held(hold):
            id = taken.device
            pool = pools.get(id[:2])
            if pool is None:
                pool = pools[id[:2]] = self._own(id.pool_id)
            before = pool.get(id.name, NOTHING)
            self._set(pool, id, before, change(before, claim, taken))

    def _own(self, id: PoolId) -> dict[str, Usage]:
        """What is taken of a pool, to be changed (LEDGER5)."""
        pool = self._pools.get(id)
        if pool is None or not self._pools.is_own(id):
            pool = dict(pool or {})
            self._pools.set(id, pool)
        return pool

    def _set(self, pool: dict[str, Usage], id: DeviceId, before: Usage, usage: Usage) -> None:
        if usage.is_nothing:
            pool.pop(id.name, None)
        else:
            pool[id.name] = usage
        if usage.overlaps:
            self._overlaps.set(id, Overlap(id, (*usage.owners, *usage.sharers)))
        elif before.overlaps:
            self._overlaps.drop(id)


def _held(hold: Hold | None) -> Iterator[Taken]:
    """What a hold keeps from others: all but admin access."""
    return (taken for taken in hold.devices if not taken.admin) if hold else iter(())


def _without(claims: tuple[ClaimUid, ...], claim: ClaimUid) -> tuple[ClaimUid, ...]:
    at = claims.index(claim)
    return claims[:at] + claims[at + 1 :]


def _comparable(used: Mapping[str, Usage]) -> Mapping[str, object]:
    return {name: (sorted(one.owners), sorted(one.sharers), dict(one.consumed)) for name, one in used.items()}
