"""NodeResourcesFit: what a pod requests must be left on its node; and how full the node may get.

It counts cpu, memory, ephemeral storage, huge pages, the number of pods and whatever device
plugins offer. An extended resource of which a node offers nothing and behind which a device
class stands is the business of DynamicResources on that node, and is left out here; classes of compute
resources are the business of ComputeResources on every node.

The rating takes the node as it would be with the pod on it. Unless told otherwise it counts the number
of pods beside cpu and memory, because pods that request nothing are also to be spread. Where it is told
to look at an extended resource it counts devices as well, and decides among what users wish.
"""

from collections.abc import Hashable

from allot.api import compute

from ..amounts import PODS
from ..compute import HELD
from ..filling import Filling, extended_names
from ..framework import Checks, CycleState, Event, Rate, Rejection, Tier
from ..node import NodeInfo
from ..settings import Scoring, Strategy
from ..snapshot import Snapshot

NAME = "NodeResourcesFit"
WEIGHT = 1.0
SCALE = 100.0
DEFAULT = Scoring()


class NodeResourcesFit:
    name = NAME
    events = frozenset(
        {Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_GONE, Event.POD_CHANGED, Event.CLASS_CHANGED}
    )

    def __init__(self, scoring: Scoring = DEFAULT, *, weight: float = WEIGHT) -> None:
        self._scoring = scoring
        self._weight = weight
        self.tier = Tier.WISH if scoring.is_of_devices else Tier.RESOURCES

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable:
        if names := extended_names(state.pod.requests):
            state.classes |= snapshot.classes.revisions(names)
        return frozenset(state.pod.requests.items())

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks:
        wanted = tuple(
            (name, amount)
            for name, amount in state.pod.requests.items()
            if amount and not (snapshot.heeds_compute and is_of_compute(name))
        )
        served = frozenset(name for name, _ in wanted if snapshot.extended.class_for(name) is not None)
        return Checks(FitCheck(wanted, served))

    def pre_score(self, state: CycleState, snapshot: Snapshot) -> Rate | None:
        filling = Filling(dict(self._scoring.resources), state.pod.requests, snapshot)
        score, scale = self._scoring.score, self._weight * SCALE

        def rate(node: NodeInfo) -> float:
            total = count = 0.0
            for weight, share in filling.shares(node):
                total += weight * score(share)
                count += weight
            return scale * (1.0 - total / count) if count else 0.0

        def rate_spread(node: NodeInfo) -> float:
            """The same for LeastAllocated, of which there are most."""
            total = count = 0.0
            for weight, share in filling.shares(node):
                total += weight * share
                count += weight
            return scale * total / count if count else 0.0

        return rate_spread if self._scoring.strategy is Strategy.LEAST_ALLOCATED else rate


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


def is_of_compute(name: str) -> bool:
    return bool(compute.class_of(name)) or name.startswith(HELD)


def reason(short: tuple[str, ...]) -> str:
    others = sorted(name for name in short if name != PODS)
    words = ["Too many pods"] if PODS in short else []
    if others:
        words.append(f"Insufficient {' and '.join(others)}")
    return ", ".join(words)
