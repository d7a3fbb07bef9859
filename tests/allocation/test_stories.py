"""Situations that random problems rarely reach, told one by one.

Each is put to the oracle too, so that a story cannot drift from the rules.
"""

import copy

from allot.allocation import POLICIES

from . import oracle
from .agreement import disagreement, solved


def pool(name, devices, *, node="n", generation=1, count=1, slice_name="", **spec):
    return {
        "metadata": {"name": slice_name or f"{name}-{generation}-{node}"},
        "spec": {
            "driver": "d.example.com",
            "pool": {"name": name, "generation": generation, "resourceSliceCount": count},
            "nodeName": node,
            "devices": [{"name": one} if isinstance(one, str) else one for one in devices],
            **spec,
        },
    }


def asks(*requests, **devices):
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests), **devices}}}


def wants(name="r", count=1, **fields):
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count, **fields}
    return {"name": name, "exactly": exactly}


def wants_all(name="r", **fields):
    return {"name": name, "exactly": {"deviceClassName": "any", "allocationMode": "All", **fields}}


def problem(slices, *claims, features=(), **more):
    return {
        "name": "story",
        "features": list(features),
        "node": {"metadata": {"name": "n"}},
        "slices": slices,
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "claims": list(claims),
        **more,
    }


def verdict(told) -> str:
    """The verdict, once oracle and allocator agree on it under every policy."""
    expected = oracle.solve(copy.deepcopy(told))
    assert disagreement(told, expected) == ""
    return expected.verdict


def given(told, policy="first-fit"):
    return [
        (device["request"], device["pool"], device["device"])
        for result in solved(told, policy).results
        for device in result["devices"].get("results") or ()
    ]


def test_an_obsolete_pool_is_ignored_even_by_a_request_for_all_devices():
    """A newer generation exists on another node; the old slice here is neither offered nor waited for."""
    slices = [
        pool("stale", ["old"], generation=1, count=2),
        pool("stale", ["new"], generation=2, count=1, node="m"),
        pool("whole", ["a", "b"]),
    ]
    told = problem(slices, asks(wants_all()))

    assert verdict(told) == "fits"
    assert given(told) == [("r", "whole", "a"), ("r", "whole", "b")]


def test_an_incomplete_pool_refuses_a_request_for_all_devices():
    told = problem([pool("part", ["a"], count=2), pool("whole", ["b"])], asks(wants_all()))

    assert verdict(told) == "error"


def test_a_whole_pool_here_does_not_look_for_newer_slices_elsewhere():
    slices = [pool("p", ["old"], generation=1), pool("p", ["new"], generation=2, node="m")]
    told = problem(slices, asks(wants()))

    assert given(told) == [("r", "p", "old")]
    assert verdict(told) == "fits"


def test_the_whole_pool_is_searched_before_an_invalid_one_is_blamed():
    """The first choice strands the second request; going back finds a way, so nothing is wrong."""
    broken = [
        pool("broken", ["x"], count=2, slice_name="b1"),
        pool("broken", ["x"], count=2, slice_name="b2"),
    ]
    only_a = {
        "selectors": [{"cel": {"expression": 'device.attributes["d.example.com"].?main.orValue(false)'}}]
    }
    devices = [{"name": "a", "attributes": {"main": {"bool": True}}}, {"name": "b"}]
    told = problem([*broken, pool("good", devices)], asks(wants("any"), wants("main", **only_a)))

    assert verdict(told) == "fits"
    assert given(told) == [("any", "good", "b"), ("main", "good", "a")]


def test_an_error_behind_the_first_solution_is_never_met():
    """The second device would make the selector fail; the first one will do."""
    devices = [{"name": "a", "attributes": {"size": {"int": 4}}}, {"name": "b"}]
    selector = {"selectors": [{"cel": {"expression": 'device.attributes["d.example.com"].size > 2'}}]}
    assert verdict(problem([pool("p", devices)], asks(wants(**selector)))) == "fits"
    assert verdict(problem([pool("p", devices)], asks(wants(count=2, **selector)))) == "error"
    assert verdict(problem([pool("p", devices[::-1])], asks(wants(**selector)))) == "error"


