"""Deciding again, offline: at each decision of a record, on what its scheduler knew, with this code.

What it promises
    REPLAY1  The same code with the same settings decides as the scheduler did, whatever it decided about: a
             record that the scheduler itself has written is replayed without a difference.
    REPLAY2  Each decision is judged by itself. What was decided then is what the next one finds, however it
             is decided now, so one difference is told once and not in all that follows from it.

A record by an onlooker does not say what the scheduler knew. There a pod is taken off its node, with what it
alone uses, and placed again in the cluster as it was seen when the pod was bound: nodes and devices are
compared, and what came between may show as a difference.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

import msgspec

import allot
from allot.allocation import POLICIES
from allot.api import Gates, UnknownGate
from allot.base import RandomIds
from allot.scheduler import (
    Cycle,
    CycleState,
    Outcome,
    Placed,
    PodInfo,
    Scoring,
    Settings,
    Simulation,
    Strategy,
    Unplaced,
    default_plugins,
)

from .comparing import Difference, difference
from .lines import AnyLine, Decided, Ended, Flight, Gone, Knows, Set, Term, Told, Verdict, Wrote
from .verdicts import is_same, verdict_of
from .world import HeldTwice, World


class CannotReplay(ValueError):
    """What the record was made with is not known here."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be different from then; None: nothing."""

    policy: str | None = None
    scoring: Scoring | None = None
    gates: Gates | None = None


@dataclass
class Replayed:
    decisions: int = 0
    differences: list[Difference] = field(default_factory=list)
    unknown: int = 0  # decisions about pods that the record does not show
    held_twice: set[HeldTwice] = field(default_factory=set)
    is_seen_from_outside: bool = False
    then: set[str] = field(default_factory=set)  # versions and settings, in words
    now: set[str] = field(default_factory=set)

    def as_json(self) -> dict[str, Any]:
        return {
            "decisions": self.decisions,
            "different": len(self.differences),
            "differences": [one.as_json() for one in self.differences],
            "unknown": self.unknown,
            "heldTwice": [msgspec.to_builtins(one) for one in sorted(self.held_twice)],
            "seenFromOutside": self.is_seen_from_outside,
            "then": sorted(self.then),
            "now": sorted(self.now),
        }


def replayed(lines: Iterable[AnyLine], choice: Choice | None = None) -> Replayed:
    """Raises CannotReplay, and whatever reading the lines does."""
    result = Replayed()
    term: _Term | None = None
    for line in lines:
        if isinstance(line, Term):
            term = _Term(line, choice or Choice(), result)
        elif term is not None:
            term.take(line)
    return result


