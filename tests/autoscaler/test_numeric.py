"""KEP-4381: numeric capacity of nodes that are not there, by the annotation that names its source, and whom a
decision about numeric claims asks: nobody."""

import asyncio
import random
import socket

import pytest

from allot.api import Gates, Object, encode
from allot.apiserver import identities
from allot.autoscaler import Growth, grow
from allot.autoscaler.deciding import Decider, Decision, Settings, View
from allot.autoscaler.following import Following
from allot.autoscaler.groups import GroupEntry
from allot.autoscaler.memory import Memory, Patience
from allot.autoscaler.templates import groups_of
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client, InProcessTransport
from allot.informers import Informers, ResourceId, Telemetry
from allot.scheduler import SOURCE, Cycle, deciding_plugins
from allot.scheduler import Settings as SchedulerSettings
from allot.scheduler.parameters import ParameterKind, Standing
from api.numeric.objects import DRIVER, capacity, class_, counter
from controllers.world import Record
from planning.clusters import NOW, Cluster, Fields, claim, gathered, pod
from scheduler.cluster import NS, QUICK, tell
from scheduler.cluster import Cluster as Running
from scheduler.numeric import Numeric

from .test_classic import Cards
from .test_packing import by_group, simulated
from .test_simulating import group

API = "resource.k8s.io/v1alpha1"
ALLOCATABLE = {"cpu": "8", "memory": "32Gi", "pods": "110"}


def node(name: str, **annotations: str) -> Fields:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {}, "annotations": annotations},
        "status": {"allocatable": ALLOCATABLE},
    }


def published(under: str, count: int) -> Fields:
    made = capacity(f"{under}-frob", under, instances=[counter("c0", count)])
    return {"apiVersion": API, "kind": "NodeResourceCapacity", **made}


VENDOR = "dra.e2e.example.com"
KIND = ParameterKind(VENDOR, "v1alpha1", "ClaimParameters")
PARAMETERS = ResourceId(VENDOR, "v1alpha1", "claimparameters")
CLASSIC = {"name": "classic", "exactly": {"deviceClassName": "frob", "count": 1}}


def town(*objects: Fields, pods: int, gates: Gates | None = None) -> Cluster:
    """Besides the objects, pods with a claim for two frobnicators each."""
    made: list[Fields] = [{"apiVersion": API, "kind": "ResourceClass", **class_()}]
    for at in range(pods):
        wanted = claim(f"c{at}")
        wanted["spec"] = {
            "resourceClassName": "frob",
            "parametersRef": {"apiGroup": VENDOR, "kind": "ClaimParameters", "name": "two"},
            "allocationMode": "WaitForFirstConsumer",
            "devices": {"requests": [CLASSIC]},
        }
        made += [wanted, pod(f"p{at}", claim=f"c{at}")]
    here = Cluster(gathered([*objects, *made]), gates or Gates())
    known = here.reading.snapshot.parameters
    known.stand(KIND, Standing(PARAMETERS))
    known.put(PARAMETERS, Object(encode({"metadata": {"name": "two", "namespace": "default"}})))
    return here


def entry(name: str, source: str) -> GroupEntry:
    return GroupEntry(name=name, template={"node": node(source)})


def grown(here: Cluster, *entries: GroupEntry) -> Growth:
    return grow(simulated(here), here.waiting, [group(here, one) for one in entries])


def test_the_group_whose_capacity_is_published_grows_and_no_other():
    """AUTO-01, 4381-SIM-20, 4381-SIM-22, 4381-SIM-23: three pods want two each; four are published."""
    here = town(published("made-up", 4), pods=3)
    growth = grown(here, entry("none", "nobody"), entry("frobs", "made-up"))
    assert by_group(growth) == {"frobs": 2} and not growth.helpless


def test_a_new_node_has_what_its_source_published_and_none_of_its_use():
    """4381-SIM-21, 4381-SIM-22: the source is a real node, and a pod has taken all that it has."""
    here = town(node("real"), published("real", 2), pods=3)
    simulation, (first, second, third) = simulated(here), here.waiting
    assert simulation.bind(first, "real") is None
    assert not isinstance(simulation.fits(second, ["real"]), str)
    for name in ("one", "two"):
        more = group(here, entry("g", "real")).template.named(name, "g")
        simulation.add_node(more.node, more.slices)
    assert simulation.bind(second, "one") is None
    assert not isinstance(simulation.fits(third, ["one"]), str)
    assert simulation.bind(third, "two") is None
    simulation.remove_node("two")
    assert not isinstance(simulation.fits(third, ["two"]), str)


def test_an_annotation_that_names_nothing_means_no_capacity():
    """4381-SIM-24: and the group says which name nothing is published under."""
    here = town(pods=1)
    assert not grown(here, entry("g", "nowhere")).nodes
    growth = grow(simulated(here), here.waiting, [group(here, GroupEntry(name="g", source="nowhere"))])
    assert next(iter(growth.helpless.values())) == "g: nothing is published under the name nowhere"


