"""How each resource enters a snapshot."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import DeviceId, Features
from allot.api import Object, compute
from allot.informers import Added, Change, Deleted, Key, ResourceId, Updated
from allot.numeric import Registry
from allot.numeric.models import COUNTER
from allot.scheduler.framework import Event
from allot.scheduler.mirror import (
    BUDGETS,
    CAPACITY,
    CLAIMS,
    CLASSES,
    COMPUTE_CLASSES,
    COMPUTE_LISTS,
    NODES,
    PODS,
    RESOURCE_CLASSES,
    SLICES,
    SOURCES,
    TAINT_RULES,
    TALKS,
    Answered,
    Happened,
    Mirror,
    News,
    Noticed,
    PodMisread,
    PodTold,
    Stands,
    TalkedOut,
)
from allot.scheduler.snapshot import Snapshot

from .classic import resource_class, scheduling
from .cluster import DRIVER, slice_of
from .test_intake import claim, thing

ODD = {"spec": "nothing that can be read"}
COUNTED = {
    "id": "c0",
    "apiVersion": "counter.dra.config.k8s.io/v1beta1",
    "kind": "Capacity",
    "data": {"count": 2},
}
TAINT = {"key": "k", "effect": "NoSchedule"}
ALLOCATABLE = {"allocatable": {"cpu": "4"}}


class Follower:
    """Somebody who follows the cluster, and is no scheduler."""

    def __init__(self, *names: str) -> None:
        self.snapshot = Snapshot(Features.of(["DeviceTaints"]), models=Registry([COUNTER]))
        self.troubles: list[str] = []
        self._mirror = Mirror(self.snapshot, self, names)

    def misread(self, what: ResourceId, object: Object, why: Exception) -> None:
        self.troubles.append(f"{what.plural} {object.name}")

    def well(self, what: ResourceId, object: Object) -> None:
        self.troubles = [one for one in self.troubles if one != f"{what.plural} {object.name}"]

    def hear(self, what: ResourceId, change: Change) -> list[Happened]:
        return list(self._mirror.hear(News(what, change)))

    def added(self, what: ResourceId, object: Object) -> list[Happened]:
        return self.hear(what, Added(object))

    def standing(self, what: ResourceId, change: Change) -> tuple[Stands, list[Event]]:
        told, *rest = self.hear(what, change)
        assert isinstance(told, PodTold)
        return told.stands, [one.event for one in rest if isinstance(one, Noticed)]


def pod(name: str = "p", version: int = 1, phase: str = "", metadata: Any = None, **parts: Any) -> Object:
    nominated = parts.pop("nominated", "")
    spec = {"containers": [{"name": "m", "resources": {"requests": {"cpu": "1"}}}], **parts}
    status = {"phase": phase, "nominatedNodeName": nominated}
    return thing(name, version, spec=spec, status=status, metadata=metadata or {})


def node(name: str = "n", version: int = 1, said: Any = None, gpus: str = "", **fields: Any) -> Object:
    counted = {**ALLOCATABLE["allocatable"], **({"example.com/gpu": gpus} if gpus else {})}
    own = {"computeResources": [_exported(said)]} if said else {}
    return thing(name, version, namespace="", status={"allocatable": counted, **own}, **fields)


def _exported(devices: list[str], model: str = "k80") -> dict[str, Any]:
    properties = {"model": model}
    name = compute.compute_resource_name("example.com/gpu", properties)
    entry = {"name": name, "resourceName": "example.com/gpu", "properties": properties}
    return {**entry, "devices": devices, "allocatableDevices": devices}


def listed(name: str, version: int = 1, devices: Any = (), called: str = "") -> Object:
    entry = _exported([*devices], "v100")
    entries = [{**entry, "name": called or entry["name"]}]
    return thing(name, version, namespace="", computeResources=entries)


ONE_OF_EACH = {
    PODS: pod(nodeName="a"),
    NODES: node("a"),
    CLAIMS: claim(device="gpu-0"),
    SLICES: thing("s", namespace="", spec=slice_of("a", [{"name": "gpu-0"}])["spec"]),
    CLASSES: thing("gpu", namespace="", spec={}),
    TAINT_RULES: thing("r", namespace="", spec={"taint": TAINT, "deviceSelector": {"driver": DRIVER}}),
    BUDGETS: thing("b", spec={"selector": {}}),
    RESOURCE_CLASSES: resource_class(),
    COMPUTE_CLASSES: thing("gold", namespace="", spec={"resourceName": "example.com/gpu"}),
    COMPUTE_LISTS: listed("a", 1, ["0"]),
    TALKS: scheduling("p", ["a"], "a"),
    CAPACITY: thing("cap", namespace="", nodeName="a", driverName=DRIVER, instances=[COUNTED]),
}


def picture(snapshot: Snapshot) -> dict[str, Any]:
    """What is to be seen in it."""
    devices = (DeviceId(DRIVER, "a", f"gpu-{at}") for at in range(3))
    inventory, nodes = snapshot.inventory, tuple(snapshot.nodes())
    return {
        "nodes": {one.name: (sorted(one.pods), one.used.get("cpu", 0)) for one in nodes},
        "compute": {one.name: (one.compute, dict(one.allocatable)) for one in nodes},
        "exported": dict(snapshot.exported),
        "claims": {one.key: one.object.resource_version for one in snapshot.claims()},
        "held": [sorted(snapshot.ledger.usage(one.pool_id)) for one in devices],
        "devices": {
            one.name: [(it.id, it.taints) for it in inventory.view(one.place).devices] for one in nodes
        },
        "classes": sorted(snapshot.classes),
        "resource classes": sorted(snapshot.resource_classes),
        "compute classes": sorted(snapshot.compute.classes),
        "capacity": {one.name: snapshot.capacity.offers(one.name, snapshot.ledger) for one in nodes},
        "talks": [one.uid for one in (snapshot.talk_at(Key("default", "p")),) if one is not None],
        "unreadable": sorted(snapshot.unreadable),
        "nominated": {name: [one.uid for one in snapshot.prospects.nominees(name)] for name in ("n", "m")},
        "budgets": sorted(key for key, _ in snapshot.prospects.budgets.items()),
    }


@pytest.mark.parametrize("what", SOURCES, ids=lambda what: what.plural)
def test_what_comes_is_seen_and_what_goes_is_not(what: ResourceId):
    follower, empty = Follower(), Follower()
    for other in (NODES, SLICES):
        if other != what:
            follower.added(other, ONE_OF_EACH[other])
            empty.added(other, ONE_OF_EACH[other])
    before = follower.snapshot.mark()
    follower.added(what, ONE_OF_EACH[what])
    assert picture(follower.snapshot) != picture(empty.snapshot)
    if what not in (CLASSES, RESOURCE_CLASSES, COMPUTE_CLASSES, TALKS, BUDGETS):
        assert follower.snapshot.moved_since(before) != frozenset()
    follower.hear(what, Deleted(ONE_OF_EACH[what]))
    assert picture(follower.snapshot) == picture(empty.snapshot)


@pytest.mark.parametrize("what", SOURCES, ids=lambda what: what.plural)
def test_what_cannot_be_read_is_told_until_it_can_or_is_gone(what: ResourceId):
    """MIRROR1."""
    follower, namespace = Follower(), "default" if what.namespaced else ""
    mistyped = {
        NODES: {"status": {"allocatable": {"cpu": "much"}}},
        RESOURCE_CLASSES: {"driverName": 1},
        CAPACITY: {"instances": 1},
        COMPUTE_LISTS: {"computeResources": [{"name": "x", "resourceName": "example.com/gpu"}]},
    }
    odd = mistyped.get(what, ODD)
    follower.added(what, thing("x", 1, namespace, **odd))
    assert follower.troubles == [f"{what.plural} x"]
    follower.hear(what, Deleted(thing("x", 1, namespace, **odd)))
    assert not follower.troubles


def test_what_forbids_stays_in_force_as_it_was_understood_last():
    follower = Follower()
    follower.added(BUDGETS, ONE_OF_EACH[BUDGETS])
    follower.hear(BUDGETS, Updated(ONE_OF_EACH[BUDGETS], thing("b", 2, spec={"selector": "all"})))
    assert follower.snapshot.prospects.budgets.get(Key("default", "b")) is not None


def test_devices_of_a_claim_that_cannot_be_read_stay_held():
    """D1."""
    follower = Follower()
    follower.added(CLAIMS, claim(device="gpu-0"))
    happened = follower.added(CLAIMS, thing("c", 2, **ODD))
    assert happened == [Noticed(Event.CLAIM_CHANGED, Key("default", "c"))]
    assert follower.snapshot.ledger.hold("uid-of-c") is not None
    assert follower.snapshot.claim(Key("default", "c")) is None


# -- what happened --------------------------------------------------------------------------------


def test_a_node_that_changes_in_nothing_that_matters_is_no_news():
    follower = Follower()
    assert follower.added(NODES, node()) == [Noticed(Event.NODE_ADDED)]
    beat = thing("n", 2, namespace="", status={**ALLOCATABLE, "conditions": [{"type": "Ready"}]})
    assert follower.hear(NODES, Updated(node(), beat)) == []
    labelled = node(version=3, metadata={"labels": {"zone": "a"}})
    assert follower.hear(NODES, Updated(beat, labelled)) == [Noticed(Event.NODE_CHANGED)]


def test_what_is_listed_of_a_node_changes_it():
    """14-OPEN-25: whoever waits for such a device is tried again. The same said again is no news."""
    follower = Follower()
    follower.added(NODES, node())
    first, more = listed("n", 1, ["0"]), listed("n", 3, ["0", "1"])
    assert follower.added(COMPUTE_LISTS, first) == [Noticed(Event.NODE_CHANGED)]
    assert follower.hear(COMPUTE_LISTS, Updated(first, listed("n", 2, ["0"]))) == []
    assert follower.hear(COMPUTE_LISTS, Updated(first, more)) == [Noticed(Event.NODE_CHANGED)]
    assert follower.hear(COMPUTE_LISTS, Deleted(more)) == [Noticed(Event.NODE_CHANGED)]


def test_a_claim_that_gives_back_says_more_than_that_it_changed():
    follower, key = Follower(), Key("default", "c")
    assert follower.added(CLAIMS, claim()) == [Noticed(Event.CLAIM_ADDED, key)]
    assert follower.hear(CLAIMS, Updated(claim(), claim(version=2, device="gpu-0"))) == [
        Noticed(Event.CLAIM_CHANGED, key)
    ]
    freed = [Noticed(Event.DEVICES_FREED), Noticed(Event.CLAIM_CHANGED, key)]
    assert follower.hear(CLAIMS, Updated(claim(), claim(version=3))) == freed
    assert follower.hear(CLAIMS, Updated(claim(), claim(version=2))) == []  # SNAP4


def test_how_a_pod_stands():
    follower = Follower()
    waits = pod()
    assert follower.standing(PODS, Added(waits)) == (Stands.WAITING, [])
    bound = pod(version=2, nodeName="n")
    assert follower.standing(PODS, Updated(waits, bound)) == (Stands.BOUND, [])
    assert follower.standing(PODS, Updated(bound, waits)) == (Stands.ON_ITS_WAY, [])
    ended = pod(version=3, nodeName="n", phase="Succeeded")
    assert follower.standing(PODS, Updated(bound, ended)) == (Stands.OVER, [Event.POD_GONE])
    assert follower.standing(PODS, Deleted(ended)) == (Stands.OVER, [])
    going = pod("q", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert follower.standing(PODS, Added(going)) == (Stands.OVER, [])


def test_a_pod_that_cannot_be_read_is_told_by_its_uid_and_stays_where_it_is():
    follower = Follower()
    follower.added(NODES, node())
    follower.added(PODS, pod(nodeName="n"))
    assert follower.added(PODS, thing("p", 2, **ODD)) == [PodMisread("uid-of-p")]
    assert follower.snapshot.place_of("uid-of-p") == "n"
    gone = follower.hear(PODS, Deleted(thing("p", 2, **ODD)))
    assert gone == [PodMisread("uid-of-p"), Noticed(Event.POD_GONE)]


def test_room_is_kept_where_a_scheduler_says_so_and_freed_when_it_does_not():
    follower, freed = Follower(), [Event.DEVICES_FREED, Event.POD_GONE]
    assert follower.standing(PODS, Added(pod(nominated="n"))) == (Stands.WAITING, [])
    assert follower.snapshot.prospects.nomination("uid-of-p") == "n"
    assert follower.standing(PODS, Added(pod(version=2, nominated="m"))) == (Stands.WAITING, freed)
    assert follower.snapshot.prospects.nomination("uid-of-p") == "m"
    assert follower.standing(PODS, Added(pod(version=3, nodeName="m"))) == (Stands.BOUND, freed)
    assert follower.snapshot.prospects.nomination("uid-of-p") is None


def test_room_for_pods_of_ones_own_is_not_kept_because_the_server_says_so():
    """What was decided since is newer."""
    follower = Follower("default-scheduler")
    follower.added(PODS, pod(nominated="n"))
    follower.added(PODS, pod("q", nominated="n", schedulerName="another"))
    nominated = {name: follower.snapshot.prospects.nomination(f"uid-of-{name}") for name in ("p", "q")}
    assert nominated == {"p": None, "q": "n"}


# -- to follow is to read -------------------------------------------------------------------------

STATES: dict[tuple[ResourceId, str], list[dict[str, Any]]] = {
    (PODS, "p"): [{}, {"nominated": "n"}, {"nodeName": "n"}, {"nodeName": "n", "phase": "Failed"}],
    (PODS, "q"): [{"nodeName": "m"}, {"nominated": "m"}, {"nodeName": "m", "phase": "Running"}],
    (CLAIMS, "c"): [{}, {"device": "gpu-0"}, {"device": "gpu-1"}],
    (CLAIMS, "d"): [{"device": "gpu-2"}, {}],
    (NODES, "n"): [
        {},
        {"metadata": {"labels": {"zone": "a"}}},
        {"said": ["0"]},
        {"gpus": "2"},
        {"gpus": "0"},
    ],
    (NODES, "m"): [{}],
    (COMPUTE_LISTS, "n"): [{}, {"devices": ["0", "1"]}, {"called": "example.com/gpu-0"}],
}
MAKE = {PODS: pod, CLAIMS: claim, NODES: node, COMPUTE_LISTS: listed}
SUBJECTS = sorted(STATES, key=str)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[tuple[ResourceId, str], Object | None]]:
    """Objects that come, change and go, each in steps that a server would allow: a pod keeps its node."""
    history, bound = [], set()
    born: dict[tuple[ResourceId, str], int] = {}
    for version in range(1, draw(st.integers(1, 12)) + 1):
        subject = draw(st.sampled_from(SUBJECTS))
        what, name = subject
        states = STATES[subject]
        if subject in bound:
            states = [one for one in states if "nodeName" in one]
        state = draw(st.sampled_from([*states, None]))
        if state is None:
            bound.discard(subject)
            born.pop(subject, None)
            history.append((subject, None))
            continue
        if "nodeName" in state:
            bound.add(subject)
        made = MAKE[what](name, version, **state)
        uid = f"uid-of-{name}-{born.setdefault(subject, version)}"
        history.append((subject, made.changed({"metadata": {"uid": uid}})))
    return history


def followed(history: Iterable[tuple[tuple[ResourceId, str], Object | None]]) -> Snapshot:
    follower, there = Follower(), {}
    for subject, object in history:
        before = there.pop(subject, None)
        if object is not None:
            there[subject] = object
            follower.hear(subject[0], Updated(before, object) if before is not None else Added(object))
        elif before is not None:
            follower.hear(subject[0], Deleted(before))
    return follower.snapshot


@settings(deadline=None)
@given(histories())
def test_whoever_followed_sees_what_somebody_sees_who_reads_it_now(history):
    last = dict(history)
    now = [(subject, object) for subject, object in last.items() if object is not None]
    assert picture(followed(history)) == picture(followed(now))


# -- talks with drivers ---------------------------------------------------------------------------


def test_what_a_driver_says_is_heard_by_the_pod_that_it_is_about():
    """3063-SCHED-02, X-28."""
    follower = Follower()
    assert follower.added(TALKS, scheduling("p", ["a"])) == [Answered("uid-of-p")]
    said = scheduling("p", ["a"], answers={"c": ["a"]}, version=2)
    assert follower.hear(TALKS, Updated(said, said)) == [Answered("uid-of-p")]
    again = scheduling("p", ["a"], "a", answers={"c": ["a"]}, version=3)
    assert follower.hear(TALKS, Updated(again, again)) == []  # only the scheduler wrote something
    assert follower.hear(TALKS, Deleted(again)) == [Answered("uid-of-p")]


def test_a_talk_whose_pod_of_ours_has_its_node_is_over_whichever_is_told_first():
    """P5."""
    for scheduler, is_ours in (("default-scheduler", True), ("another", False)):
        bound = pod("p", nodeName="a", schedulerName=scheduler, metadata={"uid": "uid-of-p"})
        first, second = Follower("default-scheduler"), Follower("default-scheduler")
        first.added(TALKS, scheduling("p"))
        assert (TalkedOut(Key("default", "p")) in first.added(PODS, bound)) == is_ours
        second.added(PODS, bound)
        assert (TalkedOut(Key("default", "p")) in second.added(TALKS, scheduling("p"))) == is_ours


# -- what nodes have, said beside them ------------------------------------------------------------


def test_what_a_node_says_itself_counts_and_not_its_list():
    """LISTED1, 14-OPEN-25."""
    follower = Follower()
    follower.added(COMPUTE_LISTS, listed("n", devices=["0", "1"]))
    follower.added(NODES, node("n"))
    known = follower.snapshot.node("n")
    assert known is not None
    assert [(one.properties, one.count) for one in known.compute] == [({"model": "v100"}, 2)]
    assert known.allocatable["example.com/gpu"] == 2
    follower.hear(NODES, Updated(node("n"), node("n", 2, said=["0"])))
    known = follower.snapshot.node("n")
    assert known is not None
    assert [(one.properties, one.count) for one in known.compute] == [({"model": "k80"}, 1)]


def test_what_a_node_counts_is_not_had_from_its_list_as_well():
    """LISTED2, 14-NODE-07: the agent writes the one and then the other."""
    follower = Follower()
    follower.added(NODES, node("n", gpus="2"))
    follower.added(COMPUTE_LISTS, listed("n", devices=["0", "1"]))
    known = follower.snapshot.node("n")
    assert known is not None
    assert known.compute == ()
    assert known.allocatable["example.com/gpu"] == 2
    follower.hear(NODES, Updated(node("n", gpus="2"), node("n", 2, gpus="0")))
    known = follower.snapshot.node("n")
    assert known is not None
    assert [one.count for one in known.compute] == [2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "example.com/gpu-0123456789abcdef"},
        {"allocatableDevices": ["9"]},
        {"devices": ["0", "0"]},
        {"properties": {"bad key!": "x"}},
    ],
)
def test_a_list_that_no_server_of_ours_would_take_counts_for_nobody(wrong: dict[str, Any]):
    """14-NODE-13: by a wrong name a node could say what devices of that name are like on all others."""
    follower = Follower()
    follower.added(NODES, node("n"))
    good = listed("n", devices=["0"])
    follower.added(COMPUTE_LISTS, good)
    entries = [{**one, **wrong} for one in good.fields["computeResources"]]
    follower.hear(COMPUTE_LISTS, Updated(good, good.changed({"computeResources": entries})))
    known = follower.snapshot.node("n")
    assert known is not None
    assert known.compute == ()
    assert follower.troubles == ["nodecomputeresources n"]


@pytest.mark.parametrize(
    "spec",
    [
        {"resourceName": "example.com/gpu", "resourceSelector": [{}]},
        {"resourceName": "example.com/gpu", "resourceSelector": [{"matchExpressions": []}]},
        {"resourceName": "cpu"},
        {},
        {"members": [{"resourceName": "memory", "amount": "much"}, {"resourceName": "example.com/gpu"}]},
    ],
)
def test_a_class_that_no_server_of_ours_would_take_is_used_by_nobody(spec: dict[str, Any]):
    """14-API-06, 14-OPEN-25: what another server has stored; half a selector would select everything."""
    follower = Follower()
    follower.added(COMPUTE_CLASSES, thing("gold", namespace="", spec={"resourceName": "example.com/gpu"}))
    follower.added(COMPUTE_CLASSES, thing("gold", 2, namespace="", spec=spec))
    assert "gold" not in follower.snapshot.compute.classes
    assert follower.troubles == ["resourceclasses gold"]
