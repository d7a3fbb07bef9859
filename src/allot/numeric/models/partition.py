"""partition: a device cut into slots, and profiles that take some of them side by side. Ours.

    kind: Capacity                                   kind: Parameters
    apiVersion: partition.dra.config.k8s.io/v1       apiVersion: partition.dra.config.k8s.io/v1
    slots: 8                                         profile: half
    profiles: {half: {slots: 4, starts: [0, 4]}}     selector: {…}

A profile without `starts` may begin anywhere. Of the places that are free, that one is taken first which
spoils the fewest other free places, of whichever profile.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ..model import BadData, Choice, Lacking, Offer, Types
from .typed import Strict, Tolerant, read

_GROUP: Final = "partition.dra.config.k8s.io"
SLOTS_MAX: Final = 64
PROFILES_MAX: Final = 32
Slots = Annotated[int, Meta(ge=1, le=SLOTS_MAX)]
_SLOTS: Final = tuple(f"{_GROUP}/slot{number}" for number in range(2 * SLOTS_MAX))


class Profile(msgspec.Struct, frozen=True):
    slots: Slots = 1
    starts: tuple[int, ...] | None = None  # None: anywhere; of what was read, all that fit


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
        profiles = {name: _within(found.slots, profile) for name, profile in found.profiles.items()}
        for name, profile in profiles.items():
            if not profile.starts:
                raise BadData(f"profiles.{name}: {profile.slots} slots fit nowhere in {found.slots}")
        return msgspec.structs.replace(found, profiles=profiles)

    def parameters(self, data: Mapping[str, Any]) -> Parameters:
        return read(Parameters, data)

    def amounts(self, capacity: Capacity) -> Mapping[str, int]:
        return {_SLOTS[number]: 1 for number in range(capacity.slots)}

    def is_flexible(self, want: Parameters) -> bool:
        return False

    def choices(self, want: Parameters, offers: Sequence[Offer]) -> Iterable[Choice]:
        matching = self._matching(want, offers)
        found: list[tuple[int, int, int, range]] = []
        for at, one in enumerate(matching):
            places = _Places(one)
            wanted = one.instance.capacity.profiles[want.profile]
            found += [(places.lost_by(place), at, place.start, place) for place in places.of(wanted)]
        for _, at, _, place in sorted(found, key=lambda one: one[:3]):
            yield Choice(matching[at].instance, {_SLOTS[number]: 1 for number in place})

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
        return {_SLOTS[number]: 1 for number in range(found.start, found.start + found.slots)}

    def _matching(self, want: Parameters, offers: Sequence[Offer]) -> list[Offer]:
        return [
            one
            for one in offers
            if want.profile in one.instance.capacity.profiles and want.selects(one.instance.capacity.labels)
        ]


def _within(slots: int, profile: Profile) -> Profile:
    """The profile, with all places at which it may begin."""
    listed = range(slots) if profile.starts is None else sorted(set(profile.starts))
    return Profile(
        profile.slots,
        tuple([start for start in listed if start >= 0 and start + profile.slots <= slots]),
    )


class _Places:
    """Where profiles fit into an instance as it is now."""

    def __init__(self, offer: Offer) -> None:
        capacity: Capacity = offer.instance.capacity
        self._free_from = [0] * (capacity.slots + 1)  # how many slots are free side by side, by the first
        for number in reversed(range(capacity.slots)):
            if offer.free[_SLOTS[number]]:
                self._free_from[number] = self._free_from[number + 1] + 1
        all_of_them = [place for profile in capacity.profiles.values() for place in self.of(profile)]
        self._starts = sorted(place.start for place in all_of_them)
        self._stops = sorted(place.stop for place in all_of_them)

    def of(self, profile: Profile) -> list[range]:
        return [
            range(start, start + profile.slots)
            for start in profile.starts or ()
            if self._free_from[start] >= profile.slots
        ]

    def lost_by(self, place: range) -> int:
        """How many places of any profile are free now and would not be: those that neither end before it nor
        begin after it."""
        return bisect_left(self._starts, place.stop) - bisect_right(self._stops, place.start)


PARTITION: Final = Partition()
