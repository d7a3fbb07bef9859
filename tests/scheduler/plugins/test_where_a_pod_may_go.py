"""Names, cordons, labels and taints: the plugins that compare a pod with a node and count nothing."""

from typing import Any

import pytest

from allot.scheduler.framework import Checks, FilterPlugin
from allot.scheduler.node import NodeInfo
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_name import NodeName
from allot.scheduler.plugins.node_unschedulable import NodeUnschedulable
from allot.scheduler.plugins.scheduling_gates import SchedulingGates
from allot.scheduler.plugins.taint_toleration import TaintToleration
from allot.scheduler.pod import PodInfo

from ..objects import node, pod
from .asking import best_first, cluster, rating, reason, rejection, state_of

EVERYTHING = [{"operator": "Exists"}]


def signature(plugin: FilterPlugin, one: PodInfo) -> object:
    found = plugin.sign(state_of(one), cluster())
    assert isinstance(hash(found), int)
    return found


def narrowed(plugin: FilterPlugin, one: PodInfo) -> frozenset[str] | None:
    checks = plugin.pre_filter(state_of(one), cluster())
    assert isinstance(checks, Checks)
    return checks.nodes


# -- gates ----------------------------------------------------------------------------------------


def test_a_gated_pod_says_which_gates_it_waits_for():
    gated = pod(schedulingGates=[{"name": "example.com/quota"}, {"name": "example.com/image"}])
    why = SchedulingGates().pre_enqueue(gated, cluster())
    assert why == "waiting for scheduling gates: example.com/quota, example.com/image"
    assert SchedulingGates().pre_enqueue(pod(), cluster()) is None


# -- names ----------------------------------------------------------------------------------------


def test_a_pod_that_names_its_node_goes_there_or_nowhere():
    named = pod(nodeName="there")
    assert reason(NodeName(), named, node("there")) is None
    assert reason(NodeName(), named, node("here")) == "node(s) didn't match the requested node name"
    assert narrowed(NodeName(), named) == {"there"}
    assert NodeName().pre_filter(state_of(pod()), cluster()) is None


# -- cordons --------------------------------------------------------------------------------------


def test_a_cordoned_node_takes_only_pods_that_tolerate_it():
    cordoned = node(unschedulable=True)
    assert reason(NodeUnschedulable(), pod(), cordoned) == "node(s) were unschedulable"
    assert reason(NodeUnschedulable(), pod(tolerations=EVERYTHING), cordoned) is None
    by_key = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]
    assert reason(NodeUnschedulable(), pod(tolerations=by_key), cordoned) is None
    assert reason(NodeUnschedulable(), pod(), node()) is None


# -- taints ---------------------------------------------------------------------------------------


def tainted(*taints: tuple[str, str, str], name: str = "n") -> NodeInfo:
    return node(
        name, taints=[{"key": key, "value": value, "effect": effect} for key, value, effect in taints]
    )


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(effect: str):
    dedicated = tainted(("dedicated", "gpu", effect))
    assert reason(TaintToleration(), pod(), dedicated) == "node(s) had untolerated taint(s) {dedicated}"
    found = rejection(TaintToleration(), pod(), dedicated)
    assert found is not None
    assert not found.resolvable  # no eviction removes a taint


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        ({"key": "dedicated", "value": "gpu"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}, True),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "value": "cpu"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_what_tolerates_a_taint(toleration: dict[str, Any], is_tolerated: bool):
    dedicated = tainted(("dedicated", "gpu", "NoSchedule"))
    assert (reason(TaintToleration(), pod(tolerations=[toleration]), dedicated) is None) == is_tolerated


def test_the_first_taint_that_is_not_tolerated_is_named():
    both = tainted(("a", "", "NoSchedule"), ("b", "", "NoSchedule"))
    tolerant = pod(tolerations=[{"key": "a", "operator": "Exists"}])
    assert reason(TaintToleration(), tolerant, both) == "node(s) had untolerated taint(s) {b}"


def test_a_taint_that_only_prefers_makes_a_node_the_last_choice():
    clean, once = node("z-clean"), tainted(("a", "", "PreferNoSchedule"), name="once")
    twice = tainted(("a", "", "PreferNoSchedule"), ("b", "", "PreferNoSchedule"), name="a-twice")
    assert reason(TaintToleration(), pod(), twice) is None
    assert best_first(TaintToleration(), pod(), [twice, once, clean]) == ["z-clean", "once", "a-twice"]
    assert rating(TaintToleration(), pod(tolerations=EVERYTHING), twice) == 0.0


