"""What happens when pods are moved, one after the other, in a simulation by the real plugins.

One step
    Somebody evicts a pod. Whoever made it makes another at once, which is placed while the first one still
    holds what it has: only then is a move safe by itself. Pods of stateful sets are made when the first one
    has gone, and so, in effect, are those that have no time to end in. Then whoever waits in the cluster is
    tried in the scheduler's order.

What it promises
    STEP1  Every pod that is moved has a place at the moment it moves.
    STEP2  Where the cluster does nothing else meanwhile, the replacement goes where it was foretold.
    STEP3  The same steps give the same course, whatever was tried before.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from allot.base import RandomIds
from allot.scheduler import (
    Budgets,
    PodInfo,
    Reading,
    Settings,
    Simulation,
    Snapshot,
    Unplaced,
    deciding_plugins,
    explained,
)

from ..future import comes_back, is_waiting
from .again import Again, again
from .movable import Terms, why_it_stays

ENDS_FIRST = ("StatefulSet",)
"""Who makes another pod only when the first one has gone."""


@dataclass(frozen=True, slots=True)
class Step:
    pod: PodInfo
    node: str
    to: str  # where its replacement goes; "" where nobody makes one
    beside: Mapping[str, str]  # pods that waited and get a place by it

    def as_json(self) -> dict[str, Any]:
        return {
            "pod": str(self.pod.key),
            "uid": self.pod.uid,
            "from": self.node,
            "to": self.to or None,
            "alsoPlaced": dict(self.beside),
        }


class Misfit(NamedTuple):
    pod: PodInfo
    outcome: Unplaced | None


class Course:
    """One cluster, and the pods that are to fit. It begins anew with every `run`."""

    def __init__(
        self, reading: Reading, wanted: Sequence[PodInfo], terms: Terms, now: datetime, settings: Settings
    ) -> None:
        self._snapshot = reading.snapshot
        self.wanted = tuple(wanted)
        plugins = deciding_plugins(RandomIds(random.Random(0)), settings)
        self.simulation = Simulation(self._snapshot, plugins, now)
        self._waiting = sorted((pod for pod in reading.pods.values() if is_waiting(pod)), key=_turn)
        self._terms = terms
        self._budgets = Budgets(dict(self._snapshot.prospects.budgets.items()))
        self._stays: dict[str, str] = {}  # by uid
        self._again: dict[str, Again] = {}  # by uid
        self.steps_tried = 0
        self._begin()

    # -- who ------------------------------------------------------------------------------------

    def why_it_stays(self, pod: PodInfo) -> str:
        found = self._stays.get(pod.uid)
        if found is None:
            found = self._stays[pod.uid] = why_it_stays(pod, self._snapshot, self._budgets, self._terms)
        return found

    def replacement(self, pod: PodInfo) -> PodInfo:
        found = self._again.get(pod.uid)
        if found is None:
            found = self._again[pod.uid] = again(pod, self._snapshot)
            for claim in found.claims:
                self.simulation.add_claim(claim)
        return found.pod

    def is_as_it_was(self, pod: PodInfo) -> bool:
        """Whether it was there before the first step: what was moved is not moved again."""
        return self._snapshot.place_of(pod.uid) is not None

    # -- what happens ---------------------------------------------------------------------------

    def run(self, pods: Sequence[PodInfo]) -> tuple[Step, ...] | str:
        """These are moved, in this order; or why one cannot be. The simulation stays as it then is."""
        self._begin()
        steps = []
        for pod in pods:
            step = self.step(pod)
            if isinstance(step, str):
                return step
            steps.append(step)
        return tuple(steps)

    def step(self, pod: PodInfo) -> Step | str:
        """On top of what has happened. Where it cannot be, nothing that matters is as it was: begin anew."""
        self.steps_tried += 1
        node = self.simulation.snapshot.place_of(pod.uid)
        if node is None:
            return f"pod {pod.key} is on no node"
        if why := self.why_it_stays(pod):
            return f"pod {pod.key} stays: {why}"
        if not comes_back(pod):
            self.simulation.evict(pod)
            return Step(pod, node, "", self._others())
        other = self.replacement(pod)
        if ends_first(pod):
            self.simulation.evict(pod)
            beside = self._others(other)
        else:
            self._place(other)
            self.simulation.evict(pod)
            beside = self._others()
        to = self.simulation.snapshot.place_of(other.uid)
        if to is None:
            return f"another pod {pod.key} finds no place"
        if other.uid in self.simulation.negotiated:
            return f"drivers would have to be asked for pod {pod.key}"
        beside.pop(str(other.key), None)
        return Step(pod, node, to, beside)

    def places(self) -> dict[str, str] | Misfit:
        """Where those that are to fit go, as things are now; or which of them does not."""
        found: dict[str, str] = {}
        for pod in self.wanted:
            why = self._place(pod)
            place = self.simulation.snapshot.place_of(pod.uid)
            if place is None or pod.uid in self.simulation.negotiated:
                return Misfit(pod, why)
            found[str(pod.key)] = place
        return found

    def explained(self, misfit: Misfit) -> str:
        """Why it does not fit, as things are still: that takes longer than to find out."""
        if misfit.outcome is not None:
            return explained(misfit.outcome, self.simulation.snapshot)
        if misfit.pod.uid in self.simulation.negotiated:
            return f"drivers would have to be asked for pod {misfit.pod.key}"
        return str(self.simulation.gate(misfit.pod))

    def _begin(self) -> None:
        self.simulation.reset()
        self._others()

    def _others(self, *more: PodInfo) -> dict[str, str]:
        """Whoever waits finds a place, if there is one: the most important first, then the oldest."""
        placed: dict[str, str] = {}
        hopeless: set[object] = set()
        for pod in sorted((*self._waiting, *more), key=_turn) if more else self._waiting:
            if self.simulation.snapshot.place_of(pod.uid) is not None or self.simulation.gate(pod):
                continue
            alike = self.simulation.signature(pod)
            if alike in hopeless:
                continue
            self._place(pod)
            place = self.simulation.snapshot.place_of(pod.uid)
            if place is None:
                hopeless.add(alike)
            else:
                placed[str(pod.key)] = place
        return placed

    def _place(self, pod: PodInfo) -> Unplaced | None:
        if self.simulation.snapshot.place_of(pod.uid) is not None or self.simulation.gate(pod):
            return None
        found = self.simulation.place(pod)
        return found if isinstance(found, Unplaced) else None

    @property
    def snapshot(self) -> Snapshot:
        """As things are now."""
        return self.simulation.snapshot


def _turn(pod: PodInfo) -> tuple[int, str]:
    return -pod.priority, pod.object.metadata.creation_timestamp or "~"


def ends_first(pod: PodInfo) -> bool:
    """Whether it has gone before there is another: it has no time to end in, or its maker waits for that."""
    if pod.object.fields.get("spec", {}).get("terminationGracePeriodSeconds") == 0:
        return True
    return any(one.controller and one.kind in ENDS_FIRST for one in pod.view.metadata.owner_references)


def movable(course: Course, pods: Iterable[PodInfo]) -> list[PodInfo]:
    return [pod for pod in pods if course.is_as_it_was(pod) and not course.why_it_stays(pod)]
