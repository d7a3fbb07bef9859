"""Which groups grow, and by how many nodes, so that the pods that wait find places. Pure.

How it is decided
    existing   every pod is tried on nodes that are there or coming, one after the other; what one takes the
               next does not find
    shapes     the rest is sorted by signature: pods of one shape fit in the same places
    covering   how many of each shape an empty node of a group takes is tried out once; from that follows
               what a pod costs at least. The most expensive shape is served first, on the node on which the
               pods that fit together come cheapest; few pods are covered exactly instead
    binding    the nodes of the cover are added and the pods bound, in the simulation. What the plugins turn
               down is covered again, until nothing changes

What it promises
    Y1  Every node that is added takes a pod in this simulation, and no pod that another node would take
           without it being added.
    PACK1  No group grows beyond its bound.
    PACK2  A pod without a place is told, group by group, why none helps.

Cost follows shapes times groups, and the nodes that are added; not the nodes there are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import inf
from typing import NamedTuple

from allot.api import errors
from allot.planning import free_names
from allot.scheduler import PodInfo, Rejection, Simulation

from .groups import Group

ROUNDS_MAX = 4
EXACT_STATES_MAX = 600
EXACT_PATTERNS_MAX = 80

Hosts = Callable[[PodInfo], Sequence[str]]
"""The nodes there are that would take a pod, best first."""


class NewNode(NamedTuple):
    group: str
    name: str  # made up: the provider has names of its own
    pods: tuple[PodInfo, ...]


@dataclass(frozen=True, slots=True)
class Growth:
    nodes: tuple[NewNode, ...] = ()
    placed: Mapping[str, str] = field(default_factory=dict)  # on nodes that are there or coming, by pod uid
    helpless: Mapping[str, str] = field(default_factory=dict)  # why no node would help, by pod uid
    blocked: Mapping[str, str] = field(default_factory=dict)  # why pods cannot be tried at all yet, by uid

    def price(self, groups: Iterable[Group]) -> float:
        prices = {group.name: group.price for group in groups}
        return sum(prices[node.group] for node in self.nodes)


Pattern = tuple[int, ...]
"""How many pods of each shape are on one node together."""


def grow(
    simulation: Simulation,
    pods: Sequence[PodInfo],
    groups: Sequence[Group],
    hosts: Hosts = lambda pod: (),
    coming: Sequence[str] = (),
) -> Growth:
    """`coming` are nodes that were asked for and are in the simulation already. It is used up."""
    packing = _Packing(simulation, groups, hosts, coming)
    left = packing.place(sorted(pods, key=importance))
    for _ in range(ROUNDS_MAX):
        if not left:
            break
        before = len(left)
        left = packing.enlarge(left)
        if len(left) == before:
            break
    return packing.done(left)


def importance(pod: PodInfo) -> tuple[int, str, str]:
    return (-pod.priority, pod.object.metadata.creation_timestamp or "~", str(pod.key))


class _Packing:
    def __init__(
        self, simulation: Simulation, groups: Sequence[Group], hosts: Hosts, coming: Sequence[str]
    ) -> None:
        self._simulation = simulation
        self._groups = {group.name: group for group in groups}
        self._added: dict[str, tuple[Group, list[PodInfo]]] = {}
        self._coming = list(coming)
        self._names = {*simulation.snapshot.node_names()}
        self._hosts = hosts
        self._candidates: dict[object, list[str]] = {}  # nodes that have not refused a shape yet
        self._placed: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self._blocked: dict[str, str] = {}

    # -- on nodes that are there ----------------------------------------------------------------

    def place(self, pods: Iterable[PodInfo]) -> list[PodInfo]:
        """Those that find no place."""
        left = []
        for pod in pods:
            shape = self._shape(pod)
            if shape is None:
                continue
            candidates = self._candidates.get(shape)
            if candidates is None:
                candidates = self._candidates[shape] = [*self._hosts(pod), *self._coming]
            node = self._bind(pod, candidates)
            if node is None:
                left.append(pod)
            else:
                self._placed[pod.uid] = node
        return left

    def _shape(self, pod: PodInfo) -> object | None:
        gate = self._simulation.gate(pod)
        if gate is not None:
            self._blocked[pod.uid] = gate
            return None
        signature = self._simulation.signature(pod)
        if isinstance(signature, Rejection):
            self._blocked[pod.uid] = signature.reason
            return None
        return signature

    def _bind(self, pod: PodInfo, candidates: list[str]) -> str | None:
        """On the first that takes it. Those that refuse do not get emptier, so they are not asked again."""
        while candidates:
            if bind(self._simulation, pod, candidates[0]) is None:
                return candidates[0]
            candidates.pop(0)
        return None

    # -- on more nodes --------------------------------------------------------------------------

    def enlarge(self, pods: Sequence[PodInfo]) -> list[PodInfo]:
        """One round: cover, add, bind. Those that are left."""
        by_shape: dict[object, list[PodInfo]] = {}
        for pod in pods:
            shape = self._shape(pod)
            if shape is not None:
                by_shape.setdefault(shape, []).append(pod)
        shapes = list(by_shape.values())
        probes = _Probes(self._simulation, list(self._groups.values()), shapes, self._room())
        waiting = [list(reversed(one)) for one in shapes]
        for group, pattern in cheapest(probes, [len(one) for one in shapes]):
            self._add(group, pattern, waiting)
        for one in filter(None, waiting):
            self._told.update(dict.fromkeys((pod.uid for pod in one), probes.why(one[0])))
        left = [pod for one in waiting for pod in one]
        return [pod for pod in left if self._bind_to_added(pod) is None]

    def _room(self) -> dict[str, int]:
        taken = Counter(group.name for group, _ in self._added.values())
        return {name: group.room - taken[name] for name, group in self._groups.items()}

    def _add(self, group: Group, pattern: Pattern, waiting: Sequence[list[PodInfo]]) -> None:
        assert group.template is not None  # it was tried
        (name,) = free_names(f"{group.name}-new", self._names, 1)
        self._names.add(name)
        more = group.template.named(name, group.name)
        self._simulation.add_node(more.node, more.slices)
        bound: list[PodInfo] = []
        for shape, count in enumerate(pattern):
            for _ in range(min(count, len(waiting[shape]))):
                pod = waiting[shape].pop()
                if bind(self._simulation, pod, name) is None:
                    bound.append(pod)
                    self._told.pop(pod.uid, None)
                else:
                    waiting[shape].insert(0, pod)
                    break
        if bound:
            self._added[name] = (group, bound)
        else:
            self._simulation.remove_node(name)  # Y1

    def _bind_to_added(self, pod: PodInfo) -> str | None:
        for name, (_, pods) in self._added.items():
            if bind(self._simulation, pod, name) is None:
                pods.append(pod)
                self._told.pop(pod.uid, None)
                return name
        return None

    def done(self, left: Iterable[PodInfo]) -> Growth:
        nodes = tuple(NewNode(group.name, name, tuple(pods)) for name, (group, pods) in self._added.items())
        helpless = {pod.uid: self._told.get(pod.uid, NO_GROUP) for pod in left}
        return Growth(nodes, self._placed, {**self._told, **helpless}, self._blocked)


def bind(simulation: Simulation, pod: PodInfo, node: str) -> str | None:
    """Why the node does not take the pod; else it is there. Nobody guesses what a driver would say."""
    why = simulation.bind(pod, node)
    if why is not None:
        return why.reason
    drivers = simulation.negotiated.get(pod.uid)
    if drivers:
        simulation.evict(pod)
        names = ", ".join(sorted(drivers))
        return f"{names} would have to be asked: that takes an extender, and a pod that is in the cluster"
    return None


NO_GROUP = "there is no group of nodes"


class _Probes:
    """An empty node of each group, on which is tried out what fits together."""

    def __init__(
        self,
        simulation: Simulation,
        groups: Sequence[Group],
        shapes: Sequence[Sequence[PodInfo]],
        room: Mapping[str, int],
    ) -> None:
        self._shapes = shapes
        self._simulation = simulation.fork()
        self._nodes: dict[str, str] = {}
        self._unusable: dict[str, str] = {}
        self.groups: list[Group] = []
        self.room = dict(room)
        names = {*simulation.snapshot.node_names()}
        for group in groups:
            why = self._added(group, names)
            if why:
                self._unusable[group.name] = why
            else:
                self.groups.append(group)
        self.alone: dict[str, list[int]] = {
            group.name: [self._count(group, shape) for shape in range(len(shapes))] for group in self.groups
        }

    def _added(self, group: Group, names: set[str]) -> str:
        if group.closed:
            return group.closed
        if group.template is None:
            return "nobody knows what its nodes have"
        if self.room[group.name] <= 0:
            return f"it has its {group.most} nodes"
        (name,) = free_names(f"{group.name}-probe", names, 1)
        try:
            more = group.template.named(name, group.name)
            self._simulation.add_node(more.node, more.slices)
        except (ValueError, KeyError, TypeError, errors.ApiError) as wrong:
            return f"its template cannot be used: {wrong}"
        self._nodes[group.name] = name
        return ""

    def _count(self, group: Group, shape: int) -> int:
        return self.fill(group, [(shape, len(self._shapes[shape]))])[shape]

    def fill(self, group: Group, wanted: Iterable[tuple[int, int]]) -> Pattern:
        """So many of each shape, in this order, as far as they fit on one node together."""
        name, bound = self._nodes[group.name], []
        found = [0] * len(self._shapes)
        for shape, most in wanted:
            for pod in self._shapes[shape][:most]:
                if bind(self._simulation, pod, name) is not None:
                    break
                bound.append(pod)
                found[shape] += 1
        for pod in reversed(bound):
            self._simulation.evict(pod)
        return tuple(found)

    def takes(self, group: Group, pattern: Sequence[int]) -> bool:
        return self.fill(group, enumerate(pattern)) == tuple(pattern)

    def why(self, pod: PodInfo) -> str:
        """PACK2."""
        told = [f"{name}: {why}" for name, why in self._unusable.items()]
        for group in self.groups:
            why = bind(self._simulation, pod, self._nodes[group.name])
            self._simulation.evict(pod)
            told.append(f"{group.name}: {why or f'it has its {group.most} nodes'}")
        return "; ".join(told) or NO_GROUP


# -- the cheapest cover ---------------------------------------------------------------------------

Cover = list[tuple[Group, Pattern]]


def cheapest(probes: _Probes, demand: Sequence[int]) -> Cover:
    """Nodes that take as many of the pods as can be taken, for little money."""
    served = [any(probes.alone[group.name][shape] for group in probes.groups) for shape in range(len(demand))]
    wanted = tuple(count if is_served else 0 for count, is_served in zip(demand, served, strict=True))
    found = _greedy(probes, wanted)
    exact = _exact(probes, wanted)
    return exact if exact is not None and _price(exact) < _price(found) else found


def _price(cover: Cover) -> float:
    return sum(group.price for group, _ in cover)


def _greedy(probes: _Probes, demand: Sequence[int]) -> Cover:
    left, room = list(demand), dict(probes.room)
    worth = [_worth(probes, shape) for shape in range(len(demand))]
    cover: Cover = []
    while any(left):
        seeds = [shape for shape, count in enumerate(left) if count]
        seed = max(seeds, key=lambda shape: worth[shape])
        best = min(_offers(probes, seed, left, worth, room), default=None, key=lambda one: one[0])
        if best is None:
            left[seed] = 0  # every group that would take it is full
            continue
        _, _, group, pattern = best
        while True:
            cover.append((group, pattern))
            room[group.name] -= 1
            left = [max(0, count - taken) for count, taken in zip(left, pattern, strict=True)]
            again = all(count >= taken for count, taken in zip(left, pattern, strict=True))
            if not room[group.name] or not again or not any(left):
                break
    return cover


def _worth(probes: _Probes, shape: int) -> float:
    """What one pod of the shape costs at least: its part of the best node for it alone."""
    costs = [group.price / count for group in probes.groups if (count := probes.alone[group.name][shape]) > 0]
    return min(costs, default=0.0)


def _offers(
    probes: _Probes, seed: int, left: Sequence[int], worth: Sequence[float], room: Mapping[str, int]
) -> Iterator[tuple[float, int, Group, Pattern]]:
    """What a node of each group costs for what it would take, the seed first; then other ways to fill it."""
    others = sorted(
        (shape for shape in range(len(left)) if shape != seed and left[shape]), key=lambda s: -worth[s]
    )
    for at, group in enumerate(probes.groups):
        alone = probes.alone[group.name]
        if not alone[seed] or not room[group.name]:
            continue
        ways = [[seed, *others], [*others, seed]] if others else [[seed]]
        for way in ways:
            pattern = probes.fill(group, [(shape, left[shape]) for shape in way if alone[shape]])
            value = sum(worth[shape] * count for shape, count in enumerate(pattern))
            if pattern[seed]:
                yield (group.price / value if value else inf if group.price else 0.0, at, group, pattern)


def _exact(probes: _Probes, demand: Sequence[int]) -> Cover | None:
    """The cheapest of all covers, where there are few enough to look at; bounds of groups are not looked at,
    and a cover that breaks one is none."""
    states = 1
    for count in demand:
        states *= count + 1
        if states > EXACT_STATES_MAX:
            return None
    patterns: list[tuple[Group, Pattern]] = []
    for group in probes.groups:
        patterns += [(group, one) for one in _largest(probes, group, demand)]
        if len(patterns) > EXACT_PATTERNS_MAX:
            return None

    @cache
    def best(left: Pattern) -> tuple[float, tuple[int, ...]]:
        if not any(left):
            return 0.0, ()
        first = next(shape for shape, count in enumerate(left) if count)
        found: tuple[float, tuple[int, ...]] = (inf, ())
        for at, (group, pattern) in enumerate(patterns):
            if pattern[first]:
                rest = tuple(max(0, a - b) for a, b in zip(left, pattern, strict=True))
                price, nodes = best(rest)
                found = min(found, (price + group.price, (at, *nodes)))
        return found

    price, chosen = best(tuple(demand))
    used = Counter(patterns[at][0].name for at in chosen)
    if price == inf or any(count > probes.room[name] for name, count in used.items()):
        return None
    return [patterns[at] for at in chosen]


def _largest(probes: _Probes, group: Group, demand: Sequence[int]) -> list[Pattern]:
    """All that fits together on one node and to which nothing can be added."""
    alone = probes.alone[group.name]
    ranges = [range(min(count, most) + 1) for count, most in zip(demand, alone, strict=True)]
    fitting = [one for one in product(*ranges) if any(one) and probes.takes(group, one)]
    return [
        one
        for one in fitting
        if not any(one != other and all(a <= b for a, b in zip(one, other, strict=True)) for other in fitting)
    ]
