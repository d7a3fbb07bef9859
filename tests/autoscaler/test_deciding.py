"""`autoscaler.memory` and `autoscaler.deciding`: decision after decision, in a cluster of plain objects."""

import asyncio
import random
from dataclasses import dataclass, field, replace

from allot.api import Object, encode
from allot.autoscaler import Group, Origin
from allot.autoscaler.deciding import LEAVING, Decider, Decision, Settings, View
from allot.autoscaler.memory import Late, Memory, Patience
from allot.base import RandomIds
from allot.planning import Cluster
from allot.scheduler import Cycle, deciding_plugins
from allot.scheduler import Settings as SchedulerSettings
from planning.clusters import NOW, Fields, cluster

from .test_packing import asking, only_offers, template
from .test_shrinking import user

READY = [{"type": "Ready", "status": "True"}]


@dataclass
class Town:
    """A cluster that a test changes, and the autoscaler that looks at it."""

    objects: list[Fields] = field(default_factory=only_offers)
    now_s: float = 0.0
    most: int = 10
    least: int = 0
    kind: str = "gpu"
    promised: str = "gpu"

    def __post_init__(self) -> None:
        self.plugins = deciding_plugins(RandomIds(random.Random(0)), SchedulerSettings())
        self.decider = Decider(Settings(unneeded_s=60, after_growth_s=100), self.plugins)
        self.memory = Memory(Patience(arrival_s=300, backoff_s=50))
        self.late: tuple[Late, ...] = ()
        self.template = replace(template(self.promised), origin=Origin.GIVEN)

    def node(self, name: str, *, ready: bool = True, slices: bool = True, leaving: bool = False) -> None:
        made = template(self.kind).named(name, "g")
        spec = {"taints": [{"key": LEAVING, "effect": "NoSchedule"}]} if leaving else {}
        status = {**made.node.fields["status"], "conditions": READY if ready else []}
        fields = {**made.node.fresh(), "spec": spec, "status": status}
        fields["metadata"]["uid"] = f"uid-{name}"
        self.remove(name)
        self.objects += [fields, *(one.fresh() for one in (made.slices if slices else ()))]

    def remove(self, name: str) -> None:
        self.objects = [
            one
            for one in self.objects
            if one["metadata"]["name"] != name and (one.get("spec") or {}).get("nodeName") != name
        ]

    def decide(self, after_s: float = 10.0) -> Decision:
        self.now_s += after_s
        here: Cluster = cluster(*self.objects)
        nodes = {
            one["metadata"]["name"]: Object(encode(one)) for one in self.objects if one["kind"] == "Node"
        }
        slices = [Object(encode(one)) for one in self.objects if one["kind"] == "ResourceSlice"]
        snapshot, cycle = here.reading.snapshot, Cycle(self.plugins)
        self.late = self.memory.observe(nodes.values(), slices, self.now_s)
        view = View(snapshot, nodes, slices, here.waiting, lambda one: cycle.fitting(one, NOW, snapshot))
        group = Group("g", 1.0, len(nodes), self.least, self.most, self.template)
        begun = asyncio.run(self.decider.begin(view, self.memory, [group], NOW, self.now_s))
        decision = self.decider.decide(view, begun, self.now_s)
        for count in decision.grow.values():
            self.memory.order(group, count, self.now_s)
        return decision


def test_a_node_is_asked_for_once_while_it_comes_and_arrives():
    """Y1, AUTO-22, AUTO-33, AUTO-46, AUTO-52, 14-AUTO-04: asked for, there, not ready, without slices."""
    town = Town()
    town.objects += asking(9)
    assert town.decide().grow == {"g": 2}
    assert not town.decide().grow
    town.node("g-0", ready=False, slices=False)
    assert not town.decide().grow
    town.node("g-0", slices=False)
    town.node("g-1")
    assert not town.decide().grow
    town.node("g-0")
    assert not town.decide().grow and not town.memory.arriving and not town.memory.asked


def test_more_pods_than_what_comes_will_take_ask_for_more():
    town = Town()
    town.objects += asking(8)
    assert town.decide().grow == {"g": 1}
    town.objects += asking(1, name="late")
    assert town.decide().grow == {"g": 1}


def test_patience_ends_and_a_template_that_lied_is_reported_and_not_relied_on():
    """Y4, AUTO-46, 14-AUTO-05, 14-AUTO-07: eight devices were promised, and one is there."""
    town = Town(kind="edge")
    town.objects += asking(1, gpus=4)
    assert town.decide().grow == {"g": 1}
    town.node("g-0")
    assert not town.decide(200).grow and not town.late
    decision = town.decide(400)
    ((group, node, missing),) = town.late
    assert group == "g" and node is not None and node.name == "g-0"
    assert any("8 devices of gpu.example.com promised" in one for one in missing)
    assert not decision.grow
    assert "not what its template promises" in next(iter(decision.growth.helpless.values()))
    assert not town.decide(10_000).grow and not town.late  # said once
    labels = {"metadata": {**town.template.node["metadata"], "labels": {"edition": "2"}}}
    town.template = replace(town.template, node={**town.template.node, **labels})
    assert town.decide().grow == {"g": 1}


def test_a_promise_is_the_same_however_its_node_fares():
    """Y4: a template that is learned anew with every word of its node would be taken for a corrected one."""
    town = Town(kind="edge")
    town.objects += asking(1, gpus=4)
    assert town.decide().grow == {"g": 1}
    town.node("g-0")
    town.decide(10)
    town.decide(400)
    metadata = {**town.template.node["metadata"], "resourceVersion": "7", "annotations": {"a": "b"}}
    taints = [{"key": LEAVING, "effect": "NoSchedule"}]
    town.template = replace(
        town.template, node={**town.template.node, "metadata": metadata, "spec": {"taints": taints}}
    )
    assert not town.decide(10_000).grow