class _Term:
    def __init__(self, line: Term, choice: Choice, result: Replayed) -> None:
        settings, gates = _settings(line, choice), _gates(line, choice)
        result.then.add(_said(line.version, line.policy, _scoring(line.scoring), line.gates))
        result.now.add(_said(allot.__version__, settings.policy.name, settings.scoring, gates.changed))
        result.is_seen_from_outside |= line.onlooker
        self._result = result
        self._is_onlooker = line.onlooker
        self._world = World(gates, line.names)
        self._plugins = default_plugins(RandomIds(random.Random(0)), settings)
        self._cycle = Cycle(self._plugins)

    def take(self, line: AnyLine) -> None:
        match line:
            case Set() | Gone() | Told() | Wrote():
                self._world.hear(line)
            case Knows():
                self._world.know(line)
            case Decided():
                self._world.look()
                if not line.folded:
                    self._judge(line)
                if not self._is_onlooker:
                    self._world.do(line)
                self._result.held_twice |= self._world.held_twice
            case Ended():
                self._world.end(line)
            case Term():
                pass
            case _:
                assert_never(line)

    def _judge(self, line: Decided) -> None:
        pod = self._world.pods.get(line.pod)
        if pod is None:
            self._result.unknown += 1
            return
        self._result.decisions += 1
        found = self._again_from_outside(line, pod) if self._is_onlooker else self._again(line, pod)
        if found is not None:
            self._result.differences.append(found)

    def _again(self, line: Decided, pod: PodInfo) -> Difference | None:
        self._world.remember()
        snapshot, state = self._world.snapshot, CycleState(pod, line.at, seed=line.seed)
        outcome: Outcome | Exception
        try:
            outcome = _finished(self._cycle, state, self._world)
        except Exception as bug:  # that the record found: it is a difference
            outcome = bug
        now = verdict_of(outcome)
        self._cycle.unreserve(outcome.state if isinstance(outcome, Placed) else state, snapshot)
        self._world.remember()
        if is_same(line.verdict, now):
            return None
        return difference(line, now, pod, self._cycle, snapshot)

    def _again_from_outside(self, line: Decided, pod: PodInfo) -> Difference | None:
        unbound = PodInfo.of(pod.object.changed({"spec": {"nodeName": None}}))
        simulation = Simulation(self._world.snapshot, self._plugins, line.at)
        simulation.evict(pod)
        alone = [key for key in pod.claims if _is_free(simulation, key)]
        found = simulation.place(unbound)
        if isinstance(found, Unplaced):
            now = verdict_of(found)
        else:
            claims = [one for key in alone if (one := simulation.snapshot.claim(key)) is not None]
            flights = tuple(
                Flight(one.uid, one.key.name, one.allocation.devices.results)
                for one in claims
                if one.allocation is not None
            )
            now = Verdict(found, flights)
        freed = {key.name for key in alone}
        then = Verdict(line.verdict.node, tuple(one for one in line.verdict.flights if one.claim in freed))
        if is_same(then, now):
            return None
        simulation.reset()
        simulation.evict(pod)
        decided = Decided(line.pod, line.name, line.at, then)
        return difference(decided, now, unbound, Cycle(self._plugins), simulation.snapshot)


def _is_free(simulation: Simulation, key: Any) -> bool:
    claim = simulation.snapshot.claim(key)
    return claim is not None and claim.allocation is None


def _finished(cycle: Cycle, state: CycleState, world: World) -> Outcome:
    deciding = cycle.schedule_one(state, world.snapshot)
    while True:
        try:
            aside = next(deciding)
        except StopIteration as done:
            outcome: Outcome = done.value
            return outcome
        if aside is not None:
            aside()


# -- with what it was decided ---------------------------------------------------------------------


def _settings(line: Term, choice: Choice) -> Settings:
    name = choice.policy or line.policy
    policy = POLICIES.get(name)
    if policy is None:
        raise CannotReplay(
            f"the record was made with policy {name!r}, which is not known here: name another one"
        )
    scoring = choice.scoring or _scoring(line.scoring)
    return Settings(line.names, policy, scoring, binding_timeout_s=line.binding_timeout_s)


def _scoring(kept: Mapping[str, Any]) -> Scoring:
    try:
        return Scoring(
            Strategy(kept["strategy"]),
            tuple((str(name), float(weight)) for name, weight in kept["resources"]),
            tuple((float(at), float(height)) for at, height in kept["shape"]),
        )
    except (KeyError, ValueError, TypeError):
        raise CannotReplay(f"the record was made with a scoring that is not known here: {kept}") from None


def _gates(line: Term, choice: Choice) -> Gates:
    try:
        return choice.gates if choice.gates is not None else Gates(line.gates)
    except UnknownGate as unknown:
        raise CannotReplay(f"the record was made with a gate that is not known here: {unknown}") from None


def _said(version: str, policy: str, scoring: Scoring, gates: Mapping[str, bool]) -> str:
    resources = ", ".join(f"{name}={weight:g}" for name, weight in scoring.resources)
    changed = "".join(f", {name}={str(value).lower()}" for name, value in sorted(gates.items()))
    return f"allot {version}, policy {policy}, {scoring.strategy.value} ({resources}){changed}"
