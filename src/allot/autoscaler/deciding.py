"""One decision: who waits, what is coming, which groups grow, which nodes can go. Pure.

    coming     nodes that were asked for are added to the simulation as their templates say; one that is
               there and has not published everything yet is taken for what it will be (AUTO-52)
    growing    pods that wait find places, on what is there, on what comes, on what would have to be added
    leaving    nodes on their way out: kept after all when somebody waits, else emptied, then removed
    shrinking  only when nobody waits and nothing comes, and what was not needed for a while

What it promises
    Y3  With unchanged demand a group is not enlarged after it was reduced, nor the other way round: nothing
        goes while anything comes, nor soon after; what goes leaves room for all that it held; and a pod that
        waits keeps every node from going that would take it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from msgspec import structs

from allot.api import Object, core
from allot.planning import belongs_to_node
from allot.scheduler import Plugin, PodInfo, Simulation, Snapshot

from .classic import NOBODY, Asked, ClassicGrowth, enlarged, needs_drivers, place_classic
from .groups import LEAVING, Group
from .memory import Memory
from .packing import Growth, grow, importance
from .shrinking import DISABLED, shrink
from .templates import group_of


@dataclass(frozen=True, slots=True)
class Settings:
    unneeded_s: float = 600.0  # before a node may go
    after_growth_s: float = 600.0  # before anything goes
    removals_max: int = 10  # at once


@dataclass(frozen=True, slots=True)
class View:
    """The cluster as the autoscaler sees it."""

    snapshot: Snapshot
    nodes: Mapping[str, Object]
    slices: Sequence[Object]
    waiting: Sequence[PodInfo]
    hosts: Callable[[PodInfo], Sequence[str]] = lambda pod: ()


@dataclass(frozen=True, slots=True)
class Decision:
    growth: Growth
    grow: Mapping[str, int] = field(default_factory=dict)  # by how many nodes, by group
    mark: tuple[str, ...] = ()  # nodes that are to be emptied
    keep: tuple[str, ...] = ()  # nodes that stay after all
    evict: tuple[PodInfo, ...] = ()
    remove: tuple[str, ...] = ()  # nodes that are empty
    kept: Mapping[str, str] = field(default_factory=dict)  # why nodes that are hardly used stay


@dataclass(frozen=True, slots=True)
class Beginning:
    """A decision that has begun: what is coming is in the simulation, and what drivers have answered."""

    simulation: Simulation
    groups: Sequence[Group]  # with what was asked for, and why some are closed
    coming: Sequence[str]
    classic: ClassicGrowth


class Decider:
    """Remembers since when nodes are not needed; everything else is handed in."""

    def __init__(self, settings: Settings, plugins: Sequence[Plugin]) -> None:
        self._settings = settings
        self._plugins = plugins
        self._unneeded: dict[str, float] = {}  # since when, by node
        self._waits_s: dict[str, float] = {}  # how long, by node, where its group cares
        self._grown_s = float("-inf")

    async def begin(
        self,
        view: View,
        memory: Memory,
        groups: Sequence[Group],
        now: datetime,
        now_s: float,
        extenders: Mapping[str, Asked] = NOBODY,
    ) -> Beginning:
        """The only part that asks anybody: drivers of classic claims, where some can be asked."""
        simulation = Simulation(view.snapshot, self._plugins, now)
        coming = _come(simulation, memory)
        sized = [self._sized(one, memory, now_s) for one in groups]
        pods = [pod for pod in view.waiting if needs_drivers(pod, view.snapshot)] if extenders else []
        ordered = sorted(pods, key=importance)
        classic = await place_classic(simulation, ordered, sized, view.nodes, extenders, view.hosts, coming)
        return Beginning(simulation, enlarged(sized, classic), [*coming, *classic.nodes], classic)

    def decide(self, view: View, beginning: Beginning, now_s: float) -> Decision:
        simulation, coming, sized = beginning.simulation, beginning.coming, beginning.groups
        classic = beginning.classic
        leaving = [name for name, node in view.nodes.items() if is_leaving(node)]
        asked = {*classic.placed, *classic.helpless, *(p.uid for n in classic.nodes.values() for p in n.pods)}
        waiting = [pod for pod in view.waiting if pod.uid not in asked]
        more = grow(simulation, waiting, sized, view.hosts, coming)
        growth = Growth(
            (*classic.nodes.values(), *more.nodes),
            {**classic.placed, **more.placed},
            {**classic.helpless, **more.helpless},
            more.blocked,
        )
        if leaving and (growth.nodes or _would_take(simulation, leaving, view.waiting, growth)):
            self._unneeded.clear()
            return Decision(Growth(placed=growth.placed), keep=tuple(leaving))
        added = Counter(node.group for node in growth.nodes)
        for one in sized:  # which have the nodes of classic pods already
            lacking = one.least - one.size - sum(node.group == one.name for node in more.nodes)
            if lacking > 0 and one.template is not None and not one.closed:
                added[one.name] += lacking
        if added or coming:
            self._grown_s = now_s if added else self._grown_s
            self._unneeded.clear()
            return Decision(growth, dict(added), keep=tuple(leaving))
        kept = self._idle(simulation, view, sized, growth, now_s)
        mark = self._due(now_s, len(leaving))
        return Decision(growth, {}, mark, (), *_out(view, leaving), kept)

    def _sized(self, group: Group, memory: Memory, now_s: float) -> Group:
        closed = group.closed or memory.closed(group, now_s)
        return replace(group, size=group.size + memory.coming(group.name), closed=closed)

    def _idle(
        self, simulation: Simulation, view: View, groups: Sequence[Group], growth: Growth, now_s: float
    ) -> Mapping[str, str]:
        """Which nodes could go now; how long each of them could have gone."""
        needed = {*growth.placed.values()}
        group_of_node = {name: group_of(node) for name, node in view.nodes.items() if group_of(node)}
        going = Counter(group_of_node[name] for name in view.nodes if is_leaving(view.nodes[name]))
        spare = {one.name: one.size - one.least - going[one.name] for one in groups}
        candidates = [
            name
            for name, group in group_of_node.items()
            if spare.get(group, 0) > 0 and name not in needed and _may_go(view.nodes[name])
        ]
        found = shrink(simulation, candidates, spare, group_of_node)
        self._unneeded = {one.node: self._unneeded.get(one.node, now_s) for one in found.removals}
        cares = {one.name: one.unneeded_s for one in groups}
        asked = {name: cares.get(group_of_node[name]) for name in self._unneeded}
        self._waits_s = {name: wait_s for name, wait_s in asked.items() if wait_s is not None}
        return found.kept

    def _due(self, now_s: float, leaving: int) -> tuple[str, ...]:
        if now_s - self._grown_s < self._settings.after_growth_s:
            return ()
        usual_s = self._settings.unneeded_s
        due = [
            name
            for name, since_s in self._unneeded.items()
            if now_s - since_s >= self._waits_s.get(name, usual_s)
        ]
        return tuple(due[: max(0, self._settings.removals_max - leaving)])


def _would_take(
    simulation: Simulation, leaving: Sequence[str], waiting: Sequence[PodInfo], growth: Growth
) -> bool:
    """Whether nodes on their way out, were they open, would take a pod that is left without a place."""
    left = [pod for pod in waiting if pod.uid in growth.helpless]
    if not left:
        return False
    open_again = simulation.fork()
    for name in leaving:
        node = open_again.snapshot.node(name)
        if node is not None:
            taints = tuple(one for one in node.taints if one.key != LEAVING)
            open_again.change_node(structs.replace(node, taints=taints))
    return any(isinstance(open_again.fits(pod, leaving), str) for pod in left)


def _out(view: View, leaving: Sequence[str]) -> tuple[tuple[PodInfo, ...], tuple[str, ...]]:
    """Pods that are to leave, and nodes that nobody is on any more (Y2)."""
    evict: list[PodInfo] = []
    remove: list[str] = []
    for name in leaving:
        node = view.snapshot.node(name)
        pods = [pod for pod in node.pods.values() if not belongs_to_node(pod)] if node is not None else []
        if pods:
            evict += [pod for pod in pods if not pod.is_deleting]
        else:
            remove.append(name)
    return tuple(evict), tuple(remove)


def is_leaving(node: Object) -> bool:
    return any(one.key == LEAVING for one in node.view(core.Node).spec.taints)


def _may_go(node: Object) -> bool:
    return not is_leaving(node) and (node.metadata.annotations or {}).get(DISABLED) != "true"


def _come(simulation: Simulation, memory: Memory) -> list[str]:
    """Nodes that were asked for, as they are expected; their names in the simulation."""
    names = []
    for at, one in enumerate(memory.asked):
        more = one.template.named(f"{one.group}-asked-{at}", one.group)
        simulation.add_node(more.node, more.slices)
        names.append(more.name)
    for arriving in memory.arriving:
        node = simulation.snapshot.node(arriving.node)
        pods = [*node.pods.values()] if node is not None else []
        simulation.remove_node(arriving.node)
        more = arriving.template.named(f"{arriving.node}-arriving", arriving.group)
        simulation.add_node(more.node, more.slices)
        for pod in pods:
            simulation.squeeze_in(pod, more.name)
        names.append(more.name)
    return names
