"""What the Node says of its device plugins."""

from allot.nodeagent.deviceplugins.doubles import Double
from allot.nodeagent.deviceplugins.offers import Counted
from allot.nodeagent.deviceplugins.status import TWICE, said, zeroed

GPU = "example.com/gpu"
TWO = {GPU: Counted(2, 1)}


def node(*conditions: dict, **counts: dict) -> dict:
    return {"status": {"capacity": {}, "allocatable": {}, "conditions": [*conditions], **counts}}


def test_only_what_is_different_is_said():
    assert said(node(), TWO, (), "now") == {"capacity": {GPU: "2"}, "allocatable": {GPU: "1"}}
    assert said(node(capacity={GPU: "2"}), TWO, (), "now") == {"allocatable": {GPU: "1"}}
    assert said(node(capacity={GPU: "2"}, allocatable={GPU: "1"}), TWO, (), "now") == {}


def test_what_is_offered_twice_is_a_condition_that_goes_when_it_is_over():
    twice = [Double(GPU, f"a{n}", "gpu.example.com", "pool", f"a{n}") for n in range(7)]
    (condition,) = said(node(), {}, twice, "t1")["conditions"]
    assert (condition["type"], condition["status"]) == (TWICE, "True")
    assert "device a0 of the device plugin for example.com/gpu is device a0 in pool" in condition["message"]
    assert "2 more" in condition["message"]
    assert said(node(condition), {}, twice, "t2") == {}
    (other,) = said(node(condition), {}, twice[:1], "t2")["conditions"]
    assert (other["status"], other["lastTransitionTime"]) == ("True", "t1")
    (over,) = said(node(condition), {}, (), "t3")["conditions"]
    assert (over["status"], over["lastTransitionTime"]) == ("False", "t3")
    assert said(node(over), {}, (), "t4") == {}
    assert said(node(), {}, (), "t5") == {}


def test_a_machine_that_remembers_no_plugin_takes_back_what_its_node_said_of_them():
    known = node(capacity={"cpu": "4", "hugepages-2Mi": "0", GPU: "8", "pods": "110"})
    assert zeroed(known) == {GPU: Counted(0, 0)}
