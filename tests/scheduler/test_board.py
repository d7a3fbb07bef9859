"""What is known of every node: kept, it is what asking everybody afresh would give."""

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from allot.allocation import DeviceId, Features, Taken
from allot.api import Object, meta, resource
from allot.base import RandomIds
from allot.scheduler import board, plugins
from allot.scheduler.board import Board, Boards
from allot.scheduler.cycle import Cycle, Placed
from allot.scheduler.framework import CycleState, Rejection, Signature, SignPlugin, Tier
from allot.scheduler.pod import PodInfo
from allot.scheduler.settings import Settings
from allot.scheduler.snapshot import Snapshot

from .cluster import DRIVER, claim_spec, slice_of
from .objects import node, pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FULL = Rejection("Fit", "full", resolvable=True)
FEATURES = Features.of(["PrioritizedList", "AdminAccess"])


def finished(board: Board, snapshot: Snapshot) -> list[str]:
    for _ in board.refresh(snapshot):
        pass
    return [rank.node for rank in board.order]


def few(snapshot_nodes: dict[str, int]) -> tuple[Snapshot, Board]:
    """Nodes with so many pods, of which the emptiest is best and three is too many."""
    snapshot = Snapshot(FEATURES)
    for name, count in snapshot_nodes.items():
        snapshot.put_node(node(name))
        for at in range(count):
            snapshot.place(pod(f"{name}-{at}"), name)
    checks = [lambda it: FULL if len(it.pods) >= 3 else None]
    return snapshot, Board(checks, {Tier.RESOURCES: [lambda it: float(len(it.pods))]})


def test_the_best_node_comes_first_and_those_that_say_no_are_counted_by_reason():
    snapshot, board = few({"a": 2, "b": 0, "c": 3, "d": 1, "e": 3})
    assert finished(board, snapshot) == ["b", "d", "a"]
    assert board.reasons == {FULL: 2}
    assert set(board.rejections) == {"c", "e"}


def test_equal_nodes_are_taken_in_the_order_of_their_names():
    snapshot, board = few({"b": 1, "c": 0, "a": 1})
    assert finished(board, snapshot) == ["c", "a", "b"]


def test_only_nodes_that_moved_are_looked_at_again():
    """BOARD2: work follows what changed, not the number of nodes."""
    looked: list[str] = []
    snapshot, _ = few(dict.fromkeys("abcdef", 0))

    def check(it):
        looked.append(it.name)

    board = Board([check], {})
    finished(board, snapshot)
    looked.clear()
    snapshot.place(pod("new"), "c")
    finished(board, snapshot)
    assert looked == ["c"]


def test_a_heartbeat_moves_nothing():
    """SNAP2: the same labels, taints and capacity are the same node, whatever else its status says."""
    snapshot, board = few({"a": 0})
    finished(board, snapshot)
    before = snapshot.mark()
    assert snapshot.put_node(node("a")) is False
    assert snapshot.moved_since(before) == frozenset()


def test_what_was_decided_and_is_then_confirmed_moves_nothing():
    """SNAP2: the binding comes back from the watch and changes no answer."""
    snapshot, _ = few({"a": 0})
    snapshot.place(pod("new"), "a")
    before = snapshot.mark()
    snapshot.place(pod("new", status={"phase": "Running"}), "a")
    assert snapshot.moved_since(before) == frozenset()


def test_a_node_that_is_gone_is_off_the_board():
    snapshot, board = few({"a": 0, "b": 3})
    finished(board, snapshot)
    snapshot.drop_node("a")
    snapshot.drop_node("b")
    assert finished(board, snapshot) == []
    assert not board.reasons


def test_a_node_that_comes_back_has_the_pods_that_it_had():
    snapshot, board = few({"a": 3})
    snapshot.drop_node("a")
    snapshot.put_node(node("a"))
    assert finished(board, snapshot) == []


def test_a_board_for_few_nodes_asks_no_others():
    snapshot, _ = few({"a": 0, "b": 0, "c": 0})
    board = Board([], {}, frozenset({"b", "gone"}))
    assert finished(board, snapshot) == ["b"]


def test_a_long_refresh_pauses():
    """BOARD3."""
    snapshot, board = few({f"n{at:03}": 0 for at in range(100)})
    assert sum(1 for _ in board.refresh(snapshot)) == 3
    assert len(board.order) == 100


