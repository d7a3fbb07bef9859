"""D2: no allocation takes more of a card than there is of it, or more of a device than it can give.

A device that is a part of something draws from counters; one that is shared gives of its
capacity. Both are read from the slices as they were last published, and added up over all claims
whenever one is allocated.
"""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from allot.api import Quantity

from ..recording import Seen
from .live import LiveObjects
from .reading import allocation, results

Place = tuple[str, str, str]  # driver, pool, and a counter set or a device


class Within:
    follows = ("resourceclaims", "resourceslices")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._draws: dict[Place, list[Any]] = {}  # of a device, from counter sets
        self._most: dict[tuple[Place, str], Fraction] = {}  # of a counter, or of a capacity

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.type == "DELETED":
            return
        if seen.resource == "resourceslices":
            self._published(seen.fields["spec"])
        elif allocation(seen.fields) is not None and allocation(before or {}) is None:
            yield from self._judge(seen.object.name)

    def rest(self) -> Iterator[str]:
        yield from ()

    def _published(self, spec: Any) -> None:
        driver, pool = spec["driver"], spec["pool"]["name"]
        for one in spec.get("sharedCounters") or ():
            for name, counter in one["counters"].items():
                self._most[(driver, pool, one["name"]), name] = _amount(counter["value"])
        for device in spec.get("devices") or ():
            place = (driver, pool, device["name"])
            self._draws[place] = device.get("consumesCounters") or []
            for name, capacity in (device.get("capacity") or {}).items():
                self._most[place, name] = _amount(capacity["value"])

    def _judge(self, claim: str) -> Iterator[str]:
        used: dict[tuple[Place, str], Fraction] = defaultdict(Fraction)
        for one in (result for held in self._now.all("resourceclaims") for result in results(held)):
            driver, pool = one["driver"], one["pool"]
            for draw in self._draws.get((driver, pool, one["device"]), ()):
                for name, counter in draw["counters"].items():
                    used[(driver, pool, draw["counterSet"]), name] += _amount(counter["value"])
            if pool.startswith("numeric/"):
                continue  # `numeric_claims` counts those (D6)
            for name, amount in (one.get("consumedCapacity") or {}).items():
                used[(driver, pool, one["device"]), name] += _amount(amount)
        for (place, name), amount in used.items():
            most = self._most.get((place, name), Fraction())
            if amount > most:
                where = "/".join(place)
                yield f"D2: with claim {claim} {amount} of {name} of {where} are used: {most} are there"


def _amount(text: str) -> Fraction:
    return Fraction(Quantity.parse(text).nano, 10**9)
