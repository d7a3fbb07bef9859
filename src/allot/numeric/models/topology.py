"""topology: units in zones (of memory, say), and claims that want theirs in one zone, or anywhere. Ours.

    kind: Capacity                                   kind: Parameters
    apiVersion: topology.dra.config.k8s.io/v1        apiVersion: topology.dra.config.k8s.io/v1
    zones: {numa0: 4, numa1: 4}                      required: 3
                                                     alignment: SingleZone        # or None, the default
                                                     selector: {…}

A claim that must stay in one zone takes the tightest. One that need not takes from the fewest zones that have
enough together.
"""

from collections.abc import Iterable, Mapping, Sequence
from re import compile
from typing import Any, Final, Literal

from ..model import BadData, Choice, Lacking, Offer, Types
from .typed import Count, Strict, Tolerant, read

_GROUP: Final = "topology.dra.config.k8s.io"
_ZONE: Final = compile("[A-Za-z][A-Za-z0-9_]{0,31}")
ZONES_MAX: Final = 64


class Capacity(Tolerant, frozen=True, kw_only=True):
    zones: dict[str, Count]


class Parameters(Strict, frozen=True):
    required: Count = 0
    alignment: Literal["SingleZone", "None"] = "None"

    @property
    def is_single(self) -> bool:
        return self.alignment == "SingleZone"


class _Allocation(Tolerant, frozen=True, kw_only=True):
    zones: dict[str, Count]


class Topology:
    name = "topology"
    types = Types(_GROUP, ("v1",))

    def capacity(self, data: Mapping[str, Any]) -> Capacity:
        found = read(Capacity, data)
        if not 0 < len(found.zones) <= ZONES_MAX:
            raise BadData(f"zones: {len(found.zones)}, and there must be 1 to {ZONES_MAX}")
        for name in found.zones:
            if not _ZONE.fullmatch(name):
                raise BadData(f"zones: {name!r} is no name of a zone: letters, digits and _ are, 32 at most")
        return found

    def parameters(self, data: Mapping[str, Any]) -> Parameters:
        return read(Parameters, data)

    def amounts(self, capacity: Capacity) -> Mapping[str, int]:
        return {f"{_GROUP}/{zone}": count for zone, count in capacity.zones.items()}

    def is_flexible(self, want: Parameters) -> bool:
        return not want.is_single

    def choices(self, want: Parameters, offers: Sequence[Offer]) -> Iterable[Choice]:
        matching = self._matching(want, offers)
        if want.is_single:
            zones = [
                (free, at, zone)
                for at, one in enumerate(matching)
                for zone, free in one.free.items()
                if free >= want.required
            ]
            for _, at, zone in sorted(zones):
                yield Choice(matching[at].instance, {zone: want.required})
            return
        enough = [one for one in matching if sum(one.free.values()) >= want.required]
        for one in sorted(enough, key=lambda one: sum(one.free.values())):
            yield Choice(one.instance, _spread(want.required, one.free))

    def lacking(self, want: Parameters, offers: Sequence[Offer]) -> Lacking:
        matching = self._matching(want, offers)
        if not matching:
            return Lacking(
                "node(s) without an instance that the claim selects",
                f"none of {len(offers)} instances is{want.selector_text}",
                by=float("inf"),
            )
        most = max if want.is_single else sum
        free, id = max((most(one.free.values()), one.instance.id) for one in matching)
        where = "in one zone" if want.is_single else "in all zones together"
        text = f"needs {want.required} free {where}{want.selector_text}; {id} has {free}"
        return Lacking(f"node(s) with too little free {where}", text, want.required - free)

    def allocation(self, choice: Choice) -> dict[str, Any]:
        zones = {name.rpartition("/")[2]: count for name, count in choice.takes.items()}
        return {"instance": choice.instance.id, "zones": zones}

    def taken(self, allocation: Mapping[str, Any]) -> Mapping[str, int]:
        return {f"{_GROUP}/{zone}": count for zone, count in read(_Allocation, allocation).zones.items()}

    def _matching(self, want: Parameters, offers: Sequence[Offer]) -> list[Offer]:
        return [one for one in offers if want.selects(one.instance.capacity.labels)]


def _spread(required: int, free: Mapping[str, int]) -> dict[str, int]:
    """From the fewest zones: the largest are emptied first, and the last one is the tightest that will do."""
    takes: dict[str, int] = {min(free): 0} if not required else {}
    left, zones = required, sorted(free.items(), key=lambda one: (-one[1], one[0]))
    while left:
        tightest = [(count, zone) for zone, count in zones if count >= left]
        zone, count = min(tightest)[::-1] if tightest else zones[0]
        takes[zone] = min(left, count)
        left -= takes[zone]
        zones = [one for one in zones if one[0] != zone]
    return takes


TOPOLOGY: Final = Topology()
