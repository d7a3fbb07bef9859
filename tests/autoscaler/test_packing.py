"""`autoscaler.packing`: which groups grow and by how much, against brute force where that is possible."""

import random
from collections import Counter
from itertools import combinations_with_replacement
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.autoscaler.groups import Group, Origin, Template
from allot.autoscaler.packing import Growth, grow
from allot.base import RandomIds
from allot.fleet import fleet
from allot.scheduler import NODES, SLICES, PodInfo, Settings, Simulation, default_plugins
from planning.clusters import NOW, Cluster, Fields, claim, cluster, hardware, pod


def template(name: str) -> Template:
    (member,) = fleet(name, 1).members()
    return Template(member.node, member.slices, Origin.PROVIDED)


def group(name: str, price: float = 1.0, of: str = "", **more: Any) -> Group:
    return Group(name, price, template=template(of or name), **more)


def simulated(here: Cluster) -> Simulation:
    return Simulation(here.reading.snapshot, default_plugins(RandomIds(random.Random(0)), Settings()), NOW)


def grown(here: Cluster, *groups: Group) -> Growth:
    return grow(simulated(here), here.waiting, groups)


def by_group(growth: Growth) -> Counter[str]:
    return Counter(node.group for node in growth.nodes)


def asking(count: int, gpus: int = 1, name: str = "p") -> list[Fields]:
    return [
        one
        for at in range(count)
        for one in (claim(f"{name}{at}", count=gpus), pod(f"{name}{at}", claim=f"{name}{at}"))
    ]


def only_offers(name: str = "gpu") -> list[Fields]:
    """Classes and templates, and no node."""
    made = fleet(name, 1)
    return [*made.classes, *made.templates]


def test_the_group_that_has_the_devices_grows_from_nothing_and_no_other():
    """AUTO-01, AUTO-08: no node is there, so nobody has published a slice."""
    growth = grown(cluster(*only_offers(), *asking(1)), group("plain", 0.1), group("gpu", 10.0))
    assert by_group(growth) == {"gpu": 1} and not growth.helpless


def test_one_decision_adds_several_nodes_of_several_groups_and_each_takes_a_pod():
    """AUTO-02, Y1."""
    big, small = asking(2, gpus=8, name="big"), [pod("small", container=_cpus("20"))]
    growth = grown(cluster(*only_offers(), *big, *small), group("gpu", 10.0), group("plain", 1.0))
    assert by_group(growth) == {"gpu": 2}  # there is room for the small one on a large node
    assert all(node.pods for node in growth.nodes)
    alone = grown(cluster(*only_offers(), *small), group("gpu", 10.0), group("plain", 1.0))
    assert by_group(alone) == {"plain": 1}


def _cpus(amount: str) -> Fields:
    return {"resources": {"requests": {"cpu": amount}}}


def test_pods_that_fit_on_existing_or_coming_nodes_add_none():
    """AUTO-03, AUTO-18, AUTO-52, Y1: nine pods, eight devices here and eight that come."""
    here = cluster(*hardware("gpu", 1), *asking(9))
    simulation = simulated(here)
    more = template("gpu").named("coming-1", "gpu")
    simulation.add_node(more.node, more.slices)
    growth = grow(simulation, here.waiting, [group("gpu")], lambda pod: ["gpu-0"], ["coming-1"])
    assert not growth.nodes and sorted(growth.placed.values()) == ["coming-1", *["gpu-0"] * 8]


def test_a_full_group_and_a_group_that_nobody_knows_are_said():
    """PACK1, PACK2."""
    here = cluster(*only_offers(), *asking(17))
    growth = grown(here, group("gpu", size=3, most=4), Group("dark"), group("plain"))
    assert by_group(growth) == {"gpu": 1} and len(growth.helpless) == 9
    (why, *_) = growth.helpless.values()
    assert "dark: nobody knows what its nodes have" in why
    assert "gpu: it has its 4 nodes" in why and "plain: " in why


def test_a_closed_group_does_not_grow():
    growth = grown(cluster(*only_offers(), *asking(1)), group("gpu", closed="its template lied"))
    assert not growth.nodes and "its template lied" in next(iter(growth.helpless.values()))


def test_devices_on_a_network_add_no_node():
    """AUTO-15, AUTO-36, 3063-CA-02: all are taken, and another host would reach the same ones. Nor does one
    of which is known all that can be had there, the network's devices among it."""
    held = [f"acc-{at}" for at in range(32)]
    accelerator = {"deviceClassName": "accelerator.example.com"}
    used = claim("all", count=32, devices=held, node="rack-0", users=["x"], **accelerator)
    for result in used["status"]["allocation"]["devices"]["results"]:
        result["driver"] = "fabric.example.com"
    del used["status"]["allocation"]["nodeSelector"]
    asks = [claim("more", **accelerator), pod("p", claim="more")]
    full = cluster(*hardware("fabric", 1), used, *asks)
    (rack,) = full.objects[NODES].values()
    reached = tuple(one.fields for one in full.objects[SLICES].values())
    assert any("nodeName" not in one["spec"] for one in reached)
    for known in (group("fabric"), Group("fabric", 1.0, template=Template(rack.fields, reached))):
        growth = grown(full, known)
        assert not growth.nodes and growth.helpless
    free = cluster(*hardware("fabric", 1), *asks)
    assert not grow(simulated(free), free.waiting, [group("fabric")], lambda pod: ["rack-0"]).nodes


def test_pods_that_share_a_claim_come_to_one_node():
    """AUTO-12 on the way up, 4381-SIM-10: the first allocates, the others reserve."""
    sharing = [claim("both", count=8), *(pod(f"p{at}", claim="both") for at in range(3))]
    growth = grown(cluster(*only_offers(), *sharing), group("gpu"))
    assert [len(node.pods) for node in growth.nodes] == [3]


