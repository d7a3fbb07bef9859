"""The oracle and the checker are tested before they test anything else."""

import copy
import random

import pytest

from . import checker, conformance, oracle, problems
from .assembly import comparable


@conformance.needed
@pytest.mark.parametrize("case", conformance.cases())
def test_the_oracle_answers_as_upstream_does(case):
    answer = oracle.solve(conformance.stated(case))

    assert answer.verdict == conformance.expected_verdict(case), answer.error
    assert [comparable(r) for r in answer.results] == [comparable(r) for r in case.get("results") or ()]


@conformance.needed
@pytest.mark.parametrize("case", [case for case in conformance.cases() if case.values[0].get("results")])
def test_the_checker_accepts_what_upstream_answers(case):
    assert checker.complaints(conformance.stated(case), with_shares_told_apart(case["results"])) == []


def with_shares_told_apart(results):
    """A copy in which every share has an id of its own: they are written down with one mask for all."""
    results = copy.deepcopy(list(results))
    shares = (d for r in results for d in r["devices"].get("results") or () if "shareID" in d)
    for number, device in enumerate(shares):
        device["shareID"] = f"{number:08d}-0000-4000-8000-000000000000"
    return results


def fitting(how_many: int):
    """Generated problems that fit, with the oracle's results."""
    found = 0
    for seed in range(10_000):
        problem = problems.problem(random.Random(seed))
        try:
            answer = oracle.solve(problem, steps=5_000)
        except oracle.OutOfSteps:
            continue
        if answer.verdict == "fits" and any(r["devices"].get("results") for r in answer.results):
            yield problem, with_shares_told_apart(answer.results)
            found += 1
            if found == how_many:
                return


def test_the_checker_accepts_what_the_oracle_answers():
    for problem, results in fitting(150):
        assert checker.complaints(problem, results) == []


def first_device(results):
    return next(d for r in results for d in r["devices"].get("results") or ())


def drop(problem, results):
    devices = next(r["devices"]["results"] for r in results if r["devices"].get("results"))
    devices.pop()


def double(problem, results):
    devices = next(r["devices"]["results"] for r in results if r["devices"].get("results"))
    devices.append(copy.deepcopy(devices[0]))


def rename_device(problem, results):
    first_device(results)["device"] = "no-such-device"


def rename_request(problem, results):
    first_device(results)["request"] = "no-such-request"


def move_node(problem, results):
    next(r for r in results if r["devices"].get("results"))["nodeSelector"] = {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["elsewhere"]}]}
        ]
    }


def invent_config(problem, results):
    results[0]["devices"]["config"] = [{"source": "FromClaim", "opaque": {"driver": "x", "parameters": {}}}]


def take_it_first(problem, results):
    device = first_device(results)
    problem["features"] = [f for f in problem["features"] if f != "AdminAccess"]
    problem["allocatedDevices"] = ["/".join((device["driver"], device["pool"], device["device"]))]


def grant_admin(problem, results):
    device = first_device(results)
    device["adminAccess"] = not device.get("adminAccess")


def share(problem, results):
    device = first_device(results)
    device["shareID"] = None if device.get("shareID") else "00000000-0000-4000-8000-0000000000ff"


def consume(problem, results):
    first_device(results)["consumedCapacity"] = {"memory": "77"}


def forget_a_claim(problem, results):
    results.pop()


@pytest.mark.parametrize(
    "spoil",
    [
        drop,
        double,
        rename_device,
        rename_request,
        move_node,
        invent_config,
        take_it_first,
        grant_admin,
        share,
        consume,
        forget_a_claim,
    ],
)
def test_the_checker_refuses_spoiled_answers(spoil):
    """A checker that accepts everything would make every property below hold."""
    for problem, results in fitting(40):
        spoil(problem, results)
        assert checker.complaints(problem, results) != []


def test_generated_problems_cover_every_feature_and_both_verdicts():
    """At least 30 % fit, 30 % do not, and each feature is in at least 5 %."""
    verdicts, used, total = {}, {}, 600
    for seed in range(total):
        problem = problems.problem(random.Random(seed))
        try:
            verdict = oracle.solve(problem, steps=5_000).verdict
        except oracle.OutOfSteps:
            verdict = "too large"
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
        for feature in problems.features_used(problem):
            used[feature] = used.get(feature, 0) + 1

    print(verdicts, used)
    assert verdicts["fits"] >= 0.3 * total
    assert verdicts["does-not-fit"] >= 0.3 * total
    assert min(used.values()) >= 0.05 * total
    assert len(used) >= 32
