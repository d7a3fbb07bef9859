"""KEP-4381's simulation, as the autoscaler uses it: what binding, evicting and new nodes do, and what not."""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from allot.api import Object, encode, meta, resource
from allot.autoscaler.groups import GroupEntry
from allot.autoscaler.packing import grow
from allot.autoscaler.templates import groups_of
from allot.planning import Cluster, imagined
from allot.scheduler import NODES, SLICES, SOURCE, Cycle, PodInfo, Simulation
from planning.clusters import NOW, Fields, claim, cluster, hardware, pod

from .test_packing import asking, only_offers, simulated, template

EXTENDED = "example.com/gpu"


def pods(here: Cluster) -> dict[str, PodInfo]:
    return {pod.key.name: pod for pod in here.reading.pods.values()}


def wanting(count: int, name: str = EXTENDED) -> Fields:
    return {"resources": {"requests": {name: str(count)}, "limits": {name: str(count)}}}


def held(simulation: Simulation, name: str) -> list[str]:
    hold = simulation.snapshot.ledger.hold(f"uid-ResourceClaim-{name}")
    return [one.device.name for one in hold.devices] if hold is not None else []


class Recorder:
    """A plugin that writes down when it is asked, and what it is asked with."""

    name = "Recorder"
    events: frozenset[Any] = frozenset()

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []

    def sign(self, state: Any, snapshot: Any) -> str:
        self.calls.append(("sign", state))
        return "same"

    def pre_filter(self, state: Any, snapshot: Any) -> None:
        self.calls.append(("pre_filter", state))

    def reserve(self, state: Any, node: Any, snapshot: Any) -> tuple[()]:
        self.calls.append(("simulate_bind", snapshot))
        return ()

    def unreserve(self, state: Any, snapshot: Any) -> None: ...


def test_plugins_are_asked_in_order_with_states_of_their_own_and_see_the_fork_alone():
    """4381-SIM-03, 4381-SIM-05, AUTO-06: for each pod a fresh state; binding is done to the fork."""
    recorder = Recorder()
    here = cluster(*hardware("gpu", 1), *asking(2))
    simulation = Simulation(here.reading.snapshot, [recorder], NOW)
    for one in here.waiting:
        assert simulation.bind(one, "gpu-0") is None
    names = [name for name, _ in recorder.calls]
    assert names == ["sign", "pre_filter", "simulate_bind", "sign", "simulate_bind"]  # checks are made once
    states = [state for name, state in recorder.calls if name == "sign"]
    assert states[0] is not states[1]
    forks = [snapshot for name, snapshot in recorder.calls if name == "simulate_bind"]
    assert forks == [simulation.snapshot] * 2 and simulation.snapshot is not here.reading.snapshot


def test_the_plugins_of_the_scheduler_are_made_without_a_client():
    """4381-SIM-01, 4381-SIM-02, AUTO-04, AUTO-05: the very objects that a scheduler's cycle is made of."""
    here = cluster(*hardware("gpu", 1), *asking(1))
    simulation = simulated(here)
    (asker,) = here.waiting
    assert simulation.fits(asker, ["gpu-0"]) == "gpu-0"
    assert list(Cycle(simulation._plugins).fitting(asker, NOW, here.reading.snapshot)) == ["gpu-0"]
    assert not any("client" in name for plugin in simulation._plugins for name in vars(plugin))


def test_a_simulation_that_is_dropped_leaves_nothing():
    """4381-SIM-04, 4381-SIM-28: of the first simulation nothing remains in the next one."""
    here = cluster(*hardware("gpu", 1), *asking(1, gpus=8))
    (asker,) = here.waiting
    first = simulated(here)
    assert first.bind(asker, "gpu-0") is None
    second = simulated(here)
    assert held(second, "p0") == [] and second.fits(asker, ["gpu-0"]) == "gpu-0"