@pytest.mark.parametrize("nodes", [5, 100])
def test_a_refresh_pauses_after_every_node_that_was_too_hard_to_decide(nodes):
    """BOARD3: thirty such nodes in a row, each with all the steps it may have, held all for seconds."""
    snapshot = Snapshot(FEATURES)
    for at in range(nodes):
        snapshot.put_node(node(f"n{at}"))
    hard = Rejection("Devices", "could not be decided", undecided=True)
    looked: list[str] = []
    board = Board([lambda it: looked.append(it.name) or hard], {})

    seen_at_pauses = [len(looked) for _ in board.refresh(snapshot)]

    assert seen_at_pauses == list(range(1, nodes + 1))


def signed(parts: str, **classes: int) -> Signature:
    return Signature((parts,), tuple(classes.items()))


def test_a_board_is_good_for_the_classes_that_it_was_made_from():
    boards, first, second = Boards(), Board([], {}), Board([], {})
    boards.keep(signed("x", gpu=1), first)
    assert boards.get(signed("x", gpu=1)) is first
    assert boards.get(signed("x", gpu=2)) is None
    boards.keep(signed("x", gpu=2), second)
    assert boards.get(signed("x", gpu=2)) is second
    assert len(boards) == 1  # the one that nobody will ask for again is not kept


def test_the_boards_that_were_asked_for_last_are_kept(monkeypatch):
    monkeypatch.setattr(board, "BOARDS_MAX", 2)
    boards, made = Boards(), {name: Board([], {}) for name in "abc"}
    for name in "ab":
        boards.keep(signed(name), made[name])
    boards.get(signed("a"))
    boards.keep(signed("c"), made["c"])
    assert [boards.get(signed(name)) for name in "abc"] == [made["a"], None, made["c"]]


# -- classes that change -----------------------------------------------------------------------------


class Kept:
    """A cycle on two nodes with two devices each, and what becomes of its boards."""

    def __init__(self) -> None:
        self.snapshot = Snapshot(FEATURES)
        for name in ("a", "b"):
            self.snapshot.put_node(node(name))
            self.snapshot.inventory.apply(slice_view(name, 2))
        for name in ("gpu", "other"):
            self.snapshot.put_class(device_class(name))
        self.cycle = Cycle(plugins.default(RandomIds(random.Random(1)), Settings()))
        self.count = 0

    def board(self, of: str = "", **requests: str) -> Board:
        """The board that decides about such a pod now."""
        self.count += 1
        parts = {}
        if of:
            self.snapshot.put_claim(claim(f"c{self.count}", self.count, 1, of))
            parts = {"resourceClaims": [{"name": "x", "resourceClaimName": f"c{self.count}"}]}
        state = CycleState(pod(f"p{self.count}", requests=requests, **parts), NOW)
        signature = self.cycle.sign(state, self.snapshot)
        assert isinstance(signature, Signature)
        return self.cycle._board(state, signature, self.snapshot)


def test_a_class_that_changes_leaves_the_boards_of_others_alone():
    """Every board was made anew, for every pod of the cluster."""
    kept = Kept()
    plain, gpu, other = kept.board(cpu="1"), kept.board("gpu"), kept.board("other")
    kept.snapshot.put_class(device_class("other", 1))
    kept.snapshot.put_class(device_class("third"))
    assert kept.board(cpu="1") is plain
    assert kept.board("gpu") is gpu
    assert kept.board("other") is not other
    kept.snapshot.drop_class("gpu")
    assert kept.board("gpu") is not gpu
    assert kept.board(cpu="1") is plain


def test_a_class_that_says_what_it_said_changes_nothing():
    kept = Kept()
    gpu = kept.board("gpu")
    told_again = msgspec.structs.replace(
        device_class("gpu"), metadata=meta.ObjectMeta(name="gpu", labels={"x": "y"}, resource_version="9")
    )
    kept.snapshot.put_class(told_again)
    assert kept.board("gpu") is gpu


def test_who_requests_an_extended_resource_depends_on_the_class_behind_it():
    """Also on there being none, and on one of several that takes it over."""
    kept = Kept()
    nobody, plain = kept.board(**{EXTENDED: "1"}), kept.board(cpu="1")
    kept.snapshot.put_class(device_class("gpu", serves=EXTENDED))
    served = kept.board(**{EXTENDED: "1"})
    assert served is not nobody
    kept.snapshot.put_class(device_class("other", 1))
    assert kept.board(**{EXTENDED: "1"}) is served
    kept.snapshot.put_class(device_class("gpu", 1, serves=EXTENDED))
    assert kept.board(**{EXTENDED: "1"}) is not served
    assert kept.board(cpu="1") is plain


