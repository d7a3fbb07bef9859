"""The cluster as a cycle sees it: SNAP1 to SNAP4, against a model that remembers everything plainly."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation import DeviceId, Features, Taken
from allot.api import Object, encode, resource
from allot.informers import Key
from allot.scheduler.pod import PodInfo
from allot.scheduler.snapshot import Snapshot

from .cluster import DRIVER, claim_spec, slice_of
from .objects import node, pod

KEY = Key("default", "c")


def empty() -> Snapshot:
    return Snapshot(Features())


def claim(
    version: int,
    *,
    uid: str = "u",
    device: str = "",
    name: str = "c",
    users: tuple[str, ...] = (),
) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    status: dict[str, Any] = {"reservedFor": [{"resource": "pods", "name": u, "uid": u} for u in users]}
    if device:
        result = {"request": "gpu", "driver": DRIVER, "pool": "a", "device": device}
        status["allocation"] = {"devices": {"results": [result]}}
    fields = {"metadata": metadata, "spec": claim_spec(), "status": status}
    return Object(msgspec.json.encode(fields), version)


def taken(device: str, pool: str = "a") -> tuple[Taken, ...]:
    return (Taken(DeviceId(DRIVER, pool, device)),)


def gpus(on: str, generation: int = 1, **spec: Any) -> resource.ResourceSlice:
    fields = slice_of(on, [{"name": "gpu-0"}, {"name": "gpu-1"}], **spec)
    fields["spec"]["pool"]["generation"] = generation
    return msgspec.convert(fields, resource.ResourceSlice)


# -- SNAP1: what is accepted and what is decided are one picture ---------------------------------------


def test_devices_in_flight_stay_held_when_the_server_says_that_the_claim_has_none():
    """The watch tells of the finalizer while the allocation is still on its way."""
    snapshot = empty()
    snapshot.put_claim(claim(5))
    snapshot.ledger.fly("u", taken("gpu-0"))
    snapshot.put_claim(claim(6))
    assert not snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))


def test_what_the_server_accepted_replaces_what_was_in_flight():
    """Another scheduler was faster, with another device: that is what the claim has."""
    snapshot = empty()
    snapshot.put_claim(claim(5))
    snapshot.ledger.fly("u", taken("gpu-0"))
    snapshot.put_claim(claim(6, device="gpu-1"))
    assert snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))
    assert not snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-1"))


def test_a_claim_that_was_held_for_before_it_existed_keeps_its_devices_under_its_own_uid():
    snapshot = empty()
    snapshot.ledger.fly("pod/extended-resources", taken("gpu-0"))
    snapshot.rename_flight("pod/extended-resources", "u")
    snapshot.put_claim(claim(5))
    hold = snapshot.ledger.hold("u")
    assert hold is not None and not hold.settled
    assert snapshot.ledger.hold("pod/extended-resources") is None


def test_nothing_is_held_for_a_claim_that_is_known_to_be_gone_when_it_gets_its_uid():
    """SNAP4: the answer to its creation comes after the watch told that it came and went."""
    snapshot = empty()
    snapshot.ledger.fly("pod/extended-resources", taken("gpu-0"))
    snapshot.put_claim(claim(5))
    snapshot.drop_claim(KEY, "u")
    snapshot.rename_flight("pod/extended-resources", "u")
    assert snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))


def test_devices_are_free_when_the_claim_gives_them_back_or_goes():
    for end in (lambda it: it.put_claim(claim(7)), lambda it: it.drop_claim(KEY, "u")):
        snapshot = empty()
        snapshot.put_claim(claim(5, device="gpu-0"))
        end(snapshot)
        assert snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))


# -- SNAP2: moved_since ----------------------------------------------------------------------------------


def moved_by(change: Callable[[Snapshot], object]) -> frozenset[str] | None:
    """Two nodes with two devices each; what moves by the change."""
    snapshot = empty()
    for name in "ab":
        snapshot.put_node(node(name))
        snapshot.inventory.apply(gpus(name))
    mark = snapshot.mark()
    change(snapshot)
    return snapshot.moved_since(mark)


def test_a_heartbeat_moves_nothing():
    assert moved_by(lambda it: it.put_node(node("a"))) == frozenset()


def test_what_concerns_a_node_moves_that_node():
    assert moved_by(lambda it: it.put_node(node("a", labels={"x": "y"}))) == {"a"}
    assert moved_by(lambda it: it.put_node(node("a", unschedulable=True))) == {"a"}
    assert moved_by(lambda it: it.put_node(node("c"))) == {"c"}
    assert moved_by(lambda it: it.drop_node("a")) == {"a"}
    assert moved_by(lambda it: it.place(pod(), "b")) == {"b"}
    assert moved_by(lambda it: it.nominate(pod(), "b")) == {"b"}


def test_devices_that_come_and_go_move_the_nodes_that_reach_them():
    assert moved_by(lambda it: it.ledger.fly("u", taken("gpu-0"))) == {"a"}
    assert moved_by(lambda it: it.put_claim(claim(5, device="gpu-0"))) == {"a"}
    assert moved_by(lambda it: it.inventory.apply(gpus("b", generation=2))) == {"b"}
    anywhere = gpus("fabric", allNodes=True)
    assert moved_by(lambda it: it.inventory.apply(anywhere)) in (None, {"a", "b"})


def test_a_device_that_every_node_reaches_moves_every_node():
    snapshot = empty()
    for name in "ab":
        snapshot.put_node(node(name))
    snapshot.inventory.apply(gpus("fabric", allNodes=True))
    mark = snapshot.mark()
    snapshot.ledger.fly("u", taken("gpu-0", pool="fabric"))
    assert snapshot.moved_since(mark) in (None, {"a", "b"})


def test_a_pod_that_is_bound_as_was_decided_moves_nothing():
    def bound(snapshot: Snapshot) -> None:
        snapshot.place(pod(), "a")
        mark = snapshot.mark()
        snapshot.place(pod(nodeName="a"), "a")
        assert snapshot.moved_since(mark) == frozenset()

    moved_by(bound)


# -- SNAP3: forks ----------------------------------------------------------------------------------------


def test_what_is_done_on_a_fork_is_not_noticed_by_its_parent():
    snapshot = empty()
    for name in "ab":
        snapshot.put_node(node(name))
    snapshot.place(pod(), "a")
    snapshot.put_claim(claim(5, device="gpu-0"))
    fork = snapshot.fork()
    fork.remove("uid-of-p")
    fork.place(pod("q"), "b")
    fork.drop_node("b")
    fork.put_claim(claim(6))
    fork.put_claim(claim(7, uid="v", name="d", device="gpu-1"))
    assert snapshot.place_of("uid-of-p") == "a" and snapshot.place_of("uid-of-q") is None
    assert sorted(snapshot.node_names()) == ["a", "b"]
    found = snapshot.claim(KEY)
    assert found is not None and found.allocation is not None
    assert snapshot.claim_with("v") is None
    assert not snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))
    assert snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-1"))


def test_a_fork_has_what_its_parent_had():
    snapshot = empty()
    snapshot.put_node(node("a"))
    snapshot.place(pod(priority=7), "a")
    fork = snapshot.fork()
    assert fork.lowest_priority == 7
    found = fork.pod("uid-of-p")
    assert found is not None and found.priority == 7


# -- SNAP4: old news -------------------------------------------------------------------------------------


def test_news_that_is_older_than_what_is_known_is_ignored():
    """The answer to a write came before the watch told of what was written before it."""
    snapshot = empty()
    assert snapshot.put_claim(claim(7, device="gpu-0", users=("p",))) is not None
    assert snapshot.put_claim(claim(6)) is None
    found = snapshot.claim(KEY)
    assert found is not None and found.is_reserved_for("p")


def test_a_claim_that_is_gone_does_not_come_back_by_an_answer_that_was_late():
    snapshot = empty()
    snapshot.put_claim(claim(5))
    snapshot.drop_claim(KEY, "u")
    assert snapshot.put_claim(claim(6, device="gpu-0")) is None
    assert snapshot.claim(KEY) is None
    assert snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))


def test_a_claim_that_was_replaced_does_not_come_back_by_an_answer_that_was_late():
    """The watch began anew (410), so nobody said that the first claim of that name is gone."""
    snapshot = empty()
    snapshot.put_claim(claim(5))
    snapshot.put_claim(claim(9, uid="second"))
    assert snapshot.put_claim(claim(7, device="gpu-0")) is None
    found = snapshot.claim(KEY)
    assert found is not None and found.uid == "second"
    assert snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))


def test_that_a_claim_is_gone_says_nothing_about_the_next_of_its_name():
    snapshot = empty()
    snapshot.put_claim(claim(9, uid="second", device="gpu-0"))
    snapshot.drop_claim(KEY, "first")
    found = snapshot.claim(KEY)
    assert found is not None and found.uid == "second"
    assert not snapshot.ledger.is_free(DeviceId(DRIVER, "a", "gpu-0"))


# -- nodes that go and come back ------------------------------------------------------------------------


def test_the_pods_of_a_node_that_comes_back_still_take_their_room():
    snapshot = empty()
    snapshot.put_node(node("a"))
    snapshot.place(pod("p", requests={"cpu": "2"}), "a")
    snapshot.place(pod("q", requests={"cpu": "1"}), "a")
    snapshot.drop_node("a")
    snapshot.remove("uid-of-q")
    snapshot.place(pod("r", requests={"cpu": "1"}), "a")
    snapshot.put_node(node("a"))
    found = snapshot.node("a")
    assert found is not None and sorted(found.pods) == ["uid-of-p", "uid-of-r"]
    assert found.used["cpu"] == 3000


NAMES = st.sampled_from("ab")
PODS = st.sampled_from(["p", "q", "r"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), NAMES, st.booleans()),
        st.tuples(st.just("drop"), NAMES),
        st.tuples(st.just("place"), PODS, NAMES),
        st.tuples(st.just("remove"), PODS),
        st.tuples(st.just("fork")),
    ),
    max_size=20,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_whatever_happens_a_node_has_its_pods_and_no_others(steps):
    """Against a model of two dictionaries; what differs since a mark is named by `moved_since`."""
    snapshot, nodes, places = empty(), dict[str, bool](), dict[str, str]()
    mark, before = snapshot.mark(), dict[str, object]()
    for step in steps:
        match step:
            case ("node", name, cordoned):
                snapshot.put_node(node(name, unschedulable=cordoned))
                nodes[name] = cordoned
            case ("drop", name):
                snapshot.drop_node(name)
                nodes.pop(name, None)
            case ("place", which, name):
                snapshot.place(known(which), name)
                places[which] = name
            case ("remove", which):
                assert snapshot.remove(f"uid-of-{which}") == (places.pop(which, None) is not None)
            case _:
                snapshot = snapshot.fork()
                mark, before = snapshot.mark(), pictures(snapshot)
    assert sorted(snapshot.node_names()) == sorted(nodes)
    for name, cordoned in nodes.items():
        found = snapshot.node(name)
        here = [known(which) for which, where in places.items() if where == name]
        assert found is not None and found.unschedulable == cordoned
        assert sorted(found.pods) == sorted(one.uid for one in here)
        assert found.used.get("cpu", 0) == sum(one.requests.get("cpu", 0) for one in here)
    assert snapshot.lowest_priority == min((known(which).priority for which in places), default=None)
    now = pictures(snapshot)
    changed = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    moved = snapshot.moved_since(mark)
    assert moved is None or changed <= moved


def known(which: str) -> PodInfo:
    number = "pqr".index(which)
    return pod(which, priority=number, requests={"cpu": str(number + 1)})


def pictures(snapshot: Snapshot) -> dict[str, object]:
    return {one.name: (one.unschedulable, sorted(one.pods), dict(one.used)) for one in snapshot.nodes()}


def extended_claim(revision: int, device: str = "gpu-0") -> Object:
    fields = msgspec.json.decode(claim(revision, device=device).stored)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pod", "controller": True}
    fields["metadata"] |= {
        "annotations": {resource.limits.EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
        "ownerReferences": [owner],
    }
    return Object(encode(fields))


@pytest.mark.parametrize("heard_first", [True, False], ids=["heard of first", "answered first"])
def test_a_claim_that_lands_as_it_was_planned_moves_nothing(heard_first: bool):
    """Its devices were taken when it was decided, and have been in nobody else's hands."""

    def land(snapshot: Snapshot) -> None:
        if not heard_first:
            snapshot.rename_flight("pod/extended-resources", "u")
        snapshot.put_claim(extended_claim(5))
        snapshot.rename_flight("pod/extended-resources", "u")  # the answer

    snapshot = empty()
    snapshot.put_node(node("a"))
    snapshot.inventory.apply(gpus("a"))
    snapshot.ledger.fly("pod/extended-resources", taken("gpu-0"))
    mark = snapshot.mark()
    land(snapshot)
    assert snapshot.moved_since(mark) == frozenset()
    hold = snapshot.ledger.hold("u")
    assert hold is not None and hold.settled and snapshot.ledger.hold("pod/extended-resources") is None
    snapshot.ledger.check()


def test_a_claim_that_has_something_else_than_was_planned_is_not_the_flight():
    snapshot = empty()
    snapshot.put_node(node("a"))
    snapshot.inventory.apply(gpus("a"))
    snapshot.ledger.fly("pod/extended-resources", taken("gpu-0"))
    mark = snapshot.mark()
    snapshot.put_claim(extended_claim(5, "gpu-1"))
    assert snapshot.ledger.hold("pod/extended-resources") is not None
    assert snapshot.moved_since(mark) == {"a"}
    snapshot.ledger.check()
