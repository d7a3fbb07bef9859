"""One pod, one decision."""

import random
from datetime import UTC, datetime

from allot.allocation import Features
from allot.base import RandomIds
from allot.scheduler.cycle import Cycle, Placed, Unplaced
from allot.scheduler.framework import CycleState
from allot.scheduler.plugins.claims import ResourceClaims
from allot.scheduler.plugins.devices import DeviceFit, DynamicResources
from allot.scheduler.snapshot import Snapshot

from .objects import node, pod
from .test_board import claim, device_class, slice_view

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def decided(cycle: Cycle, wanted, snapshot: Snapshot):
    """The outcome, and what was asked to be done aside on the way."""
    deciding = cycle.schedule_one(CycleState(wanted, NOW), snapshot)
    aside = []
    while True:
        try:
            work = next(deciding)
        except StopIteration as done:
            return done.value, aside
        if work is not None:
            aside.append(work)
            work()


def devices_only(budget: int) -> Cycle:
    ids = RandomIds(random.Random(1))
    return Cycle([ResourceClaims(), DynamicResources(ids, budget=budget), DeviceFit()])


def furnished(devices: int = 4) -> Snapshot:
    snapshot = Snapshot(Features.of([]))
    snapshot.put_class(device_class("gpu"))
    snapshot.put_node(node("a"))
    snapshot.inventory.apply(slice_view("a", devices))
    snapshot.put_claim(claim("c", 1, 2))
    return snapshot


USES_C = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}


def test_a_node_that_is_too_hard_to_decide_gets_more_time_where_nothing_else_fits():
    """P2, D5: undecided is no refusal. The closer look is handed out, so that nobody waits for it."""
    outcome, aside = decided(devices_only(budget=1), pod("p", **USES_C), furnished())
    assert isinstance(outcome, Placed)
    assert outcome.node == "a"
    assert len(aside) == 1


def test_what_a_closer_look_decides_against_is_not_placed():
    outcome, _ = decided(devices_only(budget=1), pod("p", **USES_C), furnished(devices=1))
    assert isinstance(outcome, Unplaced)


def test_a_decision_holds_from_the_moment_it_is_made():
    """SNAP1: the next pod sees the devices as taken, though nothing is written yet."""
    snapshot = furnished(devices=3)
    snapshot.put_claim(claim("d", 2, 2))
    cycle = devices_only(budget=1000)
    first, _ = decided(cycle, pod("p", **USES_C), snapshot)
    uses_d = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "d"}]}
    second, _ = decided(cycle, pod("q", **uses_d), snapshot)
    assert isinstance(first, Placed)
    assert isinstance(second, Unplaced)

    cycle.unreserve(first.state, snapshot)
    third, _ = decided(cycle, pod("q", **uses_d), snapshot)
    assert isinstance(third, Placed)


def test_a_claim_that_is_being_given_devices_is_waited_for():
    """Two pods share a claim that has none yet; the second waits for the first."""
    snapshot = furnished()
    cycle = devices_only(budget=1000)
    decided(cycle, pod("p", **USES_C), snapshot)
    outcome, _ = decided(cycle, pod("q", **USES_C), snapshot)
    assert isinstance(outcome, Unplaced)
    assert [one.reason for one in outcome.reasons] == [
        'resourceclaim "c" is in the process of being allocated'
    ]


def test_asking_on_a_fork_leaves_no_trace():
    """SNAP3: what is decided on a fork is not so for anybody else."""
    snapshot = furnished(devices=2)
    fork = snapshot.fork()
    cycle = devices_only(budget=1000)
    outcome, _ = decided(cycle, pod("p", **USES_C), fork)
    assert isinstance(outcome, Placed)
    assert snapshot.place_of(outcome.state.pod.uid) is None
    assert snapshot.ledger.hold("uid-of-c") is None
