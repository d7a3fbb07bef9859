"""What if? A change is made to a copy of the cluster, and its pods find their places again.

How it is worked out
    A simulation runs the scheduler's own cycle for every pod that waits: those that waited before, those that
    had to leave and that somebody makes anew, those that come. The most important goes first, then whoever
    has waited longest. Who is evicted to make room waits too. The same is done without the change, so that
    what would have happened anyway is not blamed on it.

What it promises
    IF1  Where the cluster does nothing else meanwhile, the answer comes true when the change is made.
    IF2  Nothing is written, and the cluster that was read stays as it was.
"""

import heapq
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from allot.api import Object, encode
from allot.base import RandomIds
from allot.scheduler import (
    Deallocate,
    PodInfo,
    Preempt,
    Reading,
    SearchOn,
    Settings,
    Simulation,
    default_plugins,
    explained,
)

from .changes import Change
from .future import DELETED, Cluster, Future, Leaving, made
from .unchosen import unchosen

TRIES_MAX = 8
"""Of one pod in a row: rooms are made for it one after the other, in claims and on nodes."""


class Evicted(NamedTuple):
    pod: str
    node: str
    why: str
    comes_back: bool


class Line(NamedTuple):
    """A node, before or after."""

    pods: int
    devices: int
    is_there: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    placed: Mapping[str, str]  # pods that would get a node, by name
    waiting: Mapping[str, str]  # pods that would be left without one, and why
    evicted: tuple[Evicted, ...]
    anyway: Mapping[str, str]  # pods that get a node also without the change
    refused: Mapping[str, str]  # objects that would not be admitted, and why
    held: Mapping[str, str]  # pods that stay although their node is drained, and why
    nodes: Mapping[str, tuple[Line, Line]]  # before and after, of those that differ
    pods: tuple[int, int]  # that have a node, before and after
    waited: frozenset[str]  # pods that wait without the change
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def lost(self) -> tuple[Evicted, ...]:
        return tuple(one for one in self.evicted if not one.comes_back and one.why != DELETED)

    @property
    def is_worse(self) -> bool:
        """Whether a pod that has a node, or would get one, is left without."""
        stranded = any(pod not in self.waited for pod in self.waiting)
        return stranded or bool(self.lost) or bool(self.held) or bool(self.refused)

    def as_json(self) -> dict[str, Any]:
        return {
            "placed": dict(self.placed),
            "waiting": dict(self.waiting),
            "evicted": [one._asdict() for one in self.evicted],
            "placedAnyway": dict(self.anyway),
            "refused": dict(self.refused),
            "held": dict(self.held),
            "nodes": {
                name: {"before": before._asdict(), "after": after._asdict()}
                for name, (before, after) in self.nodes.items()
            },
            "notes": list(self.notes),
            "unread": list(self.unread),
        }


def what_if(cluster: Cluster, changes: Sequence[Change], now: datetime, settings: Settings) -> Answer:
    """Raises BadChange."""
    before = _Course(cluster.reading, now, settings)
    before.run(cluster.waiting)
    future = made(cluster, changes)
    after = _Course(future.reading, now, settings)
    after.begin(future)
    waiting = [pod for pod in cluster.waiting if pod.uid not in future.deleted]
    back = [one.pod for one in after.left if one.comes_back and one.pod.uid not in future.deleted]
    after.run([*waiting, *(unbound(pod) for pod in back), *future.coming])
    return _answer(before, after, future)


def unbound(pod: PodInfo) -> PodInfo:
    """As another one would be that is made in its place."""
    return PodInfo.of(Object(encode(unchosen(pod.object.fields))))


