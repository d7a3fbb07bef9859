"""What is known of every node: kept, it is what asking everybody afresh would give."""

import random
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from allot.allocation import DeviceId, Features, Taken
from allot.api import Object, resource
from allot.base import RandomIds
from allot.scheduler import plugins
from allot.scheduler.board import Board, Boards
from allot.scheduler.cycle import Cycle, Placed
from allot.scheduler.framework import CycleState, Rejection, Tier
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
    """B2: work follows what changed, not the number of nodes."""
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
    """V2: the same labels, taints and capacity are the same node, whatever else its status says."""
    snapshot, board = few({"a": 0})
    finished(board, snapshot)
    before = snapshot.mark()
    assert snapshot.put_node(node("a")) is False
    assert snapshot.moved_since(before) == frozenset()


def test_what_was_decided_and_is_then_confirmed_moves_nothing():
    """V2: the binding comes back from the watch and changes no answer."""
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
    """B3."""
    snapshot, board = few({f"n{at:03}": 0 for at in range(100)})
    assert sum(1 for _ in board.refresh(snapshot)) == 3
    assert len(board.order) == 100


@pytest.mark.parametrize("nodes", [5, 100])
def test_a_refresh_pauses_after_every_node_that_was_too_hard_to_decide(nodes):
    """B3: thirty such nodes in a row, each with all the steps it may have, held all for seconds."""
    snapshot = Snapshot(FEATURES)
    for at in range(nodes):
        snapshot.put_node(node(f"n{at}"))
    hard = Rejection("Devices", "could not be decided", undecided=True)
    looked: list[str] = []
    board = Board([lambda it: looked.append(it.name) or hard], {})

    seen_at_pauses = [len(looked) for _ in board.refresh(snapshot)]

    assert seen_at_pauses == list(range(1, nodes + 1))


def test_boards_are_made_anew_when_classes_change():
    boards, snapshot = Boards(), Snapshot(FEATURES)
    boards.get("x", snapshot)
    boards.keep("x", Board([], {}))
    assert boards.get("x", snapshot) is not None
    snapshot.put_class(device_class("gpu"))
    assert boards.get("x", snapshot) is None


# -- the whole cycle on a changing cluster --------------------------------------------------------


def device_class(name: str) -> resource.DeviceClass:
    fields = {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }
    return msgspec.convert(fields, resource.DeviceClass)


def claim(name: str, version: int, count: int) -> Object:
    fields = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "resourceVersion": str(version),
        },
        "spec": claim_spec(count),
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
            self.snapshot.put_node(node(name, allocatable={"cpu": "8"}))
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
        self.snapshot.put_node(node(name, allocatable={"cpu": cpu}, unschedulable=cordoned))

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

    @rule(cpu=st.sampled_from("112"), devices=st.sampled_from([0, 1, 1, 1, 2]))
    def pod_comes(self, cpu: str, devices: int) -> None:
        self.count += 1
        name = f"p{self.count}"
        parts = {}
        if devices:
            self.snapshot.put_claim(claim(f"c{self.count}", self.count, devices))
            parts = {"resourceClaims": [{"name": "gpu", "resourceClaimName": f"c{self.count}"}]}
        wanted = pod(name, requests={"cpu": cpu}, **parts)
        fresh = self.decide(self.cycle(), wanted, self.snapshot.fork())
        kept = self.decide(self.kept, wanted, self.snapshot)
        assert type(fresh) is type(kept)
        if isinstance(kept, Placed):
            assert fresh.node == kept.node  # B1
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
    """B1, pods alone."""
    snapshot, kept = few(dict.fromkeys(NODES, 0))
    for at, (name, count) in enumerate(history):
        for one in range(count):
            snapshot.place(pod(f"{at}-{one}"), name)
        _, fresh = few({})
        assert finished(kept, snapshot) == finished(fresh, snapshot)
        assert kept.reasons == fresh.reasons
