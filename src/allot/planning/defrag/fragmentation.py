"""How much of what is free can be had in one piece.

    fits     the largest size that one pool still has: a partition, or so many whole devices of one node
    allows   the largest size that as much free capacity would be enough for, were it in one piece
    lost     1 - fits / allows, in sizes: 0 where nothing is lost, 1 where no size fits although it could

Both are told of each pool, and of all pools that are made alike: within one pool of whole devices nothing can
be fragmented, between nodes it can. `allows` is what counting says: moving things may not get that far, since
what is held has sizes too. Devices with taints that keep pods away are not free, and the pools of nodes that
are closed are not counted.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from allot.allocation import BadNodeSelector, PoolId, PoolView, Usage
from allot.api import Quantity
from allot.scheduler import NodeInfo, Snapshot, why_closed

from .layout import CounterKey, Layout, Layouts, Parts, Rung, Shares, Stock, Whole

ALWAYS = frozenset(("NoSchedule", "NoExecute"))


@dataclass(frozen=True, slots=True)
class Measure:
    title: str
    free: float  # in whole devices
    of: float
    fits: Rung | None
    allows: Rung | None

    @property
    def lost(self) -> float:
        if self.allows is None:
            return 0.0
        return max(0.0, 1 - (self.fits.size if self.fits is not None else 0.0) / self.allows.size)

    def as_json(self) -> dict[str, Any]:
        return {
            "devices": self.title,
            "free": round(self.free, 3),
            "of": round(self.of, 3),
            "fits": self.fits.as_json() if self.fits is not None else None,
            "allows": self.allows.as_json() if self.allows is not None else None,
            "fragmentation": round(self.lost, 3),
        }


@dataclass(frozen=True, slots=True)
class PoolMeasure:
    pool: PoolId
    node: str  # "" where several nodes reach it
    measure: Measure


@dataclass(frozen=True, slots=True)
class Make:
    """All pools that are made alike."""

    driver: str
    pools: int
    where: str  # the largest size is that fits: a node, or a pool that several reach
    measure: Measure
    sizes: tuple[tuple[Rung, int, int], ...]  # how many of each fit now, and how many the free would hold

    def as_json(self) -> dict[str, Any]:
        return {
            "driver": self.driver,
            "pools": self.pools,
            **self.measure.as_json(),
            "where": self.where,
            "sizes": [
                {**rung.as_json(), "fit": fit, "freeWouldHold": would} for rung, fit, would in self.sizes
            ],
        }


@dataclass(frozen=True, slots=True)
class Fragmentation:
    makes: tuple[Make, ...] = ()
    pools: tuple[PoolMeasure, ...] = ()  # the most fragmented first
    closed: Mapping[str, str] = field(default_factory=dict)  # nodes that are not counted, and why

    def as_json(self) -> dict[str, Any]:
        return {
            "makes": [one.as_json() for one in self.makes],
            "pools": [
                {"driver": one.pool.driver, "pool": one.pool.name, "node": one.node, **one.measure.as_json()}
                for one in self.pools
            ],
            "closed": dict(self.closed),
        }


def fragmentation(snapshot: Snapshot) -> Fragmentation:
    layouts = Layouts()
    sums: dict[object, _Sum] = {}
    pools: list[PoolMeasure] = []
    shut: dict[str, str] = {}
    for pool, node in _pools(snapshot, shut):
        layout = layouts.of(pool)
        taken = _Taken.of(pool, snapshot.ledger.usage(pool.id))
        for stock, state in zip(layout.stocks, _states(layout, pool, taken), strict=True):
            key = (layout.driver, stock.sort)
            if key not in sums:
                sums[key] = _Sum(layout.driver, stock)
            sums[key].add(state, node or pool.id.name)
            pools.append(PoolMeasure(pool.id, node, state.measure))
    pools.sort(key=lambda one: (-one.measure.lost, one.pool))
    makes = sorted((one.made() for one in sums.values()), key=lambda one: (one.driver, one.measure.title))
    return Fragmentation(tuple(makes), tuple(pools), shut)


def _pools(snapshot: Snapshot, shut: dict[str, str]) -> Iterable[tuple[PoolView, str]]:
    """Each pool once, as a node that is open sees it."""
    seen: set[PoolId] = set()
    for node in sorted(snapshot.nodes(), key=_name):
        why = why_closed(node)
        if why:
            shut[node.name] = why
            continue
        try:
            view = snapshot.inventory.view(node.place)
        except BadNodeSelector:
            continue
        for pool in view.pools:
            if pool.id not in seen and pool.usable and pool.devices:
                seen.add(pool.id)
                reached = snapshot.inventory.nodes_of(pool.id)
                yield pool, node.name if reached == frozenset((node.name,)) else ""


def _name(node: NodeInfo) -> str:
    return node.name


# -- one pool -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Taken:
    """What is not free of a pool, by the places of its devices."""

    whole: frozenset[int]
    drawn: tuple[tuple[CounterKey, int], ...]
    shares: tuple[tuple[int, str, int], ...]  # place, capacity, nano units

    @classmethod
    def of(cls, pool: PoolView, used: Mapping[str, Usage]) -> "_Taken":
        tainted = {at for at, one in enumerate(pool.devices) if one.taints and _keeps_away(one.taints)}
        if not used:
            return cls(frozenset(tainted), (), ())
        here = {one.id.name: at for at, one in enumerate(pool.devices) if one.id.name in used}
        owned = {at for name, at in here.items() if used[name].owners}
        drawn: dict[CounterKey, int] = {}
        for device in pool.drawing(used):
            for key, amount in device.kind.draws:
                drawn[key] = drawn.get(key, 0) + amount
        shares = [
            (at, name, nano) for one, at in here.items() for name, nano in sorted(used[one].consumed.items())
        ]
        return cls(frozenset(tainted | owned), tuple(sorted(drawn.items())), tuple(sorted(shares)))


@dataclass(frozen=True, slots=True)
class _State:
    """What is free of one stock of one pool."""

    measure: Measure
    counts: tuple[int, ...]  # how many of each rung fit
    amounts: Mapping[str, int]
    places: float
    best: float  # free of the device that has most, of shares


def _states(layout: Layout, pool: PoolView, taken: _Taken) -> tuple[_State, ...]:
    found: Any = layout.known.get(taken)
    if found is None:
        found = tuple(_state(stock, taken) for stock in layout.stocks)
        layout.known[taken] = found
    return found  # type: ignore[no-any-return]


def _state(stock: Stock, taken: _Taken) -> _State:
    if isinstance(stock, Whole):
        free = sum(at not in taken.whole for at in stock.at)
        counts = tuple(free // count for count in range(1, len(stock.at) + 1))
        fits = _highest(stock.ladder, counts)
        return _State(Measure(stock.title, free, len(stock.at), fits, fits), counts, {"": free}, 0.0, 0.0)
    if isinstance(stock, Shares):
        used = {at: nano for at, name, nano in taken.shares if name == stock.capacity}
        left = [max(0, stock.value - used.get(at, 0)) for at in stock.at if at not in taken.whole]
        return _shares(stock, sum(left), max(left, default=0), len(stock.at))
    return _free_parts(stock, taken)


def _shares(stock: Shares, free: int, best: int, devices: int) -> _State:
    allows = min(free, stock.value)
    return _State(
        Measure(
            f"{stock.title} {stock.capacity}",
            free / stock.value,
            devices,
            _share(stock, best),
            _share(stock, allows),
        ),
        (),
        {"": free},
        0.0,
        best,
    )


def _share(stock: Shares, nano: int) -> Rung | None:
    return Rung(f"{Quantity(nano)} {stock.capacity}", nano / stock.value) if nano else None


def _free_parts(stock: Parts, taken: _Taken) -> _State:
    left = dict(stock.totals)
    for key, amount in taken.drawn:
        left[key] = max(0, left.get(key, 0) - amount)
    most = len(stock.parts[-1].devices)
    singles = [_count(stock, at, left, taken.whole) for at in range(len(stock.parts))]
    counts = (*singles, *(singles[-1] // count for count in range(2, most + 1)))
    amounts: dict[str, int] = {}
    places = 0.0
    for (counter_set, counter), amount in left.items():
        if counter in stock.amounts:
            amounts[counter] = amounts.get(counter, 0) + amount
        else:
            places += amount / (stock.totals[counter_set, counter] or 1)
    sets: dict[str, list[float]] = {}
    for key, amount in left.items():
        sets.setdefault(key[0], []).append(amount / (stock.totals[key] or 1))
    free = sum(sum(shares) / len(shares) for shares in sets.values())
    would = _would_hold(stock, amounts, places)
    measure = Measure(
        stock.title, free, len(sets), _highest(stock.ladder, counts), _highest(stock.ladder, would)
    )
    return _State(measure, counts, amounts, places, 0.0)


def _count(stock: Parts, at: int, left: Mapping[CounterKey, int], taken: frozenset[int]) -> int:
    """How many of a part fit, taken one after the other."""
    rest, count = dict(left), 0
    for device, draws in stock.parts[at].devices:
        if device not in taken and all(rest[key] >= amount for key, amount in draws):
            count += 1
            for key, amount in draws:
                rest[key] -= amount
    return count


def _would_hold(stock: Parts, amounts: Mapping[str, int], places: float) -> tuple[int, ...]:
    """How many of each rung as much would be enough for."""
    singles = []
    for part in stock.parts:
        bounds = [amounts[name] // amount for name, amount in part.amounts.items() if amount > 0]
        if part.places > 0:
            bounds.append(int(places / part.places + 1e-9))
        singles.append(min(bounds, default=0))
    most = len(stock.parts[-1].devices)
    return (*singles, *(singles[-1] // count for count in range(2, most + 1)))


def _highest(ladder: tuple[Rung, ...], counts: tuple[int, ...]) -> Rung | None:
    return next((rung for rung, count in zip(reversed(ladder), reversed(counts), strict=True) if count), None)


def _keeps_away(taints: Iterable[Any]) -> bool:
    return any(one.effect in ALWAYS for one in taints)


# -- all that are made alike ----------------------------------------------------------------------


_ZEROS = itertools.repeat(0)


class _Sum:
    def __init__(self, driver: str, stock: Stock) -> None:
        self.driver = driver
        self.stock = stock
        self.pools = 0
        self.free = 0.0
        self.of = 0.0
        self.counts: list[int] = []
        self.amounts: dict[str, int] = {}
        self.places = 0.0
        self.best: tuple[float, str] = (0.0, "")
        self.fits: Rung | None = None

    def add(self, state: _State, where: str) -> None:
        self.pools += 1
        self.free += state.measure.free
        self.of += state.measure.of
        self.counts = [sum(pair) for pair in zip(self.counts or _ZEROS, state.counts, strict=False)]
        for name, amount in state.amounts.items():
            self.amounts[name] = self.amounts.get(name, 0) + amount
        self.places += state.places
        fits = state.measure.fits
        if fits is not None and fits.size > self.best[0]:
            self.best, self.fits = (fits.size, where), fits

    def made(self) -> Make:
        stock, counts = self.stock, tuple(self.counts)
        title = stock.title
        if isinstance(stock, Shares):
            title = f"{stock.title} {stock.capacity}"
            allows = _share(stock, min(self.amounts[""], stock.value))
            sizes: tuple[tuple[Rung, int, int], ...] = ()
        else:
            would = self._would_hold()
            allows = _highest(stock.ladder, would)
            sizes = tuple(zip(stock.ladder, counts, would, strict=True))
        measure = Measure(title, self.free, self.of, self.fits, allows)
        return Make(self.driver, self.pools, self.best[1], measure, sizes)

    def _would_hold(self) -> tuple[int, ...]:
        """Of so many nodes: no rung is larger than one of them."""
        if isinstance(self.stock, Parts):
            each = len(self.stock.parts[-1].devices)
            singles = _would_hold(self.stock, self.amounts, self.places)[: len(self.stock.parts)]
            return (*singles, *(_groups(singles[-1], each, count) for count in range(2, each + 1)))
        each = len(self.stock.at) if isinstance(self.stock, Whole) else 0
        return tuple(_groups(self.amounts[""], each, count) for count in range(1, each + 1))


def _groups(free: int, each: int, count: int) -> int:
    """How many groups of `count` there are in so many free devices, were nodes of `each` emptied in turn."""
    return (free // each) * (each // count) + (free % each) // count
