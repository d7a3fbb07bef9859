"""NodeResourcesBalancedAllocation: rather a node whose resources get full together.

A node that is out of memory with half of its cpu left wastes the cpu. The rating is how far
apart the filled shares are once the pod is there: their standard deviation.
"""

from collections.abc import Hashable, Mapping
from math import sqrt
from types import MappingProxyType

from ..framework import CycleState, Rate, Tier
from ..node import NodeInfo
from ..snapshot import Snapshot

NAME = "NodeResourcesBalancedAllocation"
WEIGHT = 1.0
SCALE = 100.0
RESOURCES: Mapping[str, float] = MappingProxyType({"cpu": 1.0, "memory": 1.0})


class NodeResourcesBalancedAllocation:
    name = NAME
    tier = Tier.RESOURCES

    def __init__(self, *, resources: Mapping[str, float] = RESOURCES, weight: float = WEIGHT) -> None:
        """Of `resources` only the names count: shares are compared, not added."""
        self._resources = tuple(resources)
        self._weight = weight

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        requests = state.pod.requests
        return tuple(requests.get(name, 0) for name in self._resources)

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate | None:
        """None for a pod that requests nothing of it: it leaves the balance as it is."""
        requests = {name: state.pod.requests.get(name, 0) for name in self._resources}
        if not any(requests.values()):
            return None
        scale = self._weight * SCALE

        def rate(node: NodeInfo) -> float:
            shares = []
            for name, amount in requests.items():
                offered = node.allocatable.get(name, 0)
                if offered > 0:
                    shares.append(min(1.0, (node.used.get(name, 0) + amount) / offered))
            return scale * _deviation(shares)

        return rate


def _deviation(shares: list[float]) -> float:
    if len(shares) < 2:
        return 0.0
    mean = sum(shares) / len(shares)
    return sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))