def test_on_nodes_that_are_there_the_annotation_says_nothing():
    """4381-SIM-25, 4381-SIM-26, 4381-SEC-10: neither for the scheduler nor in a simulation."""
    here = town(node("liar", **{SOURCE: "real"}), node("real"), published("real", 2), pods=1)
    (asker,) = here.waiting
    simulation = simulated(here)
    assert list(Cycle(simulation._plugins).fitting(asker, NOW, here.reading.snapshot)) == ["real"]
    assert not isinstance(simulation.fits(asker, ["liar"]), str)
    assert simulation.fits(asker, ["real"]) == "real"


def fitting(here: Cluster) -> list[str]:
    """Where the scheduler would put the pod that waits."""
    (asker,) = here.waiting
    return [*Cycle(simulated(here)._plugins).fitting(asker, NOW, here.reading.snapshot)]


@pytest.mark.parametrize("in_scheduler", [True, False], ids=["scheduler", "not the scheduler"])
@pytest.mark.parametrize("in_autoscaler", [True, False], ids=["autoscaler", "not the autoscaler"])
def test_scheduler_and_autoscaler_each_have_the_models_of_their_own_process(
    in_scheduler: bool, in_autoscaler: bool
):
    """4381-EXT-04, AUTO-13: neither decides with what the other has, and whoever lacks a model says so."""
    gate = "DRANumericModelCounter"
    objects = [node("real"), published("real", 2), published("made-up", 4)]
    scheduler = town(*objects, pods=1, gates=Gates({gate: in_scheduler}))
    autoscaler = town(*objects[1:], pods=1, gates=Gates({gate: in_autoscaler}))
    assert fitting(scheduler) == (["real"] if in_scheduler else [])
    growth = grown(autoscaler, entry("frobs", "made-up"))
    assert by_group(growth) == ({"frobs": 1} if in_autoscaler else {})
    assert [f"{gate} is off" in why for why in growth.blocked.values()] == ([] if in_autoscaler else [True])


def decided(view: View, *entries: GroupEntry, extenders: dict[str, Cards], here: Cluster) -> Decision:
    decider = Decider(Settings(), deciding_plugins(RandomIds(random.Random(0)), SchedulerSettings()))
    groups = [group(here, one) for one in entries]
    memory = Memory(Patience())

    async def whole() -> Decision:
        begun = await decider.begin(view, memory, groups, NOW, 0.0, extenders)
        return decider.decide(view, begun, 0.0)

    return asyncio.run(whole())


def test_a_driver_that_could_be_asked_is_not_asked_about_numeric_claims():
    """4381-ALT-02: not for nodes that are there, nor for those that would be; the group grows."""
    here = town(node("real"), published("real", 2), published("made-up", 4), pods=3)
    snapshot, cycle = here.reading.snapshot, Cycle(simulated(here)._plugins)
    nodes = {"real": Object(encode(node("real")))}
    view = View(snapshot, nodes, [], here.waiting, lambda one: cycle.fitting(one, NOW, snapshot))
    driver = Cards()
    decision = decided(view, entry("frobs", "made-up"), extenders={DRIVER: driver}, here=here)
    assert decision.grow == {"frobs": 1} and not decision.growth.helpless
    assert driver.started == 0


def test_a_decision_asks_nobody_however_many_pods_and_nodes_it_is_about():
    """4381-SCL-08: what it reads is what it follows; neither the server nor anybody else is called for it."""

    async def story(place: Running) -> None:
        here = await Numeric(place).furnish({f"n{at}": 1 for at in range(6)})
        await here.publish("made-up", 4)
        for at in range(5):
            await here.asks(f"p{at}", 2)
        clock, rng = SystemClock(), random.Random(1)
        plugins = deciding_plugins(RandomIds(rng), SchedulerSettings())
        wire = Record(InProcessTransport(place.server.api.handle, identities.ADMIN))
        client, called = Client(wire), []
        async with Informers(client, rng, pace=QUICK) as informers:
            telemetry = Telemetry(Metrics(), clock)
            following = Following(client, informers, plugins, place.gates, clock, telemetry)
            watching = asyncio.ensure_future(following.run())
            try:
                await following.begin()

                async def read() -> bool:
                    view = following.view(clock.now())
                    known = [view.snapshot.parameters.find(KIND, NS, f"p{at}") for at in range(5)]
                    return len(view.waiting) == 5 and all(isinstance(one, Object) for one in known)

                await place.until(read, "pods and parameters")
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(socket.socket, "connect", lambda *asked: called.append(asked))
                    patch.setattr(socket, "getaddrinfo", lambda *asked, **more: called.append(asked))
                    wire.requests.clear()
                    view = following.view(clock.now())
                    groups = groups_of([entry("frobs", "made-up")], view.nodes, view.slices, view.snapshot)
                    decider, memory = Decider(Settings(), plugins), Memory(Patience())
                    begun = await decider.begin(view, memory, groups, clock.now(), 0.0, {DRIVER: Cards()})
                    decision = decider.decide(view, begun, 0.0)
                assert decision.grow == {"frobs": 3}
                assert called == [] and wire.requests == []
            finally:
                watching.cancel()
                await asyncio.wait([watching])
                following.end()

    tell(story, started=False)
