"""Which of many fitting devices to take.

A policy is one function: it is shown a device that may be taken and says what
taking it would cost. The search tries cheap devices first, equal ones in the
order of publication, and the costs of a plan's devices, added up, compare nodes.
It never decides whether something fits: under every policy the same claims fit.

To write one, add up what you care about and less is better:

    def emptiest_first(candidate: Candidate) -> Cost:
        return (candidate.pool_in_use,)

    SPREAD = Policy("spread", emptiest_first)

The function is asked about every device whenever something has been taken. A policy
that promises more (`steady`, `anonymous`) is asked less often.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2

from .kind import Device, Kind
from .loss import loss
from .state import State

Cost = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that may be taken now, in the light of what is taken already."""

    device: Device
    at: int
    state: State

    @property
    def pool_in_use(self) -> float:
        """The part of the device's pool that somebody has, from 0 to 1."""
        view = self.state.question.view
        place = view.pool_of[self.at]
        chosen = sum(1 for at in (*self.state.holders, *self.state.shares) if view.pool_of[at] == place)
        taken = len(self.state.question.usages.get(place, ()))
        return (taken + chosen) / len(view.pools[place].devices)

    def loss(self) -> float:
        """How much can no longer be had once the device is taken.

        1 for a device of its own. For a partition: the partitions that would stop
        fitting beside it, itself included, each as the part of the hardware it is.
        For a device that is shared already: the part of it that the share consumes.
        """
        return loss(self.state, self.at)


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    cost: Callable[[Candidate], Cost] | None  # None: publication order alone
    steady: bool = False
    """Whether a device that is neither shared nor a partition costs the same whatever else is taken."""
    anonymous: bool = False
    """Whether devices that are alike and used alike cost the same, whatever their names."""


def size(kind: Kind) -> float:
    """How big a device is, on a scale where twice as much of anything is one more."""
    known = kind.remembered.get("size")
    if not isinstance(known, float):
        known = sum((log2(1 + max(0, one.value.nano) / 10**9) for one in kind.capacity.values()), 0.0)
        kind.remember("size", known)
    return known


def least_waste(candidate: Candidate) -> Cost:
    """Break up as little as possible, and take the smallest device that will do."""
    return (candidate.loss(), size(candidate.device.kind))


def spread(candidate: Candidate) -> Cost:
    """Keep away from what others use: the emptiest pool first."""
    return (candidate.pool_in_use,)


FIRST_FIT = Policy("first-fit", None, steady=True, anonymous=True)
LEAST_WASTE = Policy("least-waste", least_waste, steady=True, anonymous=True)
SPREAD = Policy("spread", spread, anonymous=True)

POLICIES: Mapping[str, Policy] = {one.name: one for one in (FIRST_FIT, LEAST_WASTE, SPREAD)}
