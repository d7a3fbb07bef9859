"""What a pool is made of, whatever is taken of it: the sizes in which its devices can be had.

A driver publishes the same pool for thousands of nodes, so this is worked out once for all that are alike.

    whole    devices that are given away as they are: one, two, ... on one node
    parts    devices that draw from shared counters, large and small: a GPU and its partitions
    shares   devices that several claims may use at once: so much of their capacity

How large a part is
    A counter that every device of the pool draws from is an *amount*: multiprocessors, say. Others are
    *places*: a partition covers these memory slices and not those. Were the free capacity in one piece,
    places would be as good as one another, so they are counted and not named. The size of a part is the share
    of its device's counters that it draws, so a device that draws all of them has size 1.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from allot.allocation import Device, Kind, PoolView

CounterKey = tuple[str, str]  # counter set, counter
_TITLES = ("profile", "productName", "model", "type")
"""Attributes by which people know a device, the most telling first."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A size: so many devices of one sort, on one node."""

    name: str
    size: float  # in whole devices

    def as_json(self) -> dict[str, object]:
        return {"name": self.name, "size": round(self.size, 3)}


@dataclass(frozen=True, slots=True)
class Part:
    """Devices of one size, each with what it draws."""

    name: str
    size: float
    devices: tuple[tuple[int, tuple[tuple[CounterKey, int], ...]], ...]  # place in the pool, draws
    amounts: Mapping[str, int]
    places: float


@dataclass(frozen=True, eq=False)
class Whole:
    title: str
    at: tuple[int, ...]

    @property
    def sort(self) -> Hashable:
        """Equal for pools that offer the same, whatever their devices are like besides."""
        return "whole", self.title, len(self.at)

    @property
    def ladder(self) -> tuple[Rung, ...]:
        return tuple(Rung(several(count, self.title), count) for count in range(1, len(self.at) + 1))


@dataclass(frozen=True, eq=False)
class Parts:
    title: str
    parts: tuple[Part, ...]  # small to large
    totals: Mapping[CounterKey, int]
    amounts: frozenset[str]  # names of counters that every device draws from

    @property
    def sort(self) -> Hashable:
        return "parts", self.title, self.ladder

    @cached_property
    def ladder(self) -> tuple[Rung, ...]:
        largest = self.parts[-1]
        singles = [Rung(part.name, part.size) for part in self.parts]
        more = range(2, len(largest.devices) + 1)
        return (*singles, *(Rung(several(count, largest.name), count * largest.size) for count in more))


@dataclass(frozen=True, eq=False)
class Shares:
    title: str
    capacity: str
    at: tuple[int, ...]
    value: int  # of one device, nano units

    @property
    def sort(self) -> Hashable:
        return "shares", self.title, self.capacity, self.value, len(self.at)


Stock = Whole | Parts | Shares


@dataclass(frozen=True, eq=False)
class Layout:
    driver: str
    stocks: tuple[Stock, ...]
    known: dict[object, object] = field(default_factory=dict)
    """What was found out for pools of this layout, by what is taken of them."""


class Layouts:
    """Of a whole cluster, each worked out once."""

    def __init__(self) -> None:
        self._known: dict[object, Layout] = {}

    def of(self, pool: PoolView) -> Layout:
        key = (tuple(map(_kind, pool.devices)), tuple(pool.totals.items()))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Layout(pool.id.driver, tuple(_stocks(pool)))
        return found


def several(count: int, name: str) -> str:
    return name if count == 1 else f"{count}x{name}"


def _kind(device: Device) -> Kind:
    return device.kind


def _stocks(pool: PoolView) -> Iterator[Stock]:
    whole: dict[object, list[int]] = {}
    shared: dict[object, list[int]] = {}
    drawing: list[int] = []
    for at, device in enumerate(pool.devices):
        if device.kind.shareable:
            shared.setdefault(_sort(device.kind), []).append(at)
        elif device.kind.draws:
            drawing.append(at)
        else:
            whole.setdefault(_sort(device.kind), []).append(at)
    for places in whole.values():
        yield Whole(_title(pool.devices[places[0]].kind), tuple(places))
    if drawing:
        yield _parts(pool, drawing)
    for places in shared.values():
        kind = pool.devices[places[0]].kind
        for name, capacity in kind.capacity.items():
            if capacity.value.nano > 0:
                yield Shares(_title(kind), name, tuple(places), capacity.value.nano)


def _parts(pool: PoolView, drawing: Sequence[int]) -> Parts:
    names = [{counter for (_, counter), _ in pool.devices[at].kind.draws} for at in drawing]
    amounts = frozenset.intersection(*map(frozenset, names)) if names else frozenset()
    counters: dict[str, int] = {}  # how many each set has
    for counter_set, _ in pool.totals:
        counters[counter_set] = counters.get(counter_set, 0) + 1
    alike: dict[object, list[int]] = {}
    for at in drawing:
        kind = pool.devices[at].kind
        alike.setdefault((_sort(kind), tuple(sorted(amount for _, amount in kind.draws))), []).append(at)
    parts = []
    for places in alike.values():
        kind = pool.devices[places[0]].kind
        shares = {key: amount / (pool.totals[key] or 1) for key, amount in kind.draws}
        parts.append(
            Part(
                _title(kind),
                round(sum(share / counters[key[0]] for key, share in shares.items()), 6),
                tuple((at, pool.devices[at].kind.draws) for at in places),
                {counter: amount for (_, counter), amount in kind.draws if counter in amounts},
                sum(share for (_, counter), share in shares.items() if counter not in amounts),
            )
        )
    parts.sort(key=lambda part: (part.size, len(part.devices) == 1, part.name))
    return Parts(_product(pool.devices[drawing[0]].kind), tuple(parts), pool.totals, amounts)


def _sort(kind: Kind) -> object:
    return _title(kind), tuple(sorted((name, one.value.nano) for name, one in kind.capacity.items()))


def _title(kind: Kind) -> str:
    return _named(kind, _TITLES)


def _product(kind: Kind) -> str:
    return _named(kind, _TITLES[1:])


def _named(kind: Kind, names: Sequence[str]) -> str:
    attributes = kind.description.attributes
    for name in names:
        found = attributes.get(name) or attributes.get(f"{kind.driver}/{name}")
        if found is not None and found.string:
            return found.string
    return "device"
