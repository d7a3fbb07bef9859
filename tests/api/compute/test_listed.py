"""Compute resources that are said beside the Node."""

import pytest

from allot.api import Object, compute, encode
from kep.compute import RAW, cr, named

V100 = {"model": "v100"}


def node(**status):
    return Object(encode({"metadata": {"name": "n"}, "status": status}))


def listed(*entries, **more):
    named_ = [{"name": named(one["properties"]), **one} for one in entries]
    return Object(encode({"metadata": {"name": "n"}, "computeResources": named_, **more}))


def seen(node_, list_):
    return compute.listed.with_listed(node_, list_).fields["status"].get("computeResources")


def test_a_node_is_seen_with_what_is_listed():
    """14-OPEN-25."""
    assert [one["name"] for one in seen(node(allocatable={"cpu": "4"}), listed(cr(V100)))] == [named(V100)]
    assert seen(node(), None) is None
    assert seen(node(), listed()) is None


def test_what_the_node_says_itself_counts():
    """LISTED1."""
    own = [{"name": named({}), "resourceName": RAW, "devices": ["a"]}]
    assert seen(node(computeResources=own), listed(cr(V100))) == own


def test_what_the_node_counts_is_not_had_twice():
    """LISTED2."""
    other = {**cr(V100, raw="example.com/nic"), "name": named(V100, "example.com/nic")}
    both = listed(cr(V100), other)
    assert [one["resourceName"] for one in seen(node(allocatable={RAW: "2"}), both)] == ["example.com/nic"]
    assert len(seen(node(allocatable={RAW: "0"}), both)) == 2


@pytest.mark.parametrize(
    "junk",
    [
        {"computeResources": [{"name": "x", "resourceName": RAW}]},
        {"computeResources": [{"name": named({}), "resourceName": RAW, "allocatableDevices": ["a"]}]},
        {"computeResources": "all of them"},
        {"computeResources": [1]},
    ],
)
def test_a_list_that_is_wrong_says_nothing(junk):
    """14-NODE-13"""
    assert seen(node(), listed(**junk)) is None
    with pytest.raises(compute.listed.BadList):
        compute.listed.read(listed(**junk))