def test_asking_leaves_no_trace_and_binding_takes_devices_from_the_others():
    """4381-SIM-07, 4381-SIM-08, 4381-SIM-09, 4381-SIM-11, 4381-SIM-32: five of eight devices
    are left after three."""
    here = cluster(*hardware("gpu", 1), *asking(1, gpus=3), *asking(1, gpus=6, name="big"))
    simulation, known = simulated(here), pods(here)
    for _ in range(3):
        assert simulation.fits(known["big0"], ["gpu-0"]) == "gpu-0"
    assert held(simulation, "big0") == []
    assert simulation.bind(known["p0"], "gpu-0") is None
    assert len(held(simulation, "p0")) == 3
    info = simulation.snapshot.claim_with("uid-ResourceClaim-p0")
    assert info is not None and [one.name for one in info.reserved_for] == ["p0"]
    assert not isinstance(simulation.fits(known["big0"], ["gpu-0"]), str)


def test_a_claim_is_free_when_its_last_user_is_evicted_and_stays_where_it_is_before():
    """4381-SIM-10, 4381-SIM-13, 4381-SIM-14, 4381-SIM-15, 4381-SIM-30."""
    shared = [claim("both", count=8), pod("a", claim="both"), pod("b", claim="both"), pod("none")]
    here = cluster(*hardware("gpu", 2), *shared)
    simulation, known = simulated(here), pods(here)
    assert simulation.bind(known["a"], "gpu-0") is None
    first = held(simulation, "both")
    assert simulation.bind(known["b"], "gpu-0") is None and held(simulation, "both") == first
    info = simulation.snapshot.claim_with("uid-ResourceClaim-both")
    assert info is not None and [one.name for one in info.reserved_for] == ["a", "b"]
    assert not isinstance(simulation.fits(known["none"], ["nowhere"]), str)
    simulation.evict(known["a"])
    assert held(simulation, "both") == first
    assert not isinstance(simulation.fits(known["a"], ["gpu-1"]), str)
    simulation.evict(known["b"])
    assert held(simulation, "both") == []
    assert simulation.bind(known["a"], "gpu-1") is None
    before = simulation.snapshot.mark()
    simulation.evict(known["none"])  # it is nowhere and holds nothing
    assert simulation.snapshot.mark() == before


def test_what_does_not_fit_is_refused_and_changes_nothing():
    """4381-SIM-29."""
    here = cluster(*hardware("gpu", 1), *asking(1, gpus=9))
    simulation = simulated(here)
    before = simulation.snapshot.mark()
    assert simulation.bind(here.waiting[0], "gpu-0") is not None
    assert simulation.snapshot.mark() == before and held(simulation, "p0") == []


def test_neither_claims_nor_ledger_of_the_cluster_notice():
    """4381-SIM-17, 4381-SIM-18, AUTO-40, 5004-CA-04: what a binding writes is done to the fork."""
    here = cluster(*hardware("gpu", 1), *asking(1), pod("x", container=wanting(2)))
    before = here.reading.snapshot.mark()
    simulation = simulated(here)
    assert all(simulation.bind(one, "gpu-0") is None for one in here.waiting)
    assert here.reading.snapshot.mark() == before
    claims = list(here.reading.snapshot.claims())
    assert len(claims) == 1 and claims[0].allocation is None and not claims[0].reserved_for


# -- nodes that are not there -----------------------------------------------------------------------


def group(here: Cluster, entry: GroupEntry) -> Any:
    nodes = {key.name: one for key, one in here.objects[NODES].items()}
    (found,) = groups_of([entry], nodes, list(here.objects[SLICES].values()), here.reading.snapshot)
    return found


def test_a_fictional_node_has_what_its_source_published_and_none_of_its_use():
    """4381-SIM-19, AUTO-07: of a real node, by what its drivers publish."""
    full = claim("all", count=8, devices=[f"gpu-{at}" for at in range(8)], node="gpu-0", users=["x"])
    here = cluster(*hardware("gpu", 1), full, pod("x", claim="all", node="gpu-0"), *asking(2, gpus=8))
    found = group(here, GroupEntry(name="g", source="gpu-0"))
    simulation = simulated(here)
    for name in ("one", "two"):
        more = found.template.named(name, "g")
        assert more.node.metadata.annotations == {SOURCE: "gpu-0"}
        simulation.add_node(more.node, more.slices)
    a, b = here.waiting
    assert not isinstance(simulation.fits(a, ["gpu-0"]), str)
    assert simulation.bind(a, "one") is None
    assert not isinstance(simulation.fits(b, ["one"]), str)
    assert simulation.bind(b, "two") is None


