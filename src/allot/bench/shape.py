"""A workload as data: what is published, what is asked for, and how much of it.

Nothing here acts. A `Shape` says how many nodes there are and what happens on them;
its `Scene` says what a node publishes and what a pod asks for. Amounts follow the
number of nodes (`Amount`), so that a shape keeps its meaning on a fleet of another
size: half full stays half full.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from allot.scheduler import Scoring

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Amount:
    """So many for each node, and some more (or less) whatever their number."""

    per_node: float = 0
    more: int = 0

    def at(self, nodes: int) -> int:
        return max(0, round(self.per_node * nodes) + self.more)


NONE = Amount()
STEADY = Amount(more=10)
"""How many pods are there at any time in a steady shape."""
BURST_LEAST = 1000
"""Fewer pods at once would measure how the first ones get going."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is on each node, and what each pod wants of it."""

    classes: tuple[Json, ...]
    devices: tuple[Json, ...]  # of each node, in one slice
    counters: tuple[Json, ...] = ()  # shared counter sets of each node, in a slice of their own
    room: int = 10  # how many pods a node has devices for
    claim: Json | None = None  # the spec of the claim of each pod; None: pods have no claims
    pods_per_claim: int = 0  # 0: a template makes one for each pod
    requests: tuple[Mapping[str, str], ...] = ({},)  # of a pod's container; pods take turns

    def requests_of(self, pod: int) -> Mapping[str, str]:
        return self.requests[pod % len(self.requests)]


@dataclass(frozen=True, slots=True)
class Shape:
    test: str
    workload: str
    scene: Scene
    nodes: int
    pods: Amount  # measured; of a steady shape: how many are there at any time
    plain_nodes: int = 0  # without devices
    claims_before: Amount = NONE  # allocated by nobody's pod, before anything is measured
    pods_before: Amount = NONE  # scheduled before anything is measured
    steady: bool = False
    gates: tuple[str, ...] = ()  # to switch on
    scoring: Scoring | None = None  # how the scheduler is to score resources, where the shape says so

    @property
    def name(self) -> str:
        return f"{self.test}/{self.workload}"

    def on(self, nodes: int) -> "Shape":
        """The same on a fleet of another size."""
        return replace(self, nodes=nodes)

    def with_pods(self, count: int) -> "Shape":
        """The same with so many measured pods, whatever the number of nodes."""
        return replace(self, pods=Amount(more=count))

    def in_bursts(self) -> "Shape":
        """The pods of a steady shape all at once: for half of the devices that are left, or all if
        those are few."""
        if not self.steady:
            return self
        before = self.claims_before.at(self.nodes) + self.pods_before.at(self.nodes)
        left = self.scene.room * self.nodes - before
        return replace(self, steady=False, pods=Amount(more=max(left // 2, min(left, BURST_LEAST))))

    def kept_up(self) -> "Shape":
        """A few pods at any time, one leaving for each that comes, where the shape has a burst."""
        room = self.scene.room * self.nodes
        return self if self.steady else replace(self, steady=True, pods=Amount(more=min(room, STEADY.more)))

    @property
    def summary(self) -> str:
        """One line for a list."""
        before = [
            f"{amount.at(self.nodes)} {what} before"
            for amount, what in ((self.claims_before, "claims"), (self.pods_before, "pods"))
            if amount.at(self.nodes)
        ]
        count = self.pods.at(self.nodes)
        measured = f"{count} pods at any time" if self.steady else f"{count} pods"
        nodes = f"{self.nodes}+{self.plain_nodes}" if self.plain_nodes else f"{self.nodes}"
        return ", ".join([f"{nodes} nodes", *before, measured])
