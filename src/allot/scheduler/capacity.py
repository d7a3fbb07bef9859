"""How many more fit: pods that want these claims and nothing else are bound in a simulation, one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from allot.allocation import BUDGET_STEPS, Refused, allocate, read_demand
from allot.api import Object, core, resource
from allot.base import Ids
from allot.informers import Key

from .claim import ClaimInfo
from .framework import Rejection
from .node import NodeInfo
from .plugins import about_claims
from .pod import PodInfo
from .simulation import Simulation
from .snapshot import Snapshot

MOST = 10_000
"""Of one node; nobody counts further."""

NEVER_MIND = datetime(1970, 1, 1, tzinfo=UTC)
"""Nothing here depends on when it is asked: claims without devices wait for nobody."""

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
    each, together = _Filling(claims, snapshot, ids), _Filling(claims, snapshot, ids)
    alone: dict[str, int | None] = {}
    total: int | None = 0
    closed: dict[str, str] = {}
    undecided: list[str] = []
    refusing: NodeInfo | None = None
    for node in sorted(snapshot.nodes(), key=lambda one: one.name):
        here, end = each.fill(node.name)
        each.empty()
        alone[node.name] = here
        if end is not None and end.undecided:
            undecided.append(node.name)
        elif end is not None and not end.resolvable:  # it is not for want of devices
            refusing = refusing or node
        if why := why_closed(node):
            closed[node.name] = why
        elif here is None or total is None:
            total = None
        elif here:
            # What went to nodes before counts here: a device that several reach is had once.
            total += together.fill(node.name)[0] or 0
    if refusing is not None and not any(count != 0 for count in alone.values()):
        answer = allocate(refusing.place, snapshot.inventory, snapshot.ledger, demand)
        if isinstance(answer, Refused):
            return answer
    return Room(total, alone, closed, tuple(undecided))


class _Filling:
    """A simulation in which pods with copies of the claims fill one node after the other."""

    def __init__(self, claims: Sequence[resource.ResourceClaim], snapshot: Snapshot, ids: Ids) -> None:
        self._simulation = Simulation(snapshot, about_claims(ids, BUDGET_STEPS), NEVER_MIND)
        self._claims = claims
        self._pod = PodInfo.of(Object(msgspec.json.encode({"metadata": {"name": "pod"}})))
        self._copies: list[PodInfo] = []
        self._used = 0  # of the copies

    def fill(self, node: str) -> tuple[int | None, Rejection | None]:
        """How many fit, and what the next one is told.

        None: as many as one likes, since nothing is taken (administrators' access, or no devices at all).
        """
        for count in range(MOST):
            pod = self._next()
            rejection = self._simulation.bind(pod, node)
            if rejection is not None:
                self._used -= 1
                return count, rejection
            if not self._takes_anything(pod):
                return None, None
        return MOST, None

    def empty(self) -> None:
        self._simulation.reset()
        self._used = 0

    def _next(self) -> PodInfo:
        if self._used == len(self._copies):
            self._copies.append(self._copy(self._used))
        self._used += 1
        return self._copies[self._used - 1]

    def _copy(self, number: int) -> PodInfo:
        """One more pod, with claims of its own; no cluster has objects of such names."""
        entries = []
        for at, claim in enumerate(self._claims):
            name = f"<{number}/{at}>"
            metadata = replace(claim.metadata, name=name, uid=name, namespace="")
            view = replace(claim, metadata=metadata, status=resource.ResourceClaimStatus())
            self._simulation.add_claim(ClaimInfo(self._pod.object, name, Key("", name), view))
            entries.append(core.PodClaim(name=str(at), resource_claim_name=name))
        pod = self._pod.view
        asking = replace(pod, spec=replace(pod.spec, resource_claims=tuple(entries)))
        return replace(self._pod, uid=f"<{number}>", view=asking)

    def _takes_anything(self, pod: PodInfo) -> bool:
        hold = self._simulation.snapshot.ledger.hold
        held = (hold(one.resource_claim_name or "") for one in pod.spec.resource_claims)
        return any(not taken.admin for one in held if one is not None for taken in one.devices)


def why_closed(node: NodeInfo) -> str:
    """Why nothing is placed on a node, whoever asks; "" where it is open."""
    if node.unschedulable:
        return "cordoned"
    for taint in node.taints:
        if taint.key.startswith(LIFECYCLE) and taint.effect in ("NoSchedule", "NoExecute"):
            return taint.key.removeprefix(LIFECYCLE)
    return ""
