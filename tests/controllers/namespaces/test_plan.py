"""What is told of a namespace while it goes, and how often it is looked at."""

from hypothesis import given
from hypothesis import strategies as st

from allot.api import meta
from allot.controllers.namespaces.plan import Findings, Remaining, conditions, pause_s, says_the_same, stages
from allot.informers import Catalogue, ResourceId, Served

MAPS = ResourceId("", "v1", "configmaps")


def views(shown):
    return [meta.view(meta.Condition, one) for one in shown]


def test_a_condition_keeps_its_time_while_it_stands():
    first = conditions(Findings([Remaining(MAPS, 2, {"a/b": 1})]), (), "t1")
    second = conditions(Findings([Remaining(MAPS, 1, {})]), views(first), "t2")
    times = {one["type"]: one["lastTransitionTime"] for one in second}
    assert times["NamespaceContentRemaining"] == "t1"
    assert times["NamespaceFinalizersRemaining"] == "t2"
    assert not says_the_same(second, views(first))
    assert says_the_same(first, views(first))


def test_what_cannot_be_asked_keeps_a_namespace():
    found = Findings(unavailable=["metrics.example.com/v1"])
    assert not found.is_empty
    assert conditions(found, (), "t")[0]["status"] == "True"


def test_pods_are_a_stage_of_their_own_and_what_has_no_namespace_is_none():
    verbs = frozenset(("list", "delete"))
    pods = Served(ResourceId("", "v1", "pods"), "Pod", verbs)
    maps = Served(MAPS, "ConfigMap", verbs)
    nodes = Served(ResourceId("", "v1", "nodes", False), "Node", verbs)
    reviews = Served(ResourceId("a.k8s.io", "v1", "localsubjectaccessreviews"), "L", frozenset(["create"]))
    assert stages(Catalogue([maps, nodes, pods, reviews])) == ((pods,), (maps,))


@given(st.floats(-1e9, 1e9), st.floats(0, 1e6))
def test_pauses_are_bounded_and_never_shrink(since_s, more_s):
    assert 0.2 <= pause_s(since_s) <= pause_s(since_s + more_s) <= 30