def test_a_node_is_left_out_by_not_asking_for_it():
    """4381-SIM-27: it is where it was, nobody was told, and no answer is about it."""
    here = cluster(*hardware("gpu", 2), *asking(1))
    (asker,) = here.waiting
    simulation = simulated(here)
    assert simulation.fits(asker, ["gpu-0", "gpu-1"]) == "gpu-0"
    assert simulation.fits(asker, ["gpu-1"]) == "gpu-1"
    assert simulation.fits(asker, []) == {}
    assert simulation.snapshot.node("gpu-0") is not None
    assert simulation.fits(asker, ["gpu-0", "gpu-1"]) == "gpu-0"


def test_capacity_that_is_published_under_a_name_that_no_node_has():
    """AUTO-08: made for the group; it serves nobody by itself."""
    made = template("gpu").named("template-of-g", "g")
    here = cluster(*only_offers(), *(one.fresh() for one in made.slices), *asking(1))
    found = group(here, GroupEntry(name="g", source="template-of-g", fleet="plain"))
    growth = grow(simulated(here), here.waiting, [found])
    assert [node.group for node in growth.nodes] == ["g"]


def test_a_source_that_is_nowhere_means_no_capacity_and_is_named():
    here = cluster(*only_offers(), *asking(1))
    found = group(here, GroupEntry(name="g", source="nowhere"))
    growth = grow(simulated(here), here.waiting, [found])
    assert not growth.nodes
    assert next(iter(growth.helpless.values())) == "g: nothing is published under the name nowhere"


def test_the_annotation_gives_a_real_node_nothing():
    """Neither in the scheduler's snapshot nor in a simulation of it."""
    objects = hardware("gpu", 1)
    liar = hardware("plain", 1)[0]
    liar["metadata"] = {**liar["metadata"], "annotations": {SOURCE: "gpu-0"}}
    here = cluster(*objects, liar, *asking(1))
    (asker,) = here.waiting
    assert list(Cycle(simulated(here)._plugins).fitting(asker, NOW, here.reading.snapshot)) == ["gpu-0"]
    assert not isinstance(simulated(here).fits(asker, ["plain-0"]), str)


# -- extended resources -----------------------------------------------------------------------------


def test_the_mapping_of_names_to_classes_can_be_set_in_a_simulation_alone():
    """AUTO-37, AUTO-38, 5004-CA-01."""
    here = cluster(*hardware("gpu", 1), pod("x", container=wanting(1, "other.example.com/gpu")))
    (asker,) = here.waiting
    changed = here.reading.snapshot.fork()
    spec = {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}
    named = {"metadata": {"name": "other"}, "spec": {**spec, "extendedResourceName": "other.example.com/gpu"}}
    changed.put_class(meta.view(resource.DeviceClass, named))
    assert Simulation(changed, simulated(here)._plugins, NOW).fits(asker, ["gpu-0"]) == "gpu-0"
    assert not isinstance(simulated(here).fits(asker, ["gpu-0"]), str)
    assert here.reading.snapshot.extended.class_for("other.example.com/gpu") is None


def test_the_claim_for_extended_resources_is_there_for_later_pods_and_goes_with_its_own():
    """AUTO-39, AUTO-43, 5004-CA-02, 4381-SIM-32: six of eight devices are taken, and free again."""
    here = cluster(*hardware("gpu", 1), *(pod(name, container=wanting(6)) for name in ("a", "b")))
    simulation, known = simulated(here), pods(here)
    assert simulation.bind(known["a"], "gpu-0") is None
    assert not isinstance(simulation.fits(known["b"], ["gpu-0"]), str)
    simulation.evict(known["a"])
    assert simulation.bind(known["b"], "gpu-0") is None