@pytest.mark.parametrize("name", ["NodeResourcesFit", "NodeResourcesBalancedAllocation", "DynamicResources"])
def test_each_plugin_names_what_its_own_answers_are_made_from(name: str):
    """None of them relies on another to do so."""
    kept = Kept()
    kept.snapshot.put_class(device_class("gpu", serves=EXTENDED))
    state = CycleState(pod(requests={EXTENDED: "1"}), NOW)
    deciding = {one.name: one for one in plugins.default(RandomIds(random.Random(1)), Settings())}
    for one in (deciding["ResourceClaims"], deciding[name]):
        assert isinstance(one, SignPlugin)
        one.sign(state, kept.snapshot)
    assert state.classes == {EXTENDED: kept.snapshot.classes.revision(EXTENDED)} != {EXTENDED: 0}


def test_who_waits_together_goes_on_doing_so_when_a_class_changes():
    """A class that changes every second would otherwise have each of a thousand pods tried every second."""
    kept = Kept()
    groups = set()
    for variant in (0, 1):
        kept.snapshot.put_class(device_class("gpu", variant))
        kept.count += 1
        kept.snapshot.put_claim(claim(f"c{kept.count}", kept.count, 9, "gpu"))
        used = [{"name": "x", "resourceClaimName": f"c{kept.count}"}]
        outcome = Keeping.decide(kept.cycle, pod(f"p{kept.count}", resourceClaims=used), kept.snapshot)
        groups.add(outcome.group)
    assert len(groups) == 1


# -- the whole cycle on a changing cluster --------------------------------------------------------


SELECTORS = (f'device.driver == "{DRIVER}"', f'device.driver == "{DRIVER}" && true', "false")
EXTENDED = "example.com/gpu"


def device_class(name: str, variant: int = 0, serves: str = "") -> resource.DeviceClass:
    fields = {
        "metadata": {"name": name},
        "spec": {
            "selectors": [{"cel": {"expression": SELECTORS[variant]}}],
            "extendedResourceName": serves or None,
        },
    }
    return msgspec.convert(fields, resource.DeviceClass)


def claim(name: str, version: int, count: int, of: str = "gpu") -> Object:
    fields = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "resourceVersion": str(version),
        },
        "spec": claim_spec(count, of),
    }
    return Object(msgspec.json.encode(fields))


def slice_view(name: str, devices: int) -> resource.ResourceSlice:
    fields = slice_of(name, [{"name": f"gpu-{at}"} for at in range(devices)])
    return msgspec.convert(fields, resource.ResourceSlice)


NODES = ("a", "b", "c", "d")


