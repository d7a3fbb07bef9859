"""How a budget stands, as values."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Object, age, encode
from allot.controllers.disruption.plan import (
    DELETED_WITHIN_S,
    BudgetCount,
    Uncounted,
    asks_owners,
    budget_of,
    count,
    covered,
    look_again_s,
    matters,
    status,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
EARLIER = "2026-01-01T11:00:00Z"
WEB = {"matchLabels": {"app": "web"}}


def ago(seconds: float) -> str:
    return age.timestamp(NOW - timedelta(seconds=seconds))


def pod(name: str, *, ready: bool = True, phase: str = "Running", **metadata: Any) -> Object:
    condition = {"type": "Ready", "status": str(ready)}
    metadata = {"name": name, "uid": name, "labels": {"app": "web"}, **metadata}
    return Object(encode({"metadata": metadata, "status": {"phase": phase, "conditions": [condition]}}))


def budget(noted: Mapping[str, str] | None = None, **spec: Any) -> Object:
    fields = {"metadata": {"name": "b", "generation": 3}, "spec": {"selector": WEB, **spec}}
    return Object(encode({**fields, "status": {"disruptedPods": noted or {}}}))


def stands(budget: Object, *pods: Object, wanted: int | Uncounted = 0, **more: Any) -> BudgetCount:
    return count(budget_of(budget), pods, wanted, NOW, **more)


def many(count: int) -> list[Object]:
    return [pod(f"p{n}") for n in range(count)]


def shown(found: BudgetCount) -> tuple[int, int, int, int]:
    return found.expected, found.desired, found.healthy, found.allowed


# -- how many may go ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "wanted", "expected", "desired", "allowed"),
    [
        ({"minAvailable": 3}, 9, 4, 3, 1),  # a number is about the pods that are there
        ({"minAvailable": 7}, 9, 4, 7, 0),
        ({"minAvailable": 0}, 9, 4, 0, 4),
        ({"minAvailable": "50%"}, 5, 5, 3, 1),  # a share is of the pods that there should be, rounded up
        ({"minAvailable": "0%"}, 5, 5, 0, 4),
        ({"maxUnavailable": 1}, 5, 5, 4, 0),
        ({"maxUnavailable": 2}, 5, 5, 3, 1),
        ({"maxUnavailable": "30%"}, 5, 5, 3, 1),
        ({"maxUnavailable": 9}, 5, 5, 0, 4),
        ({"maxUnavailable": "50%"}, 0, 0, 0, 0),  # nobody is expected yet
        ({}, 5, 0, 0, 0),
    ],
)
def test_what_four_healthy_pods_allow(spec, wanted, expected, desired, allowed):
    assert shown(stands(budget(**spec), *many(4), wanted=wanted)) == (expected, desired, 4, allowed)


def test_only_shares_and_what_may_be_away_are_asked_of_owners():
    specs = ({"minAvailable": 1}, {"minAvailable": "1%"}, {"maxUnavailable": 1}, {"maxUnavailable": "1%"}, {})
    asked = [asks_owners(budget_of(budget(**spec)).spec) for spec in specs]
    assert asked == [False, True, True, True, False]


def test_who_is_not_ready_or_finished_or_ending_is_not_healthy():
    others = [
        pod("sick", ready=False),
        pod("done", phase="Succeeded"),
        pod("failed", phase="Failed"),
        pod("leaving", deletionTimestamp=EARLIER),
    ]
    assert shown(stands(budget(minAvailable=1), *many(2), *others)) == (6, 1, 2, 1)


def test_what_cannot_be_counted_allows_nothing_and_says_why():
    """PDB4."""
    unknown = budget(maxUnavailable=5)
    found = stands(unknown, *many(3), wanted=Uncounted("pod p0 is controlled by nobody we know"))
    assert found.allowed == 0
    (condition,) = status(unknown, found, NOW)["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "SyncFailed")
    assert condition["message"] == "pod p0 is controlled by nobody we know"


OWNED = [{"kind": "ReplicaSet", "name": "s", "uid": "u", "controller": True}]


@pytest.mark.parametrize(
    ("spec", "owners", "why"),
    [
        ({"maxUnavailable": 1}, [], "its pods have no controller that says how many there should be"),
        ({"minAvailable": "50%"}, [], "its pods have no controller that says how many there should be"),
        ({"maxUnavailable": 1}, OWNED, "the controllers of its pods want none"),
        ({}, [], "it sets neither minAvailable nor maxUnavailable"),
    ],
)
def test_where_pods_are_there_and_none_are_expected_it_is_said_why(spec, owners, why):
    """PDB4. The numbers are upstream's: one healthy, none needed, none may go."""
    before = budget(**spec)
    found = stands(before, pod("p0", ownerReferences=owners))
    assert shown(found) == (0, 0, 1, 0)
    (condition,) = status(before, found, NOW)["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "InsufficientPods")
    assert condition["message"] == f"no pods are expected: {why}"


@pytest.mark.parametrize("pods", [0, 2])
def test_there_is_nothing_to_explain_where_there_is_nobody_or_somebody_is_expected(pods):
    before = budget(minAvailable=0)
    (condition,) = status(before, stands(before, *many(pods)), NOW)["conditions"]
    assert condition["message"] == ""


@pytest.mark.parametrize(
    ("selector", "names"), [(None, []), ({}, ["a", "b"]), ({"matchLabels": {"app": "web"}}, ["a"])]
)
def test_no_selector_covers_nobody_and_an_empty_one_everybody(selector, names):
    pods = [pod("a"), pod("b", labels={})]
    found = covered(budget_of(budget(selector=selector)), pods)
    assert [one.name for one in found] == names


# -- who is going -------------------------------------------------------------------------------


def test_a_pod_that_was_evicted_does_not_count_while_it_is_still_there():
    found = stands(budget({"p0": ago(5)}, minAvailable=1), *many(3))
    assert shown(found) == (3, 1, 2, 1)
    assert found.going == {"p0": ago(5)}
    assert look_again_s(found, NOW) == DELETED_WITHIN_S - 5


def test_whoever_is_gone_or_told_to_end_is_forgotten():
    leaving = pod("leaving", deletionTimestamp=EARLIER)
    found = stands(budget({"gone": ago(5), "leaving": ago(5)}, minAvailable=1), *many(2), leaving)
    assert found.going == {}
    assert look_again_s(found, NOW) is None


def test_whoever_is_still_there_after_two_minutes_counts_again():
    """PDB3."""
    noted = {"p0": ago(DELETED_WITHIN_S), "p1": ago(DELETED_WITHIN_S - 1)}
    found = stands(budget(noted, minAvailable=1), *many(3))
    assert found.going == {"p1": noted["p1"]}
    assert found.healthy == 2
    assert look_again_s(found, NOW) == 1


def test_a_pod_that_the_cache_does_not_show_yet_is_not_taken_for_gone():
    """It may have been made and evicted since; its readiness would arrive before its end."""
    noted = {"unseen": ago(5), "late": ago(DELETED_WITHIN_S)}
    found = stands(budget(noted, minAvailable=1), *many(2), is_current=False)
    assert found.going == {"unseen": ago(5)}


# -- what is written ----------------------------------------------------------------------------


def written(before: Object, due: Mapping[str, Any]) -> Object:
    return Object(encode({**before.fields, "status": due}))


def test_a_condition_keeps_its_time_until_its_status_changes():
    first = budget(minAvailable=1)
    later = NOW + timedelta(minutes=5)
    two = written(first, status(first, stands(first, *many(2)), NOW))
    three = written(two, status(two, stands(two, *many(3)), later))
    (condition,) = three.fields["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "SufficientPods")
    assert condition["lastTransitionTime"] == age.timestamp(NOW)
    assert condition["observedGeneration"] == 3
    one = status(three, stands(three, *many(1)), later)["conditions"][0]
    assert (one["status"], one["reason"]) == ("False", "InsufficientPods")
    assert one["lastTransitionTime"] == age.timestamp(later)


def test_conditions_of_others_stay():
    mine = {"type": "Mine", "status": "True", "reason": "R", "message": "", "lastTransitionTime": EARLIER}
    fields = {"metadata": {"name": "b", "generation": 1}, "spec": {}, "status": {"conditions": [mine]}}
    before = Object(encode(fields))
    types = [one["type"] for one in status(before, stands(before), NOW)["conditions"]]
    assert types == ["Mine", "DisruptionAllowed"]


def test_a_new_spec_is_looked_at_even_if_the_numbers_stay():
    before = budget(minAvailable=1)
    seen = written(before, status(before, stands(before, *many(2)), NOW))
    changed = Object(encode({**seen.fields, "metadata": {"name": "b", "generation": 4}}))
    assert status(changed, stands(changed, *many(2)), NOW)["observedGeneration"] == 4


def test_what_happens_to_a_pod_and_does_not_matter():
    before = pod("a")
    bound = Object(encode({**before.fields, "spec": {"nodeName": "n1"}}))
    assert matters(bound) == matters(before)
    for other in (
        pod("a", ready=False),
        pod("a", phase="Failed"),
        pod("a", deletionTimestamp=EARLIER),
        pod("a", labels={"app": "db"}),
        pod("a", ownerReferences=[{"kind": "ReplicaSet", "name": "s", "uid": "u", "controller": True}]),
    ):
        assert matters(other) != matters(before)


# -- properties ---------------------------------------------------------------------------------

amounts = st.one_of(st.integers(0, 6), st.integers(0, 100).map(lambda n: f"{n}%"))
specs = st.one_of(
    st.builds(lambda n: {"minAvailable": n}, amounts),
    st.builds(lambda n: {"maxUnavailable": n}, amounts),
    st.just({}),
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Object, list[Object], int | Uncounted]:
    """Mostly healthy pods, some of which were evicted: otherwise nothing is ever allowed."""
    names = [f"p{n}" for n in range(draw(st.integers(0, 8)))]
    pods = [
        pod(
            name,
            ready=draw(st.sampled_from([True, True, True, False])),
            phase=draw(st.sampled_from(["Running", "Running", "Running", "Failed"])),
            **draw(st.sampled_from([{}, {}, {}, {"deletionTimestamp": EARLIER}])),
        )
        for name in names
    ]
    evicted = draw(st.lists(st.sampled_from([*names, "gone"]), unique=True, max_size=3))
    noted = {name: ago(draw(st.integers(0, 200))) for name in evicted}
    wanted = draw(st.one_of(st.integers(0, 8), st.just(Uncounted("so"))))
    return budget(noted, **draw(specs)), pods, wanted


@given(worlds(), st.booleans())
def test_all_that_is_allowed_leaves_as_many_healthy_pods_as_are_desired(world, is_current):
    """PDB1. Counted anew from the pods, as an observer would who takes every allowed pod away."""
    before, pods, wanted = world
    found = stands(before, *pods, wanted=wanted, is_current=is_current)
    conditions = [one.fields["status"]["conditions"][0]["status"] == "True" for one in pods]
    running = [
        one
        for one, ready in zip(pods, conditions, strict=True)
        if ready
        and one.fields["status"]["phase"] == "Running"
        and one.metadata.deletion_timestamp is None
        and one.name not in found.going
    ]
    assert found.healthy == len(running)
    assert found.allowed >= 0
    if found.allowed:
        assert len(running) - found.allowed >= found.desired
        assert not isinstance(wanted, Uncounted)


@given(worlds(), st.booleans())
def test_what_was_written_plans_no_write(world, is_current):
    before, pods, wanted = world
    due = status(before, stands(before, *pods, wanted=wanted, is_current=is_current), NOW)
    after = written(before, due)
    again = stands(after, *pods, wanted=wanted, is_current=is_current)
    assert status(after, again, NOW + timedelta(seconds=0.5)) is None


@given(worlds())
def test_an_eviction_that_is_charged_is_counted_once(world):
    """PDB2 at rest: while the pod is there, and after it is gone, what is allowed is what the charge left."""
    before, pods, wanted = world
    found = stands(before, *pods, wanted=wanted)
    healthy = [
        one for one in pods if matters(one)[2:] == (True, False, False) and one.name not in found.going
    ]
    if not found.allowed:
        return
    victim = healthy[0]
    noted = {**found.going, victim.name: ago(0)}
    charged = Object(encode({**before.fields, "status": {"disruptedPods": noted}}))
    assert stands(charged, *pods, wanted=wanted).allowed == found.allowed - 1
    left = [one for one in pods if one is not victim]
    assert stands(charged, *left, wanted=wanted).allowed == found.allowed - 1
