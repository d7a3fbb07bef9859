"""partition: a device cut into slots, and profiles that take some of them side by side. Ours.

    kind: Capacity                                   kind: Parameters
    apiVersion: partition.dra.config.k8s.io/v1       apiVersion: partition.dra.config.k8s.io/v1
    slots: 8                                         profile: half
    profiles: {half: {slots: 4, starts: [0, 4]}}     selector: {…}

A profile without `starts` may begin anywhere. Of the places that are free, that one is taken first which
spoils the fewest other free places, of whichever profile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ..model import BadData, Choice, Lacking, Offer, Types
from .typed import Strict, Tolerant, read

_GROUP: Final = "partition.dra.config.k8s.io"
SLOTS_MAX: Final = 64
PROFILES_MAX: Final = 32
Slots = Annotated[int, Meta(ge=1, le=SLOTS_MAX)]


class Profile(msgspec.Struct, frozen=True):
    slots: Slots = 1
    starts: tuple[int, ...] | None = None  # None: anywhere


class Capacity(Tolerant, frozen=True, kw_only=True):
    slots: Slots
    profiles: dict[str, Profile] = msgspec.field(default_factory=dict)


class Parameters(Strict, frozen=True, kw_only=True):
    profile: str


class _Allocation(Tolerant, frozen=True, kw_only=True):
    start: Annotated[int, Meta(ge=0, lt=SLOTS_MAX)]
    slots: Slots


class Partition:
    name = "partition"
    types = Types(_GROUP, ("v1",))

    def capacity(self, data: Mapping[str, Any]) -> Capacity:
        found = read(Capacity, data)
        if len(found.profiles) > PROFILES_MAX:
            raise BadData(f"profiles: {len(found.profiles)}, and {PROFILES_MAX} at most")
        for name, profile in found.profiles.items():
            if not list(_starts(found, profile)):
                raise BadData(f"profiles.{name}: {profile.slots} slots fit nowhere in {found.slots}")
        return found

    def parameters(self, data: Mapping[str, Any]) -> Parameters:
        return read(Parameters, data)

    def amounts(self, capacity: Capacity) -> Mapping[str, int]:
        return {_slot(number): 1 for number in range(capacity.slots)}

    def is_flexible(self, want: Parameters) -> bool:
        return False

    def choices(self, want: Parameters, offers: Sequence[Offer]) -> Iterable[Choice]:
        matching = self._matching(want, offers)
        found = [
            (_lost(one, place), at, place)
            for at, one in enumerate(matching)
            for place in _places(one, one.instance.capacity.profiles[want.profile])
        ]
        for _, at, place in sorted(found, key=lambda one: (one[0], one[1], one[2].start)):
            yield Choice(matching[at].instance, {_slot(number): 1 for number in place})

    def lacking(self, want: Parameters, offers: Sequence[Offer]) -> Lacking:
        matching = self._matching(want, offers)
        if not matching:
            return Lacking(
                "node(s) without the profile that the claim wants",
                f"no instance has profile {want.profile}{want.selector_text}",
                by=float("inf"),
            )
        free, needs, id = max(
            (sum(one.free.values()), one.instance.capacity.profiles[want.profile].slots, one.instance.id)
            for one in matching
        )
        text = f"profile {want.profile} needs {needs} slots side by side; {id} has {free} free in all"
        return Lacking("node(s) with no free place for the profile", text, max(needs - free, 0))

    def allocation(self, choice: Choice) -> dict[str, Any]:
        taken = sorted(int(name.rpartition("slot")[2]) for name in choice.takes)
        return {"instance": choice.instance.id, "start": taken[0], "slots": len(taken)}

    def taken(self, allocation: Mapping[str, Any]) -> Mapping[str, int]:
        found = read(_Allocation, allocation)
        return {_slot(number): 1 for number in range(found.start, found.start + found.slots)}

    def _matching(self, want: Parameters, offers: Sequence[Offer]) -> list[Offer]:
        return [
            one
            for one in offers
            if want.profile in one.instance.capacity.profiles and want.selects(one.instance.capacity.labels)
        ]


def _slot(number: int) -> str:
    return f"{_GROUP}/slot{number}"


def _starts(capacity: Capacity, profile: Profile) -> Iterator[int]:
    listed = range(capacity.slots) if profile.starts is None else sorted(set(profile.starts))
    return (start for start in listed if start >= 0 and start + profile.slots <= capacity.slots)


def _places(offer: Offer, profile: Profile) -> Iterator[range]:
    """Where the profile fits now."""
    for start in _starts(offer.instance.capacity, profile):
        place = range(start, start + profile.slots)
        if all(offer.free[_slot(number)] for number in place):
            yield place


def _lost(offer: Offer, place: range) -> int:
    """How many places of any profile are free now and would not be."""
    taken = set(place)
    return sum(
        not taken.isdisjoint(other)
        for profile in offer.instance.capacity.profiles.values()
        for other in _places(offer, profile)
    )


PARTITION: Final = Partition()