def test_a_node_that_never_comes_is_reported_and_asked_for_again_after_a_while():
    town = Town()
    town.objects += asking(1)
    assert town.decide().grow == {"g": 1}
    assert not town.decide(301).grow and town.late == (Late("g", None),)
    assert town.decide(51).grow == {"g": 1}


def test_a_node_that_nobody_needs_goes_after_a_while_and_empty():
    """Y2, Y3: marked, emptied, removed; and with the demand unchanged nothing is added."""
    town = Town()
    town.node("g-0")
    town.node("g-1")
    town.objects += user("a", "g-0", "gpu-0") + user("b", "g-1", "gpu-0")
    assert not town.decide().mark
    assert town.decide(61).mark == ("g-0",)
    town.node("g-0", leaving=True)
    moving = user("a", "g-0", "gpu-0")
    town.objects += moving
    decision = town.decide()
    assert [one.key.name for one in decision.evict] == ["a"] and not decision.remove
    town.objects = [one for one in town.objects if one["metadata"]["name"] not in ("a", "c-a")]
    assert town.decide().remove == ("g-0",)
    town.remove("g-0")
    assert not town.decide().grow


def test_nothing_goes_while_something_comes_nor_soon_after():
    """Y3."""
    town = Town()
    town.node("g-0")
    town.objects += asking(1, gpus=8) + user("a", "g-0", "gpu-0")
    assert town.decide().grow == {"g": 1}
    town.node("g-1")
    town.objects = [one for one in town.objects if one["metadata"]["name"] != "p0"]
    assert not town.decide(65).mark
    assert not town.decide(10).mark
    assert town.decide(90).mark


def test_who_waits_keeps_the_nodes_that_were_to_go():
    """Y3: a node on its way out would take the pod, so none is added."""
    town = Town(most=1)
    town.node("g-0", leaving=True)
    assert town.decide().remove == ("g-0",)
    town.objects += asking(1)
    decision = town.decide()
    assert decision.keep == ("g-0",) and not decision.grow and not decision.remove


def test_a_pod_that_no_node_helps_keeps_nothing():
    town = Town()
    town.node("g-0", leaving=True)
    town.objects += asking(1, gpus=9)
    decision = town.decide()
    assert decision.remove == ("g-0",) and decision.growth.helpless


def test_a_group_has_at_least_so_many():
    town = Town(least=2)
    assert town.decide().grow == {"g": 2}
    assert not town.decide().grow


def test_a_node_that_is_not_to_go_stays():
    town = Town()
    town.node("g-0")
    for one in town.objects:
        if one["kind"] == "Node":
            one["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    town.decide()
    assert not town.decide(61).mark


def test_nothing_goes_while_something_comes_however_impatient_the_settings():
    """Y3: the node that is there is empty, and one more was asked for."""
    town = Town()
    town.decider = Decider(Settings(unneeded_s=0, after_growth_s=0), town.plugins)
    town.node("g-0")
    town.objects += asking(2, gpus=8)
    assert town.decide().grow == {"g": 1}
    town.objects = [one for one in town.objects if one["kind"] != "Pod"]
    assert town.memory.asked and not town.decide().mark
    town.node("g-1")
    assert town.decide().mark


def test_what_whoever_led_before_asked_for_counts_as_coming_while_it_is_young():
    """Y1: an autoscaler dies after it asked for a node; the next one sees it before it has published."""

    def node(name: str, made: str) -> Object:
        fields = template("gpu").named(name, "g").node.fresh()
        metadata = {**fields["metadata"], "uid": name, "creationTimestamp": made}
        return Object(encode({**fields, "metadata": metadata}))

    def waiting(made: str) -> Object:
        return Object(encode({"metadata": {"name": "p", "uid": "p", "creationTimestamp": made}}))

    old, young = node("old", "2030-01-01T00:00:00Z"), node("young", "2030-01-01T00:09:00Z")
    memory = Memory(Patience(arrival_s=300))
    found = memory.unsettled([old, young], [waiting("2030-01-01T00:10:00Z")])
    assert found == {"young"}
    promised = template("gpu")
    assert not memory.observe([old, young], [], 0.0, {}, dict.fromkeys(found, promised))
    assert [one.node for one in memory.arriving] == ["young"]
    late = memory.unsettled([old, young], [waiting("2030-01-01T00:20:00Z")])
    assert late == {"young"}  # it is waited for, as if it had been asked for here
    assert not memory.unsettled([old], [])  # what has gone is not (seed 6 of the simulator)
    assert memory.observe([old, young], [], 301.0) == ()  # of somebody else's order nothing is said
    assert not memory.arriving and not memory.broken
    assert not memory.unsettled([old, young], [waiting("2030-01-01T00:10:00Z")])


def test_a_node_that_comes_after_its_order_was_given_up_is_judged_by_it_too():
    """Y4: a provider was slow, and its machine less than promised (seed 321 of the simulator)."""
    empty = Object(encode({**template("plain").named("slow", "g").node.fresh(), "kind": "Node"}))
    for came_s, is_said in ((400.0, True), (301.0 * 10, False)):
        memory = Memory(Patience(arrival_s=300))
        memory.order(Group("g", 1.0, template=replace(template("gpu"), origin=Origin.GIVEN)), 1, 0.0)
        (missed,) = memory.observe([], [], 300.0)
        assert missed.node is None and memory.coming("g") == 0, "it is not counted on any more"
        memory.observe([], [], came_s - 1)
        assert memory.observe([empty], [], came_s) == ()
        said = memory.observe([empty], [], came_s + 301)
        assert [one.node.name for one in said if one.node] == (["slow"] if is_said else [])
        assert ("g" in memory.broken) == is_said