class Keeping(RuleBasedStateMachine):
    """One cycle keeps its boards through everything; another is made for every question."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = Snapshot(FEATURES)
        self.snapshot.put_class(device_class("gpu"))
        for name in NODES:  # enough room from the start: most answers must be a node, or little is shown
            self.snapshot.put_node(node(name, allocatable={"cpu": "8"}, labels={"name": name}))
            self.snapshot.inventory.apply(slice_view(name, 1))
        self.kept = self.cycle()
        self.count = 0
        self.placed: list[Placed] = []
        self.others: list[str] = []

    @staticmethod
    def cycle() -> Cycle:
        return Cycle(plugins.default(RandomIds(random.Random(1)), Settings()))

    @rule(
        name=st.sampled_from(NODES),
        cpu=st.sampled_from("248"),
        cordoned=st.sampled_from([False, False, True]),
    )
    def node_changes(self, name: str, cpu: str, cordoned: bool) -> None:
        self.snapshot.put_node(
            node(name, allocatable={"cpu": cpu}, labels={"name": name}, unschedulable=cordoned)
        )

    @rule(name=st.sampled_from(NODES))
    def node_goes(self, name: str) -> None:
        self.snapshot.drop_node(name)

    @rule(name=st.sampled_from(NODES), devices=st.integers(0, 3))
    def devices_change(self, name: str, devices: int) -> None:
        self.snapshot.inventory.apply(slice_view(name, devices))

    @rule(name=st.sampled_from(NODES), device=st.sampled_from([0, 0, 0, 1]))
    def another_takes(self, name: str, device: int) -> None:
        self.count += 1
        device_id = DeviceId(DRIVER, name, f"gpu-{device}")
        if self.snapshot.ledger.is_free(device_id):
            self.others.append(f"other-{self.count}")
            self.snapshot.ledger.settle(self.others[-1], [Taken(device_id)])

    @rule(spared=st.sampled_from(NODES))
    def others_take_nearly_all(self, spared: str) -> None:
        """Without scarcity a board that sleeps is seldom found out."""
        for name in NODES:
            if name != spared:
                self.another_takes(name, 0)

    @rule()
    def others_leave(self) -> None:
        while self.others:
            self.snapshot.ledger.release(self.others.pop())

    @rule(data=st.data())
    def another_gives_back(self, data: st.DataObject) -> None:
        if self.others:
            self.snapshot.ledger.release(self.others.pop(data.draw(st.integers(0, len(self.others) - 1))))

    @rule(
        name=st.sampled_from(["gpu", "other"]),
        variant=st.sampled_from([0, 0, 0, 1, 2]),
        serves=st.sampled_from(["", EXTENDED]),
    )
    def class_changes(self, name: str, variant: int, serves: str) -> None:
        self.snapshot.put_class(device_class(name, variant, serves))

    @rule()
    def class_goes(self) -> None:
        self.snapshot.drop_class("other")

    @rule(count=st.integers(1, 2))
    def pod_with_an_extended_resource_comes(self, count: int) -> None:
        self.count += 1
        self.tried(pod(f"p{self.count}", requests={EXTENDED: str(count)}))

    @rule(
        cpu=st.sampled_from("112"),
        devices=st.sampled_from([0, 1, 1, 1, 2]),
        of=st.sampled_from(["gpu", "gpu", "other"]),
    )
    def pod_comes(self, cpu: str, devices: int, of: str) -> None:
        self.count += 1
        name = f"p{self.count}"
        parts = {}
        if devices:
            self.snapshot.put_claim(claim(f"c{self.count}", self.count, devices, of))
            parts = {"resourceClaims": [{"name": "gpu", "resourceClaimName": f"c{self.count}"}]}
        self.tried(pod(name, requests={"cpu": cpu}, **parts))

    @rule(where=st.sampled_from(["", *NODES]))
    def pod_with_an_allocated_claim_comes(self, where: str) -> None:
        """Its devices, of somewhere else, can be used from one node or from all."""
        self.count += 1
        result = {"request": "gpu", "driver": "elsewhere", "pool": "p", "device": f"d{self.count}"}
        allocation: dict[str, Any] = {"devices": {"results": [result]}}
        if where:
            term = {"matchExpressions": [{"key": "name", "operator": "In", "values": [where]}]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [term]}
        name = f"c{self.count}"
        self.snapshot.put_claim(claim(name, self.count, 1).changed({"status": {"allocation": allocation}}))
        self.tried(pod(f"p{self.count}", resourceClaims=[{"name": "gpu", "resourceClaimName": name}]))

    def tried(self, wanted: PodInfo) -> None:
        fresh = self.decide(self.cycle(), wanted, self.snapshot.fork())
        kept = self.decide(self.kept, wanted, self.snapshot)
        assert type(fresh) is type(kept)
        if isinstance(kept, Placed):
            assert fresh.node == kept.node  # BOARD1
            self.placed.append(kept)
        else:
            assert fresh.reasons == kept.reasons

    @rule(data=st.data())
    def binding_fails(self, data: st.DataObject) -> None:
        if self.placed:
            failed = self.placed.pop(data.draw(st.integers(0, len(self.placed) - 1)))
            self.kept.unreserve(failed.state, self.snapshot)

    @staticmethod
    def decide(cycle: Cycle, wanted, snapshot: Snapshot):
        deciding = cycle.schedule_one(CycleState(wanted, NOW), snapshot)
        while True:
            try:
                next(deciding)
            except StopIteration as done:
                return done.value

    @invariant()
    def ledger_agrees(self) -> None:
        self.snapshot.ledger.check()


Keeping.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestKeeping = Keeping.TestCase


@given(st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 4)), max_size=12))
def test_a_board_that_is_kept_is_the_board_made_afresh(history):
    """BOARD1, pods alone."""
    snapshot, kept = few(dict.fromkeys(NODES, 0))
    for at, (name, count) in enumerate(history):
        for one in range(count):
            snapshot.place(pod(f"{at}-{one}"), name)
        _, fresh = few({})
        assert finished(kept, snapshot) == finished(fresh, snapshot)
        assert kept.reasons == fresh.reasons
