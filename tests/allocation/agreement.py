"""One problem put to the allocator, and compared with what the oracle says."""

import json
from collections import deque
from typing import NamedTuple

import msgspec

from allot.allocation import POLICIES, Attempt, Refused, Solved, allocate, problem_of, read_demand
from allot.allocation import Problem as Stated
from allot.base import RandomIds

from . import checker, oracle
from .assembly import comparable
from .facts import Json, Problem

STEPS = 20_000
"""What the oracle may spend on one problem; few need more."""

_recent: deque[object] = deque(maxlen=300)
"""Compiled selectors live as long as something asks them; this keeps the common ones."""


class Answer(msgspec.Struct, frozen=True):
    verdict: str
    results: list[Json]
    error: str | None
    steps: int = 0


class Compared(NamedTuple):
    wrong: str  # what the allocator got wrong; empty if nothing
    steps: int  # the most that it took under any policy


def solved(problem: Problem, policy: str) -> Answer:
    """The allocator's answer as `allot solve` would write it."""
    return Asked(problem).answer(policy)


class Asked:
    """A problem, read once for all policies; what they remember they share, as in a scheduler."""

    def __init__(self, problem: Problem) -> None:
        stated: Stated = problem_of(json.loads(json.dumps(problem)))
        self._attempt = Attempt(
            stated.node, stated.inventory(), stated.ledger(), stated.claims, stated.classes
        )
        self._demand = read_demand(stated.claims, stated.classes, stated.features)
        _recent.append(self._demand)

    def answer(self, policy: str) -> Answer:
        attempt = self._attempt
        found = (
            self._demand
            if isinstance(self._demand, Refused)
            else allocate(
                attempt.node, attempt.inventory, attempt.ledger, self._demand, policy=POLICIES[policy]
            )
        )
        answer = Solved(attempt, found if attempt.claims else None)
        encoded = msgspec.json.encode(answer.results(RandomIds()))
        results = [{"devices": {}, **one} for one in json.loads(encoded)]
        return Answer(answer.verdict, results, answer.error, getattr(found, "steps", 0))


def disagreement(problem: Problem, expected: oracle.Answer) -> str:
    """What the allocator got wrong, under any policy; empty if nothing."""
    return compared(problem, expected).wrong


def compared(problem: Problem, expected: oracle.Answer) -> Compared:
    asked = Asked(problem)
    steps = 0
    for policy in POLICIES:
        answer = asked.answer(policy)
        steps = max(steps, answer.steps)
        if wrong := _wrong(problem, expected, policy, answer):
            return Compared(f"{policy}: {wrong}", steps)
    return Compared("", steps)


def _wrong(problem: Problem, expected: oracle.Answer, policy: str, answer: Answer) -> str:
    if answer.verdict != expected.verdict:
        why = f"({answer.error or ''}; {expected.error})"
        return f"{answer.verdict}, the oracle says {expected.verdict} {why}"
    if answer.verdict != "fits":
        return ""
    found = [comparable(result) for result in answer.results]
    wanted = [comparable(result) for result in expected.results]
    if policy == "first-fit" and found != wanted:
        return f"{found}, the oracle has {wanted}"
    return "; ".join(checker.complaints(problem, answer.results))
