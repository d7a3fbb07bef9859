"""How much a node has left, and which node is the better one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from allot.api import meta, resource
from allot.scheduler.framework import Tier
from allot.scheduler.node import NodeInfo
from allot.scheduler.plugins.balanced import NodeResourcesBalancedAllocation
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit
from allot.scheduler.pod import PodInfo
from allot.scheduler.settings import Scoring, Strategy
from allot.scheduler.snapshot import Snapshot

from ..objects import node, pod
from .asking import best_first, cluster, rating, reason, rejection, state_of

GPU = "example.com/gpu"
SPREAD = NodeResourcesFit()
PACKED = NodeResourcesFit(Scoring(Strategy.MOST_ALLOCATED))
BALANCED = NodeResourcesBalancedAllocation()


def asking(name: str = "p", **requests: str) -> PodInfo:
    return pod(name, requests=requests)


def gpus(count: int, **more: str) -> PodInfo:
    return pod(requests={GPU: str(count), **more})


def full(one: NodeInfo, **requests: str) -> NodeInfo:
    return one.with_pod(asking(f"on-{one.name}", **requests))


def serving(*names: str) -> Snapshot:
    """A cluster with a device class behind each of these resources."""
    snapshot = cluster()
    for index, name in enumerate(names):
        fields: dict[str, Any] = {"metadata": {"name": f"c{index}"}, "spec": {"extendedResourceName": name}}
        snapshot.put_class(meta.view(resource.DeviceClass, fields))
    return snapshot


# -- fit ------------------------------------------------------------------------------------------


def test_a_pod_fits_where_enough_is_left():
    taken = full(node(), cpu="3")
    assert reason(SPREAD, asking(cpu="1", memory="8Gi"), taken) is None
    assert reason(SPREAD, asking(cpu="1001m"), taken) == "Insufficient cpu"


def test_everything_that_lacks_is_named():
    one = node(allocatable={"pods": "1", "ephemeral-storage": "1Gi", "hugepages-2Mi": "0"})
    assert reason(SPREAD, pod(requests={"cpu": "5", "memory": "9Gi"}), one) == "Insufficient cpu and memory"
    assert reason(SPREAD, pod(requests={"ephemeral-storage": "2Gi"}), one) == "Insufficient ephemeral-storage"
    assert reason(SPREAD, pod(requests={"hugepages-2Mi": "2Mi"}), one) == "Insufficient hugepages-2Mi"
    assert reason(SPREAD, asking(cpu="4"), full(one, cpu="1")) == "Too many pods, Insufficient cpu"


def test_what_an_empty_node_could_hold_may_be_made_room_for():
    """PLUGIN3: eviction is considered only where it can help."""
    busy = full(node(), cpu="4")
    could = rejection(SPREAD, asking(cpu="4"), busy)
    never = rejection(SPREAD, asking(cpu="4", memory="9Gi"), busy)
    assert could is not None
    assert could.resolvable
    assert never is not None
    assert not never.resolvable


def test_a_resource_of_a_device_plugin_is_counted_like_any_other():
    one = node(allocatable={GPU: "2"}).with_pod(pod("other", requests={GPU: "1"}))
    assert reason(SPREAD, gpus(1), one) is None
    assert reason(SPREAD, gpus(2), one) == f"Insufficient {GPU}"


def test_a_resource_that_nobody_offers_is_insufficient():
    found = rejection(SPREAD, gpus(1), node())
    assert found is not None
    assert (found.reason, found.resolvable) == (f"Insufficient {GPU}", False)


def test_what_a_device_class_serves_is_left_to_it_where_the_node_offers_none():
    """KEP-5004: absent and zero are the same, and a device plugin on the node takes precedence."""
    snapshot = serving(GPU)
    assert reason(SPREAD, gpus(9), node(), snapshot) is None
    assert reason(SPREAD, gpus(9), node(allocatable={GPU: "0"}), snapshot) is None
    assert reason(SPREAD, gpus(9), node(allocatable={GPU: "8"}), snapshot) == f"Insufficient {GPU}"
    assert reason(SPREAD, gpus(9, cpu="5"), node(), snapshot) == "Insufficient cpu"


def test_asking_for_none_of_a_resource_is_asking_for_nothing():
    assert reason(SPREAD, gpus(0), node()) is None


def test_pods_that_request_the_same_are_signed_alike():
    def sign(one: PodInfo) -> object:
        return SPREAD.sign(state_of(one), cluster())

    assert sign(asking("a", cpu="1", memory="1Gi")) == sign(asking("b", memory="1024Mi", cpu="1000m"))
    assert sign(asking("a", cpu="1")) != sign(asking("a", cpu="2"))


@given(st.lists(st.integers(1, 4), max_size=6), st.integers(1, 8))
def test_a_node_is_never_overfilled_and_never_refuses_what_it_has(taken: list[int], wanted: int):
    one = node(allocatable={"cpu": "8"})
    for index, cpu in enumerate(taken):
        one = one.with_pod(asking(f"p{index}", cpu=str(cpu)))
    fits = rejection(SPREAD, asking(cpu=str(wanted)), one) is None
    assert fits == (sum(taken) + wanted <= 8)


# -- ratings --------------------------------------------------------------------------------------


def test_spread_prefers_the_emptier_node_and_packed_the_fuller():
    empty, half, busy = node("empty"), full(node("half"), cpu="2"), full(node("busy"), cpu="3", memory="4Gi")
    nodes = [half, busy, empty]
    assert best_first(SPREAD, asking(cpu="500m"), nodes) == ["empty", "half", "busy"]
    assert best_first(PACKED, asking(cpu="500m"), nodes) == ["busy", "half", "empty"]


def test_pods_that_request_nothing_are_spread_too():
    assert best_first(SPREAD, pod(), [full(node("a")), node("b")]) == ["b", "a"]


def test_which_resources_count_and_how_much_can_be_chosen():
    by_gpu = NodeResourcesFit(Scoring(resources=((GPU, 5.0), ("cpu", 1.0))))
    by_cpu = NodeResourcesFit(Scoring(resources=(("cpu", 1.0),)))
    one = node("one", allocatable={GPU: "8"}).with_pod(pod("x", requests={GPU: "6"}))
    other = node("other", allocatable={GPU: "8"}).with_pod(pod("y", requests={"cpu": "3"}))
    assert best_first(by_gpu, gpus(1), [one, other]) == ["other", "one"]
    assert best_first(by_cpu, gpus(1), [one, other]) == ["one", "other"]


def test_a_resource_that_a_node_has_nothing_of_does_not_count():
    by_gpu = NodeResourcesFit(Scoring(resources=((GPU, 1.0),)))
    assert rating(by_gpu, gpus(1), node()) == 0.0


def test_an_extended_resource_that_a_pod_does_not_request_does_not_count():
    by_gpu = NodeResourcesFit(Scoring(resources=((GPU, 9.0), ("cpu", 1.0))))
    used = node("used", allocatable={GPU: "8"}).with_pod(pod("x", requests={GPU: "8"}))
    assert best_first(by_gpu, asking(cpu="1"), [full(node("busy"), cpu="1"), used]) == ["used", "busy"]


def test_a_shape_says_how_full_a_node_should_be():
    shape = ((0.0, 0.0), (50.0, 10.0), (100.0, 5.0))
    half = NodeResourcesFit(
        Scoring(Strategy.REQUESTED_TO_CAPACITY_RATIO, resources=(("cpu", 1.0),), shape=shape)
    )
    empty, quarter, busy = node("empty"), full(node("quarter"), cpu="1"), full(node("busy"), cpu="3")
    nodes = [empty, busy, quarter]
    assert best_first(half, asking(cpu="1"), nodes)[0] == "quarter"
    assert [rating(half, asking(cpu="1"), one) for one in (empty, quarter, busy)] == [50.0, 0.0, 50.0]


def test_a_shape_is_level_before_its_first_and_behind_its_last_point():
    scoring = Scoring(Strategy.REQUESTED_TO_CAPACITY_RATIO, shape=((20.0, 2.0), (80.0, 8.0)))
    assert [round(scoring.score(at), 3) for at in (0.0, 0.2, 0.5, 0.8, 1.0)] == [0.2, 0.2, 0.5, 0.8, 0.8]


def test_balance_prefers_the_node_that_gets_full_evenly():
    cpu_heavy, memory_heavy = full(node("cpu-heavy"), cpu="2"), full(node("memory-heavy"), memory="4Gi")
    assert best_first(BALANCED, asking(cpu="2"), [cpu_heavy, memory_heavy]) == ["memory-heavy", "cpu-heavy"]
    assert rating(BALANCED, asking(cpu="2"), memory_heavy) == 0.0
    assert rating(BALANCED, asking(cpu="2"), cpu_heavy) == 50.0
    assert rating(BALANCED, pod(), cpu_heavy) is None


@given(st.integers(0, 4000), st.integers(0, 8192), st.integers(0, 4000), st.integers(0, 8192))
def test_ratings_stay_on_their_scale(cpu_used: int, memory_used: int, cpu: int, memory: int):
    one = full(node(), cpu=f"{cpu_used}m", memory=f"{memory_used}Mi")
    wanting = asking(cpu=f"{cpu}m", memory=f"{memory}Mi")
    for plugin in (SPREAD, PACKED, BALANCED):
        found = rating(plugin, wanting, one)
        assert found is None or (isinstance(found, float) and 0.0 <= found <= 100.0)
        assert plugin.tier is Tier.RESOURCES
