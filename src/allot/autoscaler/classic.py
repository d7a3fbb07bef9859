"""Pods with claims that a driver allocates: placed by asking the driver, before everybody else.

What a driver would say nobody guesses. A decision opens a session with each driver that is needed; the driver
answers from what it knew then. Every pod, the most important first, is put to the nodes that the scheduler's
plugins leave: those that are there or coming, and one more of each group, the cheapest first. Whole nodes are
sent, since some are imagined. The node that all drivers accept is selected with each of them, so that later
answers of the session count the pod; then it is bound in the simulation, and counts there too.

A driver without an extender, or one that does not answer, adds no node for its pods, and that is said.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from allot.api import Fields, Object
from allot.planning import Imagined, free_names
from allot.scheduler import PodInfo, Simulation, Snapshot

from .extenders import CannotPlace, ExtenderFailed, Filtered
from .groups import Group
from .packing import Hosts, NewNode

ASKED_MAX = 64
"""Nodes that are there and put to a driver for one pod."""


class Session(Protocol):
    async def filter(self, pod: Mapping[str, object], nodes: Sequence[Mapping[str, object]]) -> Filtered: ...

    async def select(self, pod: Mapping[str, object], node: Mapping[str, object]) -> None: ...

    async def is_ready(self, node: str) -> bool: ...


class Asked(Protocol):
    """A driver that can be asked: over HTTP (`extenders.Extender`), or an object in this process."""

    async def start(self) -> Session: ...


NOBODY: Mapping[str, Asked] = {}


@dataclass
class ClassicGrowth:
    nodes: dict[str, NewNode] = field(default_factory=dict)  # by name
    placed: dict[str, str] = field(default_factory=dict)  # by pod uid
    helpless: dict[str, str] = field(default_factory=dict)


def needs_drivers(pod: PodInfo, snapshot: Snapshot) -> bool:
    claims = (snapshot.claim(key) for key in pod.claims)
    return any(one is not None and one.is_classic and one.allocation is None for one in claims)


async def place_classic(
    simulation: Simulation,
    pods: Sequence[PodInfo],
    groups: Sequence[Group],
    nodes: Mapping[str, Object],
    extenders: Mapping[str, Asked],
    hosts: Hosts = lambda pod: (),
    coming: Sequence[str] = (),
) -> ClassicGrowth:
    """`nodes` are those that are there. Pods, and nodes that they need, are in the simulation afterwards."""
    if not pods:
        return ClassicGrowth()
    placing = _Placing(simulation, groups, nodes, extenders, coming)
    for pod in pods:
        await placing.place(pod, hosts(pod))
    placing.end()
    return placing.growth


class _Placing:
    def __init__(
        self,
        simulation: Simulation,
        groups: Sequence[Group],
        nodes: Mapping[str, Object],
        extenders: Mapping[str, Asked],
        coming: Sequence[str],
    ) -> None:
        self.growth = ClassicGrowth()
        self._simulation = simulation
        self._groups = {group.name: group for group in groups}
        self._objects: dict[str, Object] = dict(nodes)
        self._extenders = extenders
        self._sessions: dict[str, Session] = {}
        self._open = list(coming)  # nodes that are not there and may be used
        self._fresh: dict[str, str] = {}  # a node more of each group, by group
        self._names = {*simulation.snapshot.node_names()}
        for group in sorted(groups, key=lambda one: one.price):
            self._add_fresh(group)

    async def place(self, pod: PodInfo, hosts: Sequence[str]) -> None:
        refused: dict[str, str] = {}
        names = self._fitting(pod, [*hosts[:ASKED_MAX], *self._open, *self._fresh.values()], refused)
        drivers = self._simulation.negotiated.get(pod.uid, frozenset())
        self._simulation.evict(pod)
        if names and not drivers:
            return  # nobody has to be asked after all
        lacking = sorted(drivers - self._extenders.keys())
        if lacking:
            self._helpless(pod, f"{', '.join(lacking)} would have to be asked, and has no extender")
            return
        try:
            for name in await self._accepted(pod, names, drivers, refused):
                if await self._selected(pod, name, drivers, refused):
                    return
        except ExtenderFailed as failed:
            self._helpless(pod, str(failed))
            return
        told = [f"{self._called(name)}: {why}" for name, why in refused.items()]
        self._helpless(pod, "; ".join([*told, *self._full()]))

    def _fitting(self, pod: PodInfo, names: Sequence[str], refused: dict[str, str]) -> list[str]:
        """The nodes that the plugins leave. The pod is on the last of them: so it is known who is asked."""
        found = []
        for name in names:
            self._simulation.evict(pod)
            why = self._simulation.bind(pod, name)
            if why is None:
                found.append(name)
            else:
                refused[name] = why.reason
        if found and self._simulation.snapshot.place_of(pod.uid) is None:
            self._simulation.bind(pod, found[-1])
        return found

    async def _accepted(
        self, pod: PodInfo, names: Sequence[str], drivers: frozenset[str], refused: dict[str, str]
    ) -> list[str]:
        left = list(names)
        for driver in sorted(drivers):
            nodes = [self._fields(name) for name in left]
            answer = await (await self._session(driver)).filter(pod.object.fields, nodes)
            kept = {str(one["metadata"]["name"]) for one in answer.nodes}
            for name in left:
                if name not in kept:
                    refused[name] = answer.failed.get(name, f"{driver} refuses")
            left = [name for name in left if name in kept]
        return left

    async def _selected(
        self, pod: PodInfo, name: str, drivers: frozenset[str], refused: dict[str, str]
    ) -> bool:
        try:
            for driver in sorted(drivers):
                await (await self._session(driver)).select(pod.object.fields, self._fields(name))
        except CannotPlace as wrong:
            refused[name] = str(wrong)
            return False
        if self._simulation.bind(pod, name) is not None:
            return False
        self._settle(pod, name)
        return True

    def _settle(self, pod: PodInfo, name: str) -> None:
        group = next((one for one, fresh in self._fresh.items() if fresh == name), None)
        if group is not None:
            del self._fresh[group]
            self.growth.nodes[name] = NewNode(group, name, (pod,))
            self._open.append(name)
            self._add_fresh(self._groups[group])
        elif name in self.growth.nodes:
            node = self.growth.nodes[name]
            self.growth.nodes[name] = node._replace(pods=(*node.pods, pod))
        else:
            self.growth.placed[pod.uid] = name

    async def _session(self, driver: str) -> Session:
        if driver not in self._sessions:
            self._sessions[driver] = await self._extenders[driver].start()
        return self._sessions[driver]

    def _add_fresh(self, group: Group) -> None:
        added = sum(node.group == group.name for node in self.growth.nodes.values())
        if group.template is None or added >= group.room:
            return
        (name,) = free_names(f"{group.name}-new", self._names, 1)
        self._names.add(name)
        more: Imagined = group.template.named(name, group.name)
        self._simulation.add_node(more.node, more.slices)
        self._objects[name] = more.node
        self._fresh[group.name] = name

    def _full(self) -> Iterator[str]:
        """Groups of which no node more can be had (PACK2)."""
        for name, group in self._groups.items():
            if name not in self._fresh:
                unknown = "nobody knows what its nodes have" if group.template is None else ""
                yield f"{name}: {group.closed or unknown or f'it has its {group.most} nodes'}"

    def end(self) -> None:
        """Nodes that nobody needs are not there."""
        for name in self._fresh.values():
            self._simulation.remove_node(name)

    def _helpless(self, pod: PodInfo, why: str) -> None:
        self.growth.helpless[pod.uid] = why or "no node and no group would take it"

    def _fields(self, name: str) -> Fields:
        known = self._objects.get(name)
        return dict(known.fields) if known is not None else {"metadata": {"name": name}}

    def _called(self, name: str) -> str:
        return next((group for group, fresh in self._fresh.items() if fresh == name), name)


async def unready(extenders: Mapping[str, Asked], nodes: Sequence[str]) -> dict[str, str]:
    """New nodes for which a driver cannot answer yet, and which driver."""
    found: dict[str, str] = {}
    for driver, extender in extenders.items() if nodes else ():
        try:
            session = await extender.start()
            for node in nodes:
                if not await session.is_ready(node):
                    found[node] = f"{driver} is not ready for it"
        except ExtenderFailed as failed:
            found |= dict.fromkeys(nodes, str(failed))
    return found


def enlarged(groups: Sequence[Group], growth: ClassicGrowth) -> list[Group]:
    """The groups, with the nodes that are to be added."""
    return [
        replace(one, size=one.size + sum(node.group == one.name for node in growth.nodes.values()))
        for one in groups
    ]
