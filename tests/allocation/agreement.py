"""One problem put to the allocator, and compared with what the oracle says."""

import json
from collections import deque

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
        return Answer(answer.verdict, results, answer.error)


def disagreement(problem: Problem, expected: oracle.Answer) -> str:
    """What the allocator got wrong, under any policy; empty if nothing."""
    asked = Asked(problem)
    wanted = [comparable(result) for result in expected.results]
    for policy in POLICIES:
        answer = asked.answer(policy)
        if answer.verdict != expected.verdict:
            why = f"({answer.error or ''}; {expected.error})"
            return f"{policy}: {answer.verdict}, the oracle says {expected.verdict} {why}"
        if answer.verdict != "fits":
            continue
        found = [comparable(result) for result in answer.results]
        if policy == "first-fit" and found != wanted:
            return f"{policy}: {found}, the oracle has {wanted}"
        complaints = checker.complaints(problem, answer.results)
        if complaints:
            return f"{policy}: {'; '.join(complaints)}"
    return ""