@pytest.mark.parametrize(("kind", "makes"), [("plugin", False), ("gpu", True)])
def test_a_claim_for_extended_resources_is_made_where_slices_serve_them(kind: str, makes: bool):
    """AUTO-41: on a fictional node with a device plugin's count none is made."""
    here = cluster(*only_offers(), pod("x", container=wanting(2)))
    simulation = simulated(here)
    more = template(kind).named("new", "g")
    simulation.add_node(more.node, more.slices)
    (asker,) = here.waiting
    assert simulation.bind(asker, "new") is None
    assert bool(simulation.uses(asker, "new")) is makes


# -- classic claims ---------------------------------------------------------------------------------


def classic(name: str, *, shareable: bool | None = None, users: Iterable[str] = ()) -> Fields:
    made = claim(name)
    made["spec"] = {
        "resourceClassName": "classic",
        "allocationMode": "WaitForFirstConsumer",
        "devices": {"requests": [{"name": "classic", "exactly": {"deviceClassName": "classic", "count": 1}}]},
    }
    if shareable is not None:
        reserved = [{"resource": "pods", "name": one, "uid": f"uid-Pod-{one}"} for one in users]
        allocation = {"resourceHandle": "x", "shareable": shareable}
        made["status"] = {
            "driverName": "classic.example.com",
            "allocation": allocation,
            "reservedFor": reserved,
        }
    return made


def test_a_second_pod_with_a_claim_that_is_not_shareable_fits_nowhere():
    """4381-SIM-12, AUTO-35: two pending pods of one exclusive claim do not both lead to nodes."""
    exclusive = classic("c", shareable=False)
    here = cluster(*hardware("plain", 2), exclusive, pod("a", claim="c"), pod("b", claim="c"))
    simulation, known = simulated(here), pods(here)
    assert simulation.bind(known["a"], "plain-0") is None
    assert not isinstance(simulation.fits(known["b"], ["plain-0", "plain-1"]), str)
    shared = cluster(
        *hardware("plain", 2), classic("c", shareable=True), pod("a", claim="c"), pod("b", claim="c")
    )
    simulation, known = simulated(shared), pods(shared)
    assert simulation.bind(known["a"], "plain-0") is None
    assert simulation.fits(known["b"], ["plain-1"]) == "plain-1"


def test_a_node_is_imagined_without_what_belongs_to_one_node_alone():
    node = Object(encode(hardware("gpu", 1)[0])).changed({"spec": {"unschedulable": True, "providerID": "x"}})
    made = imagined(node.fields, (), "new").node.fields
    assert not {"unschedulable", "providerID", "podCIDR"} & made["spec"].keys()


def cost(work: Callable[[], object]) -> tuple[int, int]:
    """How many functions are called, and how many bytes are in use at most. What others left behind is not
    collected meanwhile."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.collect()
    gc.disable()
    tracemalloc.start()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return calls, most


def test_a_simulation_costs_what_changes_in_it_and_not_what_there_is():
    """4381-SIM-31: the same for 5,000 nodes as for 500, to begin with and for each bind. Counted and not
    timed, since a busy machine would spoil it."""

    def costs(nodes: int) -> list[tuple[int, int]]:
        here = cluster(*hardware("edge", nodes), *asking(2))
        simulated(here)  # what is imported and remembered for good is not counted
        first, second = here.waiting
        begun: list[Simulation] = []
        began = cost(lambda: begun.append(simulated(here)))
        return [
            began,
            cost(lambda: begun[0].bind(first, "edge-0")),
            cost(lambda: begun[0].bind(second, "edge-1")),
        ]

    few, many = costs(500), costs(5_000)
    for (calls, most), (calls_of_many, most_of_many) in zip(few, many, strict=True):
        assert calls_of_many <= calls * 1.1
        assert most_of_many <= most * 1.5 + 20_000
