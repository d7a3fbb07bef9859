"""KEP-4381: numeric capacity of nodes that are not there, by the annotation that names its source."""

from allot.api import Object, encode
from allot.autoscaler import Growth, grow
from allot.autoscaler.groups import GroupEntry
from allot.informers import ResourceId
from allot.scheduler import SOURCE, Cycle
from allot.scheduler.parameters import ParameterKind, Standing
from api.numeric.objects import capacity, class_, counter
from planning.clusters import NOW, Cluster, Fields, claim, cluster, pod

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
PARAMETERS = ResourceId(VENDOR, "v1alpha1", "claimparameters")
CLASSIC = {"name": "classic", "exactly": {"deviceClassName": "frob", "count": 1}}


def town(*objects: Fields, pods: int) -> Cluster:
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
    here = cluster(*objects, *made)
    known = here.reading.snapshot.parameters
    known.stand(ParameterKind(VENDOR, "v1alpha1", "ClaimParameters"), Standing(PARAMETERS))
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