def test_extended_resources_are_served_by_the_slices_of_a_template_or_by_its_device_plugin():
    """5004-CA-03, AUTO-41, AUTO-42: on a node that does not exist yet, by either name of the resource."""
    for name in ("example.com/gpu", "deviceclass.resource.kubernetes.io/gpu.example.com"):
        wants = {"resources": {"requests": {name: "4"}, "limits": {name: "4"}}}
        pods = [pod(f"p{at}", container=wants) for at in range(3)]
        assert by_group(grown(cluster(*only_offers(), *pods), group("gpu"))) == {"gpu": 2}
        if name == "example.com/gpu":
            assert by_group(grown(cluster(*only_offers(), *pods), group("plugin"))) == {"plugin": 2}


def test_a_pod_that_combines_what_one_node_must_have():
    """AUTO-51: devices in one group and processors in another help nobody."""
    here = cluster(*only_offers(), claim("c"), pod("p", claim="c", container=_cpus("100")))
    assert not grown(here, group("edge"), group("plugin")).nodes
    assert by_group(grown(here, group("edge"), group("gpu"))) == {"gpu": 1}


def test_a_claim_of_a_driver_that_nobody_can_ask_adds_no_node():
    """AUTO-16, AUTO-17: what a classic driver would say is not guessed."""
    resource_class = {
        "apiVersion": "resource.k8s.io/v1alpha1",
        "kind": "ResourceClass",
        "metadata": {"name": "opaque"},
        "driverName": "opaque.example.com",
    }
    wanted = claim("c")
    wanted["spec"] = {
        "resourceClassName": "opaque",
        "allocationMode": "WaitForFirstConsumer",
        "devices": {"requests": [{"name": "classic", "exactly": {"deviceClassName": "opaque", "count": 1}}]},
    }
    growth = grown(cluster(resource_class, wanted, pod("p", claim="c")), group("gpu"))
    assert not growth.nodes
    assert "opaque.example.com would have to be asked" in next(iter(growth.helpless.values()))


# -- against brute force --------------------------------------------------------------------------

Problem = tuple[list[tuple[int, int]], dict[str, float]]
SIZES = {"edge": (1, 14), "gpu": (8, 190), "mig": (4, 94)}


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Pods as devices and processors, groups as prices."""
    pods = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 60)), min_size=1, max_size=6))
    kinds = draw(st.lists(st.sampled_from(sorted(SIZES)), min_size=1, max_size=3, unique=True))
    return pods, {kind: float(draw(st.integers(1, 9))) for kind in kinds}


def optimum(pods: list[tuple[int, int]], prices: dict[str, float]) -> float | None:
    """The cheapest nodes that take all pods, by trying all; None where some pod fits on no node."""
    best: float | None = None
    for count in range(1, len(pods) + 1):
        for nodes in combinations_with_replacement(sorted(prices), count):
            price = sum(prices[node] for node in nodes)
            if (best is None or price < best) and fits(pods, [SIZES[node] for node in nodes]):
                best = price
    return best


def fits(pods: list[tuple[int, int]], nodes: list[tuple[int, int]]) -> bool:
    if not pods:
        return True
    (gpus, cpus), *rest = pods
    tried = set()
    for at, (free_gpus, free_cpus) in enumerate(nodes):
        if (free_gpus, free_cpus) in tried or gpus > free_gpus or cpus > free_cpus:
            continue
        tried.add((free_gpus, free_cpus))
        left = [*nodes[:at], (free_gpus - gpus, free_cpus - cpus), *nodes[at + 1 :]]
        if fits(rest, left):
            return True
    return False


@settings(max_examples=60, deadline=None)
@given(problems())
def test_it_costs_what_the_best_choice_costs_or_little_more(
    problem: Problem,
):
    """Every pod that some node takes gets a place, every new node takes one (Y1); the price is the best."""
    pods, prices = problem
    objects: list[Fields] = []
    for at, (gpus, cpus) in enumerate(pods):
        if gpus:
            objects.append(claim(f"c{at}", count=gpus))
        objects.append(pod(f"p{at}", claim=f"c{at}" if gpus else "", container=_cpus(str(cpus))))
    here = cluster(*only_offers(), *objects)
    groups = [group(kind, price) for kind, price in prices.items()]
    growth = grown(here, *groups)
    sizes = [SIZES[kind] for kind in prices]
    servable = [(gpus, cpus) for gpus, cpus in pods if any(gpus <= g and cpus <= c for g, c in sizes)]
    assert sum(len(node.pods) for node in growth.nodes) == len(servable)
    assert all(node.pods for node in growth.nodes)
    if servable:
        best = optimum(servable, prices)
        assert best is not None and growth.price(groups) <= best * 1.05


def test_every_pod_of_a_growth_is_where_it_fits():
    """The same nodes, added to a fresh simulation, take the same pods."""
    here = cluster(*only_offers("mig"), *asking(30), *(pod(f"h{at}", template="half-gpu") for at in range(3)))
    growth = grown(here, group("mig", 4.0), group("edge", 1.2))
    again = simulated(here)
    bound: list[PodInfo] = []
    for node in growth.nodes:
        more = template(node.group).named(node.name, node.group)
        again.add_node(more.node, more.slices)
        for one in node.pods:
            assert again.bind(one, node.name) is None
            bound.append(one)
    assert len(bound) == 30  # the three have no claims yet
    assert not growth.helpless and len(growth.blocked) == 3
    assert all("has not been created" in why for why in growth.blocked.values())


@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_as_many_nodes_as_are_needed_and_not_one_more(count: int):
    growth = grown(cluster(*only_offers(), *asking(count)), group("gpu"))
    assert by_group(growth) == {"gpu": -(-count // 8)}
