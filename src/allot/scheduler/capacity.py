"""How many more fit: asked of the allocator, on forks, until it says no."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from allot.allocation import Demand, Ledger, Node, Plan, Refused, allocate, read_demand, taken_by
from allot.api import resource
from allot.base import Ids

from .snapshot import Snapshot

MOST = 10_000
"""Of one node. What can be had without end (administrators' access) is not counted further."""


@dataclass(frozen=True, slots=True)
class Room:
    """How often the claims fit as things are."""

    total: int
    by_node: dict[str, int]  # each on its own: what nodes share counts for all of them
    cordoned: tuple[str, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether nodes compete for the same devices, so that not all can have all of it."""
        return sum(self.by_node.values()) > self.total

    def as_json(self) -> dict[str, Any]:
        return {"total": self.total, "nodes": self.by_node, "cordoned": list(self.cordoned)}


def room_for(claims: Sequence[resource.ResourceClaim], snapshot: Snapshot, ids: Ids) -> Room | Refused:
    demand = read_demand(claims, snapshot.classes, snapshot.features)
    if isinstance(demand, Refused):
        return demand
    nodes = sorted(snapshot.nodes(), key=lambda one: one.name)
    alone: dict[str, int] = {}
    together = snapshot.ledger.fork()
    total = 0
    for node in nodes:
        alone[node.name] = _fill(node.place, snapshot, snapshot.ledger.fork(), demand, ids)
        # What went to nodes before counts here: a device that several reach is had once.
        total += _fill(node.place, snapshot, together, demand, ids) if alone[node.name] else 0
    cordoned = tuple(one.name for one in nodes if one.unschedulable)
    return Room(total, alone, cordoned)


def _fill(node: Node, snapshot: Snapshot, ledger: Ledger, demand: Demand, ids: Ids) -> int:
    count = 0
    while count < MOST:
        answer = allocate(node, snapshot.inventory, ledger, demand)
        if not isinstance(answer, Plan):
            break
        for at, result in enumerate(answer.results(ids)):
            ledger.fly(f"{node.name}/{count}/{at}", taken_by(result))
        count += 1
    return count
