"""How many more fit: asked of the allocator, on forks, until it says no."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from allot.allocation import (
    Answer,
    Demand,
    Ledger,
    Node,
    Plan,
    Refused,
    Undecided,
    allocate,
    read_demand,
    taken_by,
)
from allot.api import resource
from allot.base import Ids

from .node import NodeInfo
from .snapshot import Snapshot

MOST = 10_000
"""Of one node; nobody counts further."""

LIFECYCLE = "node.kubernetes.io/"
"""Taints by which the cluster itself closes a node. Others may well be tolerated by who asks."""


@dataclass(frozen=True, slots=True)
class Room:
    """How often the claims fit as things are."""

    total: int | None  # on nodes that are open; None: without end, since nothing is taken by it
    by_node: dict[str, int | None]  # each on its own: what nodes share counts for all of them
    closed: dict[str, str]  # why nothing is placed on a node
    undecided: tuple[str, ...] = ()  # nodes where the search gave up: there may be more

    @property
    def is_shared(self) -> bool:
        """Whether nodes compete for the same devices, so that not all can have all of it."""
        counts = [count or 0 for name, count in self.by_node.items() if name not in self.closed]
        return self.total is not None and sum(counts) > self.total

    def as_json(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "nodes": self.by_node,
            "closed": self.closed,
            "undecided": list(self.undecided),
        }


def room_for(claims: Sequence[resource.ResourceClaim], snapshot: Snapshot, ids: Ids) -> Room | Refused:
    demand = read_demand(claims, snapshot.classes, snapshot.features)
    if isinstance(demand, Refused):
        return demand
    alone: dict[str, int | None] = {}
    together = snapshot.ledger.fork()
    total: int | None = 0
    closed: dict[str, str] = {}
    undecided: list[str] = []
    refused: Refused | None = None
    for node in sorted(snapshot.nodes(), key=lambda one: one.name):
        here, end = _fill(node.place, snapshot, snapshot.ledger.fork(), demand, ids)
        alone[node.name] = here
        if isinstance(end, Undecided):
            undecided.append(node.name)
        elif isinstance(end, Refused):
            refused = refused or end
        if why := _closed(node):
            closed[node.name] = why
        elif here is None or total is None:
            total = None
        elif here:
            # What went to nodes before counts here: a device that several reach is had once.
            total += _fill(node.place, snapshot, together, demand, ids)[0] or 0
    if refused is not None and not any(count != 0 for count in alone.values()):
        return refused
    return Room(total, alone, closed, tuple(undecided))


def _fill(
    node: Node, snapshot: Snapshot, ledger: Ledger, demand: Demand, ids: Ids
) -> tuple[int | None, Answer | None]:
    """How many fit, and what the next one is told.

    None: as many as one likes, since nothing is taken (administrators' access, or no devices at all).
    """
    count = 0
    while count < MOST:
        answer = allocate(node, snapshot.inventory, ledger, demand)
        if not isinstance(answer, Plan):
            return count, answer
        taken = [taken_by(result) for result in answer.results(ids)]
        if all(one.admin for devices in taken for one in devices):
            return None, None
        for at, devices in enumerate(taken):
            ledger.fly(f"{node.name}/{count}/{at}", devices)
        count += 1
    return count, None


def _closed(node: NodeInfo) -> str:
    if node.unschedulable:
        return "cordoned"
    for taint in node.taints:
        if taint.key.startswith(LIFECYCLE) and taint.effect in ("NoSchedule", "NoExecute"):
            return taint.key.removeprefix(LIFECYCLE)
    return ""