def test_pods_with_equal_tolerations_are_signed_alike():
    tolerant = [{"key": "a", "operator": "Exists", "tolerationSeconds": 300}]
    plugin = TaintToleration()
    assert signature(plugin, pod("a", tolerations=tolerant)) == signature(
        plugin, pod("b", tolerations=tolerant)
    )
    assert signature(plugin, pod("a", tolerations=tolerant)) != signature(plugin, pod("b"))


# -- labels ---------------------------------------------------------------------------------------

NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
EAST, WEST = node("east", labels={"zone": "east", "disk": "ssd"}), node("west", labels={"zone": "west"})


def in_zone(*zones: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}


def on_node(name: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}


def requiring(*terms: dict[str, Any], **spec: Any) -> PodInfo:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return pod(affinity={"nodeAffinity": required}, **spec)


def preferring(**weights: int) -> PodInfo:
    preferred = [{"weight": weight, "preference": in_zone(zone)} for zone, weight in weights.items()]
    return pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})


def test_a_pod_without_wishes_has_nothing_to_check():
    assert NodeAffinity().pre_filter(state_of(pod()), cluster()) is None
    assert NodeAffinity().pre_score(state_of(pod()), cluster()) is None
    assert signature(NodeAffinity(), pod()) is None


def test_labels_and_affinity_must_both_hold():
    one = requiring(in_zone("east", "west"), nodeSelector={"disk": "ssd"})
    assert reason(NodeAffinity(), one, EAST) is None
    assert reason(NodeAffinity(), one, WEST) == NO_MATCH
    other = requiring(in_zone("west"), nodeSelector={"disk": "ssd"})
    assert reason(NodeAffinity(), other, EAST) == reason(NodeAffinity(), other, WEST) == NO_MATCH


def test_terms_are_alternatives_and_one_that_says_nothing_matches_nothing():
    assert reason(NodeAffinity(), requiring(in_zone("north"), in_zone("west")), WEST) is None
    assert reason(NodeAffinity(), requiring({}), WEST) == NO_MATCH


def test_a_pod_that_names_its_nodes_is_put_to_no_other():
    assert narrowed(NodeAffinity(), requiring(on_node("east"))) == {"east"}
    assert narrowed(NodeAffinity(), requiring(on_node("east"), on_node("west"))) == {"east", "west"}
    assert reason(NodeAffinity(), requiring(on_node("east")), WEST) == NO_MATCH


def test_where_one_alternative_names_no_node_every_node_is_asked():
    assert narrowed(NodeAffinity(), requiring(on_node("east"), in_zone("west"))) is None
    assert narrowed(NodeAffinity(), requiring(on_node("east", "NotIn"))) is None


def test_names_that_contradict_each_other_leave_no_node():
    both = {"matchFields": [*on_node("east")["matchFields"], *on_node("west")["matchFields"]]}
    assert narrowed(NodeAffinity(), requiring(both)) == frozenset()


def test_a_selector_that_cannot_be_read_says_so_on_every_node():
    """No server accepts one; if it is there all the same, the pod waits and nothing breaks."""
    bad = requiring({"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["x"]}]})
    found = reason(NodeAffinity(), bad, EAST)
    assert found is not None
    assert found.startswith(f"{NO_MATCH}, which cannot be read")


def test_the_node_that_has_more_of_what_was_preferred_comes_first():
    assert best_first(NodeAffinity(), preferring(west=10, east=1), [EAST, WEST]) == ["west", "east"]
    assert best_first(NodeAffinity(), preferring(west=1, east=10), [EAST, WEST]) == ["east", "west"]
    assert rating(NodeAffinity(), preferring(east=7), EAST) == 0.0
    assert rating(NodeAffinity(), preferring(east=7), WEST) == 200.0


def test_pods_that_want_the_same_are_signed_alike():
    plugin = NodeAffinity()
    assert signature(plugin, requiring(in_zone("x"))) == signature(plugin, requiring(in_zone("x")))
    assert signature(plugin, requiring(in_zone("x"))) != signature(plugin, requiring(in_zone("y")))
    assert signature(plugin, preferring(x=1)) != signature(plugin, preferring(x=2))
    assert signature(plugin, pod(nodeSelector={"a": "b"})) != signature(plugin, pod())
