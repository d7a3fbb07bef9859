"""The fewest moves by trying them all: every sequence of pods, each state a fork of its own.

It shares with the planner what a replacement is, and nothing of how moves are chosen or run.
"""

import random

from allot.base import RandomIds
from allot.planning.defrag import again
from allot.scheduler import PodInfo, Settings, Simulation, Unplaced, deciding_plugins

from ..clusters import NOW
from .worlds import World


def fewest(world: World, most: int) -> int | None:
    """How many moves are needed; None when more than `most`, or none will do."""
    oracle = _Oracle(world)
    states = [oracle.begun()]
    for moves in range(most + 1):
        if any(oracle.is_reached(one) for one in states):
            return moves
        if moves < most:
            states = [after for one in states for after in oracle.after(one)]
    return None


class _State:
    def __init__(self, simulation: Simulation, moved: frozenset[str]) -> None:
        self.simulation = simulation
        self.moved = moved


class _Oracle:
    def __init__(self, world: World) -> None:
        self._world = world
        self._start = world.wanted.reading.snapshot
        (self._target,) = world.wanted.pods
        self._pods = [pod for node in self._start.nodes() for pod in node.pods.values()]

    def begun(self) -> _State:
        plugins = deciding_plugins(RandomIds(random.Random(0)), Settings())
        state = _State(Simulation(self._start, plugins, NOW), frozenset())
        self._wait(state)
        return state

    def is_reached(self, state: _State) -> bool:
        simulation = state.simulation.fork()
        return simulation.snapshot.place_of(self._target.uid) is not None or isinstance(
            simulation.place(self._target), str
        )

    def after(self, state: _State) -> list[_State]:
        found = []
        for pod in self._pods:
            if pod.uid in self._world.movable and pod.uid not in state.moved:
                then = _State(state.simulation.fork(), state.moved | {pod.uid})
                if self._move(then, pod):
                    found.append(then)
        return found

    def _move(self, state: _State, pod: PodInfo) -> bool:
        other = again(pod, self._start)
        for claim in other.claims:
            state.simulation.add_claim(claim)
        (owner,) = pod.view.metadata.owner_references
        if owner.kind == "StatefulSet":
            state.simulation.evict(pod)
            self._wait(state)
            return not isinstance(state.simulation.place(other.pod), Unplaced)
        if isinstance(state.simulation.place(other.pod), Unplaced):
            return False
        state.simulation.evict(pod)
        self._wait(state)
        return True

    def _wait(self, state: _State) -> None:
        if self._world.is_there and state.simulation.snapshot.place_of(self._target.uid) is None:
            state.simulation.place(self._target)
