"""NodeResourcesFit: what a pod requests must be left on its node; and how full the node may get.

It counts cpu, memory, ephemeral storage, huge pages, the number of pods and whatever device
plugins offer. An extended resource of which a node offers nothing and behind which a device
class stands is the business of DynamicResources on that node, and is left out here.

The rating takes the node as it would be with the pod on it. It counts the number of pods
beside cpu and memory, because pods that request nothing are also to be spread.
"""

from collections.abc import Hashable, Mapping
from enum import Enum
from types import MappingProxyType

from ..amounts import PODS, Amounts
from ..framework import Checks, CycleState, Event, Rate, Rejection, Tier
from ..node import NodeInfo
from ..snapshot import Snapshot

NAME = "NodeResourcesFit"
WEIGHT = 1.0
SCALE = 100.0
RESOURCES: Mapping[str, float] = MappingProxyType({"cpu": 1.0, "memory": 1.0, PODS: 1.0})


class Strategy(Enum):
    LEAST_ALLOCATED = "LeastAllocated"  # spread
    MOST_ALLOCATED = "MostAllocated"  # packed


class NodeResourcesFit:
    name = NAME
    events = frozenset(
        {Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_GONE, Event.POD_CHANGED, Event.CLASS_CHANGED}
    )
    tier = Tier.RESOURCES

    def __init__(
        self,
        strategy: Strategy = Strategy.LEAST_ALLOCATED,
        *,
        resources: Mapping[str, float] = RESOURCES,
        weight: float = WEIGHT,
    ) -> None:
        """`resources` says what the rating looks at, and how much each counts."""
        self._strategy = strategy
        self._resources = resources
        self._weight = weight

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        return frozenset(state.pod.requests.items())

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks:
        wanted = tuple((name, amount) for name, amount in state.pod.requests.items() if amount)
        served = frozenset(name for name, _ in wanted if snapshot.extended.class_for(name) is not None)
        return Checks(FitCheck(wanted, served))

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate | None:
        requests, weights = state.pod.requests, tuple(self._resources.items())
        is_packed = self._strategy is Strategy.MOST_ALLOCATED
        scale = self._weight * SCALE

        def rate(node: NodeInfo) -> float:
            filling = _filling(node, requests, weights)
            return scale * (1.0 - filling if is_packed else filling)

        return rate


class FitCheck:
    def __init__(self, wanted: tuple[tuple[str, int], ...], served: frozenset[str]) -> None:
        """`served` are the resources behind which a device class stands."""
        self._wanted = wanted
        self._served = served
        self._known: dict[tuple[tuple[str, ...], bool], Rejection] = {}

    def __call__(self, node: NodeInfo) -> Rejection | None:
        short: tuple[str, ...] = ()
        ever = True
        allocatable, used = node.allocatable, node.used
        for name, amount in self._wanted:
            offered = allocatable.get(name, 0)
            if amount <= offered - used.get(name, 0) or (offered == 0 and name in self._served):
                continue
            short += (name,)
            ever = ever and amount <= offered
        return self._rejection(short, ever) if short else None

    def _rejection(self, short: tuple[str, ...], ever: bool) -> Rejection:
        """`ever`: an empty node would do."""
        found = self._known.get((short, ever))
        if found is None:
            found = self._known[short, ever] = Rejection(NAME, reason(short), resolvable=ever)
        return found


def reason(short: tuple[str, ...]) -> str:
    others = sorted(name for name in short if name != PODS)
    words = ["Too many pods"] if PODS in short else []
    if others:
        words.append(f"Insufficient {' and '.join(others)}")
    return ", ".join(words)


def _filling(node: NodeInfo, requests: Amounts, weights: tuple[tuple[str, float], ...]) -> float:
    """How full the node would be, from 0 to 1; what it has nothing of does not count."""
    total = count = 0.0
    for name, weight in weights:
        offered = node.allocatable.get(name, 0)
        if offered > 0:
            taken = node.used.get(name, 0) + requests.get(name, 0)
            total += weight * min(1.0, taken / offered)
            count += weight
    return total / count if count else 0.0
