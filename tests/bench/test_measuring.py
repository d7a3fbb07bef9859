"""The harness with a scheduler of a few lines: what it counts is so, and what is wrong it says."""

import asyncio

import pytest

from allot.bench import Fallen, Settings, Stalled, find, measure
from bench.standin import StandIn


def measured(name: str, scheduler=None, nodes: int = 0, steady: bool = False, **settings):
    shape = find(name).on(nodes) if nodes else find(name)
    shape = shape.kept_up() if steady else shape
    return asyncio.run(measure(Settings(shape, **settings), scheduler or StandIn(), lambda text: None))


def test_every_pod_is_bound_and_every_write_counted():
    report = measured("fast")
    figures = report.figures()
    assert report.wrong == []
    assert figures["shape"] == "SchedulingWithResourceClaimTemplate/fast"
    assert (figures["nodes"], figures["pods"], figures["mode"]) == (2, 10, "burst")
    assert figures["pods_per_second"] == pytest.approx(10 / report.seconds, abs=0.1)
    assert 0 < figures["time_to_bind_ms"]["p50"] <= figures["time_to_bind_ms"]["p99"]
    assert figures["writes_per_pod"]["create pods"] == 1
    assert "create resourceclaims" not in figures["writes_per_pod"]  # they are made with the pods
    assert figures["writes_per_pod"]["create pods/binding"] == 1
    assert figures["peak_rss_mb"] > 10
    assert (figures["store"], figures["transport"]) == ("sqlite", "inprocess")
    assert figures["controllers"] == ["resourceclaim-controller"]


@pytest.mark.parametrize("transport", ["socket", "https"])
def test_the_same_with_a_server_in_a_process_of_its_own(transport):
    figures = measured("fast", transport=transport).figures()
    assert figures["pods"] == 10 and figures["wrong"] == 0
    assert figures["transport"] == transport
    assert set(figures["processes"]) == {"bench", "apiserver"}


def test_claims_that_are_there_before_leave_the_rest_to_the_pods():
    """Half of the devices are taken, on nodes by lot; the pods fill the other half to the last one."""
    report = measured("2000pods_200nodes", nodes=3)
    assert len(report.tally.bound_s) == 15
    assert report.wrong == []


def test_pods_that_share_claims_come_before_and_after():
    report = measured("SchedulingWithResourceClaim/2000pods_200nodes", nodes=2)
    assert len(report.tally.bound_s) == 10
    assert report.wrong == []


@pytest.mark.parametrize(
    "name", ["match_fast", "ConsumableCapacity/fast", "PartitionableBacktracking/fast", "ListAttributes/fast"]
)
def test_other_shapes_are_possible(name):
    assert measured(name).wrong == []


def test_a_steady_load_keeps_as_many_pods_as_the_shape_says():
    """A fleet with room for twenty sees more pods than that in a second, and devices come back."""
    report = measured("fast", nodes=2, steady=True, window_s=1.0)
    assert report.figures()["mode"] == "steady"
    assert len(report.tally.bound_s) > 20
    assert report.figures()["writes_per_pod"]["delete pods"] == pytest.approx(1, abs=0.5)
    assert report.wrong == []


def test_a_wrong_allocation_is_found():
    """A device less than was asked for: the server has no objection, the checker has."""
    report = measured(
        "match_fast", StandIn(mistake=lambda allocation: allocation["devices"]["results"].pop())
    )
    assert len(report.wrong) == 2
    assert "D4" in report.wrong[0] and "gpu-4 got no device" in report.wrong[0]


def test_pods_that_stay_unbound_are_named_with_their_condition():
    with pytest.raises(Stalled, match=r"10 pods are still unbound(.|\n)*10 pods: no condition PodScheduled"):
        measured("fast", StandIn(lazy=True), stall_s=0.3)


def test_a_component_that_ends_by_itself_ends_the_measurement():
    async def broken(connect, wanted, ready):
        ready()
        await asyncio.sleep(0.01)
        raise RuntimeError("out of ideas")

    with pytest.raises(Fallen, match=r"scheduler ended by itself.*out of ideas"):
        measured("fast", broken)


def test_a_class_that_no_pod_asks_for_changes_meanwhile_if_that_is_wanted():
    figures = measured("empty_100nodes", nodes=2, window_s=1.0, class_changes_every_s=0.1).figures()
    assert figures["class_changes"] >= 2
    assert figures["pods"] and not figures["wrong"]
    assert measured("fast").figures()["class_changes"] == 0
