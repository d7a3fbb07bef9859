"""What may be held in a pool, written down a second time and without a word of the guard.

From the invariants D1 and D2, upstream's rules of allocation, and docs/differences.md. It knows nothing of
records, revisions or quantities: amounts are whole numbers, and it keeps who holds what as a list.
Where the guard looks at what changes, this looks at the whole pool as it would be.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Device:
    """As a slice lists it."""

    name: str
    shared: bool = False
    capacity: Mapping[str, int] = field(default_factory=dict)
    draws: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # set -> counter -> amount
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by set


@dataclass(frozen=True)
class Slice:
    generation: int
    devices: tuple[Device, ...] = ()
    sets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """A device, or a share of it, as a claim's status lists it."""

    pool: str
    device: str
    share: int | None = None
    consumes: Mapping[str, int] = field(default_factory=dict)
    admin: bool = False


@dataclass(frozen=True)
class Held:
    claim: str
    result: Result


class Pool:
    def __init__(self, driver: str) -> None:
        self.driver = driver
        self.slices: dict[str, Slice] = {}
        self.held: list[Held] = []
        self.seen: dict[str, Device] = {}  # held devices, as slices had them when they were last taken
        self.sets: dict[str, dict[str, int]] = {}  # what held devices draw from, as it was last seen

    # What is there

    def offered(self, name: str) -> Device | None:
        """The newest slice that lists the device decides; of several, the first by name."""
        found = [
            (-one.generation, slice_name, device)
            for slice_name, one in self.slices.items()
            for device in one.devices
            if device.name == name
        ]
        return min(found, key=lambda entry: entry[:2])[2] if found else None

    def offered_sets(self) -> dict[str, Mapping[str, int]]:
        order = sorted(self.slices.items(), key=lambda entry: (-entry[1].generation, entry[0]))
        sets: dict[str, Mapping[str, int]] = {}
        for _, one in order:
            for name, counters in one.sets.items():
                sets.setdefault(name, counters)
        return sets

    def total(self, set_name: str, counter: str) -> int | None:
        for sets in (self.offered_sets(), self.sets):
            if counter in sets.get(set_name, {}):
                return sets[set_name][counter]
        return None

    # What may be

    def take(self, claim: str, results: Iterable[Result]) -> bool:
        """Hold the results for the claim, all or none."""
        before = list(self.held), dict(self.seen)
        fresh = []
        for result in results:
            if result.device not in self._names():
                fresh.append(result.device)
            if not self._one(claim, result):
                self.held, self.seen = before
                return False
        if not self._counters_allow(fresh):
            self.held, self.seen = before
            return False
        self._remember_sets()
        return True

    def free(self, claim: str) -> None:
        self.held = [held for held in self.held if held.claim != claim]
        self.seen = {name: device for name, device in self.seen.items() if name in self._names()}
        drawn = {name for device in self.seen.values() for name in device.draws}
        self.sets = {name: counters for name, counters in self.sets.items() if name in drawn}

    def _one(self, claim: str, result: Result) -> bool:
        offered, before = self.offered(result.device), self.seen.get(result.device)
        there = [held.result for held in self.held if held.result.device == result.device]
        device = offered or before
        if there:
            shares = [other.share for other in there]
            if result.share is None or None in shares or result.share in shares:
                return False  # D1
            if device is None or not device.shared:
                return False
        if device is not None and not self._fits(device, result, there):
            return False
        self.held.append(Held(claim, result))
        if merged := _merged(before, offered):
            self.seen[result.device] = merged
        return True

    def _fits(self, device: Device, result: Result, there: list[Result]) -> bool:
        """D2, for the shares of one device."""
        mine = dict(self._consumed(device, result))
        if None in mine:
            return False  # there is no such capacity
        if device.shared and result.share is not None and mine.keys() != device.capacity.keys():
            return False  # it does not say how much
        for name in mine:
            used = sum(
                amount
                for one in (*there, result)
                for other, amount in self._consumed(device, one)
                if other == name
            )
            if used > device.capacity[name]:
                return False
        return True

    def _consumed(self, device: Device, result: Result) -> Iterator[tuple[str | None, int]]:
        for name, amount in result.consumes.items():
            bare = name.removeprefix(f"{self.driver}/")
            spellings = (name, bare, f"{self.driver}/{bare}")
            yield next((one for one in spellings if one in device.capacity), None), max(0, amount)

    def _counters_allow(self, fresh: list[str]) -> bool:
        """D2, for the devices that draw. Those that were held before are no obstacle to themselves."""
        now = {name: _merged(self.seen.get(name), self.offered(name)) for name in self._names()}
        drawing = {name: device for name, device in now.items() if device is not None and device.draws}
        listed = [device for one in self.slices.values() for device in one.devices]
        counts = drawing or self.offered_sets() or any(self._draws_now(device.name) for device in listed)
        for name in fresh:
            device = now[name]
            if device is None:
                if counts:
                    return False  # what it draws, nobody knows
                continue
            if device.draws and None in now.values():
                return False
            for set_name in device.draws:
                if not self._set_allows(set_name, device, list(drawing.values())):
                    return False
        return True

    def _draws_now(self, name: str) -> bool:
        device = self.offered(name)
        return device is not None and bool(device.draws)

    def _set_allows(self, set_name: str, device: Device, drawing: list[Device]) -> bool:
        for counter, amount in device.draws[set_name].items():
            total = self.total(set_name, counter)
            used = sum(max(0, one.draws.get(set_name, {}).get(counter, 0)) for one in drawing)
            if amount > 0 and (total is None or used > total):
                return False
        groups = [one.groups.get(set_name, frozenset()) for one in drawing if set_name in one.draws]
        return not any(groups) or bool(frozenset.intersection(*groups))

    def _names(self) -> set[str]:
        return {held.result.device for held in self.held}

    def _remember_sets(self) -> None:
        drawn = {name for device in self.seen.values() for name in device.draws}
        offered = self.offered_sets()
        self.sets = {
            name: {**self.sets.get(name, {}), **offered.get(name, {})}
            for name in drawn
            if name in self.sets or name in offered
        }


def _merged(before: Device | None, now: Device | None) -> Device | None:
    """A device that is held draws what it drew, or more if its slice says so; the rest is as of now."""
    if before is None or now is None:
        return now or before
    draws = {
        set_name: {
            counter: max(
                one[counter]
                for one in (before.draws.get(set_name, {}), now.draws.get(set_name, {}))
                if counter in one
            )
            for counter in {*before.draws.get(set_name, {}), *now.draws.get(set_name, {})}
        }
        for set_name in {*before.draws, *now.draws}
    }
    return replace(now, draws=draws, groups={**now.groups, **_said(before)})


def _said(device: Device) -> dict[str, frozenset[str]]:
    return {name: device.groups.get(name, frozenset()) for name in device.draws}
