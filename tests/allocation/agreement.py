"""One problem put to the allocator, and compared with what the oracle says."""

import json
from collections import deque

import msgspec

from allot.allocation import POLICIES, problem_of, solve
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
    return _answered(problem_of(json.loads(json.dumps(problem))), policy)


def _answered(problem: Stated, policy: str) -> Answer:
    answer = solve(problem, POLICIES[policy])
    _recent.append(answer)
    results = [{"devices": {}, **json.loads(msgspec.json.encode(one))} for one in answer.results(RandomIds())]
    return Answer(answer.verdict, results, answer.error)


def disagreement(problem: Problem, expected: oracle.Answer) -> str:
    """What the allocator got wrong, under any policy; empty if nothing."""
    stated = problem_of(json.loads(json.dumps(problem)))
    for policy in POLICIES:
        answer = _answered(stated, policy)
        if answer.verdict != expected.verdict:
            why = f"({answer.error or ''}; {expected.error})"
            return f"{policy}: {answer.verdict}, the oracle says {expected.verdict} {why}"
        if answer.verdict != "fits":
            continue
        complaints = checker.complaints(problem, answer.results)
        if complaints:
            return f"{policy}: {'; '.join(complaints)}"
        if policy == "first-fit":
            found = [comparable(result) for result in answer.results]
            wanted = [comparable(result) for result in expected.results]
            if found != wanted:
                return f"{policy}: {found}, the oracle has {wanted}"
    return ""