def test_an_admin_looks_at_devices_in_use_but_not_twice_in_one_claim():
    admin = wants("look", adminAccess=True)
    slices = [pool("p", ["a"])]
    features = ("AdminAccess",)
    assert (
        verdict(problem(slices, asks(admin), features=features, allocatedDevices=["d.example.com/p/a"]))
        == "fits"
    )
    assert verdict(problem(slices, asks(wants()), asks(admin), features=features)) == "fits"
    assert verdict(problem(slices, asks(admin), asks(wants()), features=features)) == "does-not-fit"
    assert verdict(problem(slices, asks(wants("own"), admin), features=features)) == "does-not-fit"


def test_an_alternative_is_kept_only_if_everything_after_it_fits():
    one = {"deviceClassName": "any", "allocationMode": "ExactCount"}
    lists = {
        "name": "l",
        "firstAvailable": [{"name": "two", "count": 2, **one}, {"name": "one", "count": 1, **one}],
    }
    told = problem([pool("p", ["a", "b"])], asks(lists, wants("last")), features=("PrioritizedList",))

    assert verdict(told) == "fits"
    assert given(told) == [("l/one", "p", "a"), ("last", "p", "b")]


def test_thirty_two_devices_are_enough_for_anyone():
    one = {"deviceClassName": "any", "allocationMode": "ExactCount"}
    lists = {
        "name": "l",
        "firstAvailable": [{"name": "many", "count": 20, **one}, {"name": "few", "count": 5, **one}],
    }
    slices = [pool("p", [f"x{n:02d}" for n in range(40)])]
    told = problem(slices, asks(lists, wants("rest", 13)), features=("PrioritizedList",))

    assert verdict(told) == "fits"
    assert {request for request, _, _ in given(told)} == {"l/few", "rest"}
    assert verdict(problem(slices, asks(wants(count=33)))) == "error"
    assert verdict(problem(slices, asks(wants(count=32)), asks(wants(count=8)))) == "fits"


def test_every_policy_gives_the_small_device_to_the_small_request_when_it_must():
    """Published large first, so a greedy choice would strand the second request."""
    big = {
        "selectors": [
            {"cel": {"expression": 'device.capacity["d.example.com"].m.compareTo(quantity("80Gi")) >= 0'}}
        ]
    }
    devices = [
        {"name": n, "capacity": {"m": {"value": v}}} for n, v in (("large", "80Gi"), ("small", "10Gi"))
    ]
    told = problem([pool("p", devices)], asks(wants("any"), wants("big", **big)))

    assert verdict(told) == "fits"
    for policy in POLICIES:
        assert sorted(given(told, policy)) == [("any", "p", "small"), ("big", "p", "large")]


def test_least_waste_keeps_the_large_device():
    devices = [
        {"name": n, "capacity": {"m": {"value": v}}} for n, v in (("large", "80Gi"), ("small", "10Gi"))
    ]
    told = problem([pool("p", devices)], asks(wants()))

    assert given(told, "first-fit") == [("r", "p", "large")]
    assert given(told, "least-waste") == [("r", "p", "small")]


def test_a_device_that_draws_from_two_sets_is_counted_piece_by_piece():
    """Two pieces of two fit where one of four would not; miscounted, the admin's first choice was refused."""
    sets = [{"name": name, "counters": {"k": {"value": value}}} for name, value in (("s", "4"), ("t", "5"))]

    def draws(amount):
        counters = {"k": {"value": amount}}
        return {"consumesCounters": [{"counterSet": name, "counters": counters} for name in "st"]}

    devices = [
        {"name": "a", **draws("1")},
        {"name": "b"},
        {"name": "c", "attributes": {"main": {"bool": True}}, **draws("2")},
        {"name": "d"},
        {"name": "e"},
    ]
    slices = [
        pool("p", devices, count=2),
        pool("p", [], count=2, slice_name="counters", sharedCounters=sets),
    ]
    del slices[1]["spec"]["devices"]
    one = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}
    listed = {"name": "r3", "firstAvailable": [{"name": "only", **one}]}
    only_c = {
        "selectors": [{"cel": {"expression": 'device.attributes["d.example.com"].?main.orValue(false)'}}]
    }
    told = problem(
        slices,
        asks(wants("r0"), wants("r1")),
        asks(wants("r2"), listed, wants("look", adminAccess=True)),
        asks(wants("main", **only_c)),
        features=("AdminAccess", "PartitionableDevices", "PrioritizedList"),
    )

    assert verdict(told) == "fits"
    assert ("look", "p", "a") in given(told)
