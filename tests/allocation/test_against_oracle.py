"""The allocator against the oracle: verdicts agree, first-fit results agree, plans are accepted.

A modest number of problems here; `bench/oracle_run.py` does the same for many more
and records what it saw.
"""

import json
import random

import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from allot.allocation import POLICIES

from . import checker, conformance, oracle, problems
from .agreement import STEPS, disagreement, solved
from .assembly import comparable
from .planted import planted


@conformance.needed
@pytest.mark.parametrize("case", conformance.cases())
def test_answers_as_upstream_does(case):
    """The same verdict under every policy; the same results under first-fit."""
    problem = conformance.stated(case)
    for policy in POLICIES:
        answer = solved(problem, policy)

        assert answer.verdict == conformance.expected_verdict(case), (policy, answer.error)
        if answer.verdict == "fits":
            assert checker.complaints(problem, answer.results) == []
        if policy == "first-fit":
            expected = [comparable(result) for result in case.get("results") or ()]
            assert [comparable(result) for result in answer.results] == expected


@pytest.mark.parametrize("hundred", range(5))
def test_agrees_with_the_oracle_on_known_problems(hundred):
    """The same problems every time, so that a planted bug is caught today and tomorrow."""
    for seed in range(hundred * 100, hundred * 100 + 100):
        problem = problems.problem(random.Random(seed))
        try:
            answer = oracle.solve(problem, STEPS)
        except oracle.OutOfSteps:
            continue
        assert disagreement(problem, answer) == "", f"seed {seed}"


@given(st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_agrees_with_the_oracle(rng):
    problem = problems.problem(rng)
    try:
        answer = oracle.solve(problem, STEPS)
    except oracle.OutOfSteps:
        assume(False)
    note(json.dumps(problem))

    assert disagreement(problem, answer) == ""


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_same_problem_has_the_same_answer_again(rng):
    """Answers are remembered between problems; a second look must not depend on what came before."""
    problem = problems.problem(rng)

    first = [solved(problem, policy) for policy in POLICIES]
    again = [solved(problem, policy) for policy in POLICIES]

    assert [(a.verdict, [comparable(r) for r in a.results]) for a in first] == [
        (a.verdict, [comparable(r) for r in a.results]) for a in again
    ]


@pytest.mark.parametrize("ten", range(6))
def test_finds_a_plan_where_one_was_planted(ten):
    """Larger than the oracle could solve. An error may still come first; `does not fit` would be a lie."""
    fits = 0
    for seed in range(ten * 10, ten * 10 + 10):
        problem = planted(random.Random(seed))
        for policy in POLICIES if problem is not None else ():
            answer = solved(problem, policy)
            assert answer.verdict in ("fits", "error"), f"seed {seed} under {policy}"
            if answer.verdict == "fits":
                assert checker.complaints(problem, answer.results) == [], f"seed {seed} under {policy}"
                fits += 1
    assert fits > 20