@dataclass
class _Course:
    """What happens to the pods of one snapshot."""

    reading: Reading
    now: datetime
    settings: Settings
    placed: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    left: list[Leaving] = field(default_factory=list)

    def __post_init__(self) -> None:
        plugins = default_plugins(RandomIds(random.Random(0)), self.settings)
        self.simulation = Simulation(self.reading.snapshot, plugins, self.now)

    def begin(self, future: Future) -> None:
        """Whoever has to leave leaves, and nodes go."""
        for one in future.leaving.values():
            self.simulation.evict(one.pod)
            self.left.append(one)
        for name in future.gone:
            self.simulation.remove_node(name)

    def run(self, pods: Iterable[PodInfo]) -> None:
        turns = [(-pod.priority, at, pod) for at, pod in enumerate(sorted(pods, key=_since))]
        heapq.heapify(turns)
        number = len(turns)
        known: dict[object, str] = {}  # why pods of a signature wait, while nothing has made room
        while turns:
            _, _, pod = heapq.heappop(turns)
            alike = (self.simulation.signature(pod), pod.priority, pod.may_preempt)
            why = known.get(alike)
            if why is None:
                evictions = len(self.left)
                why = self._placed(pod)
                for one in self.left[evictions:]:
                    known.clear()
                    if one.comes_back:
                        heapq.heappush(turns, (-one.pod.priority, number, unbound(one.pod)))
                        number += 1
                if why:
                    known[alike] = why
            if why:
                self.waiting[str(pod.key)] = why

    @property
    def touched(self) -> set[str]:
        return {*self.placed.values(), *(one.node for one in self.left)}

    @property
    def pods(self) -> int:
        return sum(len(node.pods) for node in self.simulation.snapshot.nodes())

    def _placed(self, pod: PodInfo) -> str:
        """Why the pod has no place; "" when it has."""
        gate = self.simulation.gate(pod)
        if gate is not None:
            return gate
        why = ""
        for _ in range(TRIES_MAX):
            found = self.simulation.place(pod)
            if isinstance(found, str):
                self.placed[str(pod.key)] = found
                return ""
            why = explained(found, self.simulation.snapshot)
            match found.remedy:
                case Preempt(node, victims):
                    for victim in victims:
                        self.simulation.evict(victim)
                        self.placed.pop(str(victim.key), None)
                        self.left.append(Leaving(victim, node, f"room for {pod.key}"))
                case Deallocate(claim):
                    self.simulation.give_back(claim.uid)
                case SearchOn():
                    pass
                case None:
                    return why
                case _:
                    return f"{why} Its drivers have to be asked."
        return why


def _since(pod: PodInfo) -> tuple[str, str]:
    """Those that are still to come have no time, and come last."""
    return (pod.object.metadata.creation_timestamp or "~", "")


def _answer(before: _Course, after: _Course, future: Future) -> Answer:
    touched = {*before.touched, *after.touched, *future.gone, *future.added}
    lines = {name: (_line(before, name), _line(after, name)) for name in sorted(touched)}
    evicted = tuple(
        Evicted(str(one.pod.key), one.node, one.why, one.comes_back and one.pod.uid not in future.deleted)
        for one in after.left
    )
    moved = {one.pod for one in evicted}
    anyway = {
        pod: node for pod, node in after.placed.items() if before.placed.get(pod) == node and pod not in moved
    }
    return Answer(
        placed={pod: node for pod, node in after.placed.items() if pod not in anyway},
        waiting=after.waiting,
        evicted=evicted,
        anyway=anyway,
        refused=future.refused,
        held=future.held,
        nodes={name: pair for name, pair in lines.items() if pair[0] != pair[1]},
        pods=(before.pods, after.pods),
        waited=frozenset(before.waiting),
        notes=tuple(future.notes),
        unread=tuple(one.words for one in future.reading.unread),
    )


def _line(course: _Course, name: str) -> Line:
    snapshot = course.simulation.snapshot
    node = snapshot.node(name)
    if node is None:
        return Line(0, 0, is_there=False)
    claims = {use.claim for pod in node.pods.values() for use in course.simulation.uses(pod, name)}
    holds = (snapshot.ledger.hold(claim) for claim in claims)
    return Line(len(node.pods), sum(len(hold.devices) for hold in holds if hold is not None))
