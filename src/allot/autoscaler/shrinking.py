"""Which nodes can go: those whose pods all find places elsewhere, claims included. Pure.

A node is tried by taking it away, in a simulation on top of what was decided before: its pods leave, what
they alone used is free, and each is placed again by the scheduler's own cycle. Pods that share a claim move
together: it has no devices once the last of them has left, and the first that is placed finds it some.

What it promises
    Y2  Nothing is removed whose pods do not all find a place, claims included, in the same simulation; pods
        move before the node goes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from allot.api import resource
from allot.planning import belongs_to_node, comes_back, defrag, unbound
from allot.scheduler import Budgets, PodInfo, Simulation, Snapshot, places

DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


class Removal(NamedTuple):
    node: str
    moves: Mapping[str, str]  # where its pods would go, by uid


@dataclass(frozen=True, slots=True)
class Shrinking:
    removals: tuple[Removal, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)  # why others stay


def shrink(
    simulation: Simulation, candidates: Iterable[str], spare: Mapping[str, int], group_of: Mapping[str, str]
) -> Shrinking:
    """`spare` is how many nodes each group could do without. The emptiest go first. It is used up."""
    snapshot = simulation.snapshot
    order = sorted(candidates, key=lambda name: (len(_movers(snapshot, name)), name))
    left, removals, kept = dict(spare), [], {}
    receiving: set[str] = set()
    moved: list[PodInfo] = []
    for name in order:
        group = group_of[name]
        if left.get(group, 0) <= 0:
            kept[name] = "its group has no more than it must have"
        elif name in receiving:
            kept[name] = "pods of another node are to come"
        elif why := _stays(simulation.snapshot, name, moved):
            kept[name] = why
        else:
            moves = _moved(simulation.fork(), name)
            if isinstance(moves, str):
                kept[name] = moves
                continue
            left[group] -= 1
            moved += _movers(simulation.snapshot, name)
            receiving |= {*moves.values()}
            _moved(simulation, name)
            removals.append(Removal(name, moves))
    return Shrinking(tuple(removals), kept)


def _movers(snapshot: Snapshot, name: str) -> list[PodInfo]:
    node = snapshot.node(name)
    pods = node.pods.values() if node is not None else ()
    return sorted(
        (pod for pod in pods if not belongs_to_node(pod)), key=lambda pod: (-pod.priority, str(pod.key))
    )


def _stays(snapshot: Snapshot, name: str, moved: Sequence[PodInfo]) -> str:
    """What keeps a node before anything is tried."""
    movers = _movers(snapshot, name)
    for pod in movers:
        if defrag.is_not_to_be_evicted(pod):
            return f"pod {pod.key} is not to be evicted"
        if not comes_back(pod) and not defrag.may_be_lost(pod):
            return f"nobody makes pod {pod.key} anew"
    budgets = Budgets(dict(snapshot.prospects.budgets.items()), moved)
    held = budgets.violating(movers)
    if held:
        return f"a disruption budget keeps pod {held[0].key}"
    for claim in snapshot.claims():
        is_kept = claim.allocation is not None and resource.lifecycle.of(claim.view).gives_back is KEEP
        if is_kept and places((claim,)) == frozenset({name}):
            return f"claim {claim.key} stays allocated here, whoever uses it"
    return ""


KEEP = resource.lifecycle.Ending.KEEP


def _moved(simulation: Simulation, name: str) -> dict[str, str] | str:
    """The node is taken away; where its pods go, or why one of them goes nowhere."""
    movers = _movers(simulation.snapshot, name)
    simulation.remove_node(name)
    found: dict[str, str] = {}
    for pod in movers:
        if not comes_back(pod):
            continue
        place = simulation.place(unbound(pod))
        if not isinstance(place, str):
            return f"pod {pod.key} would find no other place"
        if pod.uid in simulation.negotiated:
            return f"the driver of a claim of pod {pod.key} would have to be asked"
        found[pod.uid] = place
    return found
