"""NodeResourcesBalancedAllocation: rather a node whose resources get full together.

A node that is out of memory with half of its cpu left wastes the cpu. The rating is how far
apart the filled shares are once the pod is there: their standard deviation.
"""

from collections.abc import Hashable
from math import sqrt

from ..amounts import PODS
from ..filling import Filling, extended_names
from ..framework import CycleState, Rate, Tier
from ..node import NodeInfo
from ..settings import Scoring
from ..snapshot import Snapshot

NAME = "NodeResourcesBalancedAllocation"
WEIGHT = 1.0
SCALE = 100.0
DEFAULT = Scoring()


class NodeResourcesBalancedAllocation:
    name = NAME

    def __init__(self, scoring: Scoring = DEFAULT, *, weight: float = WEIGHT) -> None:
        """Of its resources only the names count, the number of pods aside: shares are compared, not added."""
        self._resources = tuple(name for name, _ in scoring.resources if name != PODS)
        self._weight = weight
        self.tier = Tier.WISH if scoring.is_of_devices else Tier.RESOURCES

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        requests = state.pod.requests
        if names := extended_names(requests):
            state.classes |= snapshot.classes.revisions(names)
        return tuple(requests.get(name, 0) for name in self._resources)

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate | None:
        """None for a pod that requests nothing of it: it leaves the balance as it is."""
        filling = Filling(dict.fromkeys(self._resources, 1.0), state.pod.requests, snapshot)
        if not filling:
            return None
        scale = self._weight * SCALE

        def rate(node: NodeInfo) -> float:
            return scale * _deviation([share for _, share in filling.shares(node)])

        return rate


def _deviation(shares: list[float]) -> float:
    if len(shares) < 2:
        return 0.0
    mean = sum(shares) / len(shares)
    return sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))
