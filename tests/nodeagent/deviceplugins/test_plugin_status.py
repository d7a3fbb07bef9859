"""What the Node says of its device plugins."""

from allot.nodeagent.deviceplugins.compute import ComputeResource
from allot.nodeagent.deviceplugins.doubles import Double
from allot.nodeagent.deviceplugins.offers import Counted
from allot.nodeagent.deviceplugins.status import LATE, TWICE, Says, said, zeroed

GPU = "example.com/gpu"
TWO = Says({GPU: Counted(2, 1)})


def node(*conditions: dict, **counts: dict) -> dict:
    return {"status": {"capacity": {}, "allocatable": {}, "conditions": [*conditions], **counts}}


def test_only_what_is_different_is_said():
    assert said(node(), TWO, "now") == {"capacity": {GPU: "2"}, "allocatable": {GPU: "1"}}
    assert said(node(capacity={GPU: "2"}), TWO, "now") == {"allocatable": {GPU: "1"}}
    assert said(node(capacity={GPU: "2"}, allocatable={GPU: "1"}), TWO, "now") == {}


def test_what_is_offered_twice_is_a_condition_that_goes_when_it_is_over():
    twice = [Double(GPU, f"a{n}", "gpu.example.com", "pool", f"a{n}") for n in range(7)]
    (condition,) = said(node(), Says(doubles=twice), "t1")["conditions"]
    assert (condition["type"], condition["status"]) == (TWICE, "True")
    assert "device a0 of the device plugin for example.com/gpu is device a0 in pool" in condition["message"]
    assert "2 more" in condition["message"]
    assert said(node(condition), Says(doubles=twice), "t2") == {}
    (other,) = said(node(condition), Says(doubles=twice[:1]), "t2")["conditions"]
    assert (other["status"], other["lastTransitionTime"]) == ("True", "t1")
    (over,) = said(node(condition), Says(), "t3")["conditions"]
    assert (over["status"], over["lastTransitionTime"]) == ("False", "t3")
    assert said(node(over), Says(), "t4") == {}
    assert said(node(), Says(), "t5") == {}


def test_a_machine_that_remembers_no_plugin_takes_back_what_its_node_said_of_them():
    known = node(capacity={"cpu": "4", "hugepages-2Mi": "0", GPU: "8", "pods": "110"})
    assert zeroed(known) == {GPU: Counted(0, 0)}


EXPORTED = Says(exported=(ComputeResource(GPU, (("model", "k80"),), ("a", "b"), ("a",)),))
SHOWN = {
    "resourceName": GPU,
    "properties": {"model": "k80"},
    "devices": ["a", "b"],
    "allocatableDevices": ["a"],
}


def test_what_is_exported_is_not_counted_and_is_said_once():
    """14-NODE-07, 14-NODE-09, 14-NODE-12: native resources stay where they are."""
    before = node(capacity={GPU: "2", "cpu": "4"}, allocatable={GPU: "1", "cpu": "4"})
    patch = said(before, EXPORTED, "now")
    (shown,) = patch["computeResources"]
    assert shown == {**SHOWN, "name": shown["name"]}
    assert (patch["capacity"], patch["allocatable"]) == ({GPU: None}, {GPU: None})
    assert said(node(capacity={"cpu": "4"}, computeResources=[shown]), EXPORTED, "now") == {}
    assert said(node(computeResources=[shown]), Says(), "now") == {"computeResources": []}


def test_a_node_that_waits_for_pods_to_be_switched_says_so():
    """14-RAW-06"""
    (condition,) = said(node(), Says(late=(GPU,)), "t1")["conditions"]
    assert (condition["type"], condition["status"]) == (LATE, "True")
    assert GPU in condition["message"]
    (over,) = said(node(condition), Says(), "t2")["conditions"]
    assert over["status"] == "False"
