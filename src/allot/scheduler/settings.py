"""What a person may choose about a scheduler."""

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import assert_never

from allot.allocation import LEAST_WASTE, Policy
from allot.api import podresources

from .amounts import PODS
from .pod import DEFAULT_SCHEDULER

BINDING_TIMEOUT_S = 600.0
DRIVER_TIMEOUT_S = 30.0
SCORE_MAX = 10.0
"""Of a shape, as upstream writes it."""


class Strategy(Enum):
    """Upstream's names for how full a node should be."""

    LEAST_ALLOCATED = "LeastAllocated"  # spread
    MOST_ALLOCATED = "MostAllocated"  # packed
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"  # as a shape says


Shape = tuple[tuple[float, float], ...]
"""Points: how full, in percent, and how good that is, up to SCORE_MAX. In order."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """How the resources of a node are rated, and how much each counts."""

    strategy: Strategy = Strategy.LEAST_ALLOCATED
    resources: tuple[tuple[str, float], ...] = (("cpu", 1.0), ("memory", 1.0), (PODS, 1.0))
    shape: Shape = ((0.0, 0.0), (100.0, SCORE_MAX))

    @property
    def is_of_devices(self) -> bool:
        """Whether it looks at resources that devices may serve. Whoever asks for that wants it to decide,
        before what the scheduler would do with devices on its own."""
        return any(podresources.is_extended_resource(name) for name, _ in self.resources)

    def score(self, filled: float) -> float:
        """How good a node is that is filled so far in one resource, both from 0 to 1."""
        match self.strategy:
            case Strategy.LEAST_ALLOCATED:
                return 1.0 - filled
            case Strategy.MOST_ALLOCATED:
                return filled
            case Strategy.REQUESTED_TO_CAPACITY_RATIO:
                return _on_shape(self.shape, filled * 100.0) / SCORE_MAX
            case _:
                assert_never(self.strategy)


def _on_shape(shape: Shape, at: float) -> float:
    """The height of the broken line at a place; level before its first and behind its last point."""
    if at <= shape[0][0]:
        return shape[0][1]
    for (left, low), (right, high) in pairwise(shape):
        if at <= right:
            return low + (high - low) * (at - left) / (right - left)
    return shape[-1][1]


@dataclass(frozen=True, slots=True)
class Settings:
    names: tuple[str, ...] = (DEFAULT_SCHEDULER,)  # the pods that are ours, by spec.schedulerName
    policy: Policy = LEAST_WASTE
    scoring: Scoring = Scoring()
    binding_timeout_s: float = BINDING_TIMEOUT_S  # for devices that must be made ready first
    driver_timeout_s: float = DRIVER_TIMEOUT_S  # for drivers that allocate classic claims
