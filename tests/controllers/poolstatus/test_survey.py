"""How pools stand, as values. Rule 6.3."""

from datetime import UTC, datetime, timedelta

import pytest

from allot.api import Object, encode, resource
from allot.controllers.poolstatus import plan
from allot.controllers.poolstatus.plan import Answer, Delete, Keep, Request
from allot.controllers.poolstatus.survey import survey, taken_devices

DRIVER = "gpu.example.com"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def slice_(pool="p", devices=("a", "b"), generation=1, count=1, driver=DRIVER, taints=(), **spec):
    listed = [{"name": name, "taints": list(taints)} for name in devices]
    told = {"name": pool, "generation": generation, "resourceSliceCount": count}
    fields = {"metadata": {"name": "s"}, "spec": {"driver": driver, "pool": told, "devices": listed, **spec}}
    return Object(encode(fields)).view(resource.ResourceSlice)


def rule(effect="NoSchedule", selector=None):
    spec = {"taint": {"key": "k", "effect": effect}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return Object(encode({"metadata": {"name": "r"}, "spec": spec})).view(resource.DeviceTaintRule)


def request(driver=DRIVER, limit=100, made=NOW, answered=None, **spec):
    fields = {"metadata": {"name": "q", "creationTimestamp": made.isoformat().replace("+00:00", "Z")}}
    fields["spec"] = {"driver": driver, "limit": limit, **spec}
    if answered is not None:
        when = answered.isoformat().replace("+00:00", "Z")
        fields["status"] = {
            "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": when}]
        }
    return Object(encode(fields)).view(Request)


def counts(pool):
    told = pool.written()
    return tuple(told[f"{name}Devices"] for name in ("total", "allocated", "available", "unavailable"))


def test_devices_are_free_taken_or_kept_away():
    """totalDevices, allocatedDevices, availableDevices, unavailableDevices."""
    taint = {"key": "k", "effect": "NoExecute"}
    slices = [slice_(devices=("a", "b"), count=2), slice_(devices=("bad",), count=2, taints=[taint])]
    (pool,) = survey(slices, {(DRIVER, "p", "a"): None}, [])
    assert counts(pool) == (3, 1, 1, 1)


def test_a_device_that_is_taken_and_tainted_counts_as_taken():
    (pool,) = survey([slice_(taints=[{"key": "k", "effect": "NoSchedule"}])], {(DRIVER, "p", "a"): None}, [])
    assert counts(pool) == (2, 1, 0, 1)


@pytest.mark.parametrize(
    ("selector", "effect", "unavailable"),
    [
        ({}, "NoSchedule", 2),
        ({"driver": DRIVER, "pool": "p", "device": "a"}, "NoExecute", 1),
        ({"driver": "other.example.com"}, "NoSchedule", 0),
        ({}, "None", 0),
        (None, "NoSchedule", 0),
    ],
)
def test_taint_rules_keep_devices_away_too(selector, effect, unavailable):
    """An empty selector selects every device, none at all selects nothing."""
    (pool,) = survey([slice_()], {}, [rule(effect, selector)])
    assert counts(pool)[3] == unavailable


def test_only_the_newest_generation_counts():
    slices = [slice_(devices=("old",), generation=1), slice_(devices=("x", "y"), generation=2)]
    for order in (slices, slices[::-1]):
        (pool,) = survey(order, {}, [])
        assert (pool.generation, pool.total) == (2, 2)


def test_what_is_wrong_with_a_pool_is_told():
    """ValidationError."""
    (short,) = survey([slice_(count=3)], {}, [])
    assert short.written()["validationError"] == "it is incomplete: 1 of 3 slices are published"
    (twice,) = survey([slice_(count=2), slice_(count=2)], {}, [])
    assert twice.written()["validationError"] == "the device a is published twice"
    (torn,) = survey([slice_(devices="a", count=1), slice_(devices="b", count=2)], {}, [])
    assert "disagree" in torn.written()["validationError"]


def test_pools_are_sorted_and_a_node_is_named_where_there_is_one():
    """Sorted by driver and pool; nodeName."""
    slices = [slice_("b", nodeName="n"), slice_("a", allNodes=True), slice_("z", driver="a.example.com")]
    pools = survey(slices, {}, [])
    assert [(one.driver, one.name, one.node) for one in pools] == [
        ("a.example.com", "z", ""),
        (DRIVER, "a", ""),
        (DRIVER, "b", "n"),
    ]


def test_administrators_take_nothing_away():
    results = [
        {"request": "r", "driver": DRIVER, "pool": "p", "device": "a", "adminAccess": True},
        {"request": "r", "driver": DRIVER, "pool": "p", "device": "b"},
    ]
    fields = {"metadata": {"name": "c"}, "status": {"allocation": {"devices": {"results": results}}}}
    claim = Object(encode(fields)).view(resource.ResourceClaim)
    assert taken_devices(claim) == [(DRIVER, "p", "b")]


def test_an_answer_shows_as_many_pools_as_were_asked_for_and_counts_all():
    """poolCount, and pools up to the limit."""
    pools = survey([slice_(f"p{n}") for n in range(5)], {}, [])
    told = plan.status(request(limit=2), pools, "2026-01-01T00:00:00Z")
    assert told["poolCount"] == 5
    assert [one["poolName"] for one in told["pools"]] == ["p0", "p1"]
    assert [(one["type"], one["status"]) for one in told["conditions"]] == [("Complete", "True")]


def test_a_request_may_be_for_one_pool():
    pools = survey([slice_("a"), slice_("b"), slice_("a", driver="other.example.com")], {}, [])
    assert [one.name for one in plan.asked_for(request(poolName="a"), pools)] == ["a"]
    assert len(plan.asked_for(request(), pools)) == 2


@pytest.mark.parametrize(
    ("age_s", "answered_s", "wanted"),
    [
        (0, None, Answer(24 * 3600)),
        (24 * 3600, None, Delete()),
        (10, 0, Keep(3600)),
        (3 * 24 * 3600, 3599, Keep(1)),
        (7200, 3600, Delete()),
    ],
)
def test_answers_are_kept_for_an_hour_and_questions_for_a_day(age_s, answered_s, wanted):
    """Rule 6.3: one hour once completed, 24 hours while pending."""
    answered = None if answered_s is None else NOW - timedelta(seconds=answered_s)
    made = NOW - timedelta(seconds=age_s)
    assert plan.step(request(made=made, answered=answered), NOW) == wanted
