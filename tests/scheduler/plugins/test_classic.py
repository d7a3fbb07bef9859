"""Classic claims in a cycle: which nodes are left, what drivers are asked, and what is given back."""

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from allot.allocation import Features
from allot.api import Object, classic
from allot.base import RandomIds
from allot.scheduler import plugins
from allot.scheduler.cycle import Cycle, Outcome, Placed, Unplaced, said
from allot.scheduler.explaining import explained, summary
from allot.scheduler.framework import CycleState, Event
from allot.scheduler.negotiating import NODES_MAX
from allot.scheduler.pod import PodInfo
from allot.scheduler.settings import Settings
from allot.scheduler.snapshot import Snapshot
from allot.scheduler.talk import Talk
from allot.scheduler.writes import (
    AskDrivers,
    AwaitDrivers,
    Deallocate,
    EndTalk,
    LeaveClaims,
    Negotiate,
    Preempt,
    ReserveClaim,
)

from ..classic import claim, key, resource_class, scheduling
from ..objects import node, pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Here:
    """A snapshot, and the scheduler's own plugins over it."""

    def __init__(self, *claims: Object, nodes: str = "abc", seed: int = 1) -> None:
        self.snapshot = Snapshot(Features())
        for name in nodes:
            self.node(name)
        self.put_class(resource_class())
        for one in claims:
            self.snapshot.put_claim(one)
        self.cycle = Cycle(plugins.default(RandomIds(random.Random(seed)), Settings()))
        self.decided = 1000 * seed

    def node(self, name: str, labels: Mapping[str, str] | None = None, **more: Any) -> None:
        self.snapshot.put_node(node(name, labels=labels, **more))

    def put_class(self, one: Object) -> None:
        self.snapshot.resource_classes.put(one.view(classic.ResourceClass))

    def talk(self, nodes: str = "", selected: str = "", owner: str = "", **answers: str) -> None:
        said = {name: list(no) for name, no in answers.items()}
        self.snapshot.put_talk(Talk.of(scheduling("p", list(nodes), selected, said, owner=owner)))

    def decide(self, wanted: PodInfo) -> Outcome:
        self.decided += 1
        asking = self.cycle.schedule_one(CycleState(wanted, NOW, seed=self.decided), self.snapshot)
        while True:
            try:
                work = next(asking)
            except StopIteration as done:
                outcome: Outcome = done.value
                return outcome
            if work is not None:
                work()

    def placed(self, wanted: PodInfo) -> Placed:
        outcome = self.decide(wanted)
        assert isinstance(outcome, Placed), summary(outcome)
        return outcome

    def unplaced(self, wanted: PodInfo) -> Unplaced:
        outcome = self.decide(wanted)
        assert isinstance(outcome, Unplaced)
        return outcome

    def negotiates(self, wanted: PodInfo) -> Negotiate:
        (asked,) = [one for one in self.placed(wanted).writes if isinstance(one, Negotiate)]
        return asked


def using(*names: str, **more: Any) -> PodInfo:
    return pod("p", resourceClaims=[{"name": name, "resourceClaimName": name} for name in names], **more)


# -- one claim ------------------------------------------------------------------------------------


def test_a_pod_without_claims_has_no_talk_and_no_write():
    """3063-PREF-01, 3063-RISK-02, 3063-PRR-02, 3063-MON-06."""
    here = Here()
    outcome = here.placed(pod("p"))
    assert outcome.writes == ()
    assert plugins.classic_ask(outcome.state) is None


def test_one_pending_claim_is_negotiated_for_with_the_best_node_chosen_and_the_others_named():
    """3063-RSV-01, 3063-RSV-02, 3063-PRESC-01, 3063-COORD-10, 3063-PSCHED-01, 3063-FLOW-05."""
    asked = Here(claim("c")).negotiates(using("c"))
    assert [one.entry for one in asked.wants] == ["c"]
    assert asked.node.name in asked.nodes
    assert set(asked.nodes) == set("abc")
    assert asked.wants[0].driver == "gpu.example.com"


def test_with_a_single_node_that_is_the_only_potential_one():
    """3063-PRESC-02."""
    asked = Here(claim("c"), nodes="a").negotiates(using("c"))
    assert (asked.node.name, asked.nodes) == ("a", ("a",))


def test_only_nodes_that_pass_everything_else_are_chosen_or_proposed():
    """3063-MODE-05, 3063-MODE-06, 3063-GOAL-12, 3063-FLOW-04."""
    here = Here(claim("c"), nodes="ab")
    here.node("full", allocatable={"cpu": "1"})
    here.node("closed", unschedulable=True)
    asked = here.negotiates(using("c", requests={"cpu": "2"}))
    assert set(asked.nodes) == {"a", "b"}


def test_a_node_that_the_driver_refuses_is_passed_over_and_every_other_is_a_candidate():
    """3063-FILT-02, 3063-FILT-04, 3063-PSCHED-17, 3063-COORD-02, 3063-GOAL-16."""
    here = Here(claim("c"))
    here.talk("ab", c="ab")
    assert here.negotiates(using("c")).node.name == "c"


def test_information_about_nodes_is_not_needed_for_a_single_claim():
    """3063-FILT-05: a driver without any unsuitable node never has to say anything."""
    here = Here(claim("c"))
    here.talk("ab", "a")
    assert here.negotiates(using("c")).node.name == "a"


def test_a_node_that_stands_there_as_selected_is_tried_first_after_a_restart():
    here = Here(claim("c"))
    for selected in "abc":
        here.talk("abc", selected)
        outcome = here.placed(using("c"))
        assert outcome.node == selected
        here.cycle.unreserve(outcome.state, here.snapshot)


def test_what_a_driver_says_about_one_pod_holds_for_no_other_and_stays_off_the_board():
    """PLUGIN5."""
    here = Here(claim("c"), claim("d"), nodes="a")
    here.talk("a", c="a")
    assert not isinstance(here.decide(using("c")), Placed)
    other = pod("q", resourceClaims=[{"name": "d", "resourceClaimName": "d"}])
    assert here.placed(other).node == "a"
    assert len(here.cycle._boards) == 1


def test_a_pod_that_was_vetoed_sleeps_alone_and_hears_the_driver():
    here = Here(claim("c"), nodes="ab")
    here.talk("ab", c="ab")
    outcome = here.unplaced(using("c"))
    assert outcome.group[-1] == "uid-of-p"  # type: ignore[index]
    events = plugins.events(plugins.default(RandomIds(random.Random(1)), Settings()))
    heard = frozenset[Event]().union(*(events[one] for one in outcome.rejected_by))
    assert Event.DRIVER_ANSWERED in heard
    assert Event.CLAIM_CHANGED in heard  # 3063-SCHED-02


def test_an_object_of_a_former_pod_is_not_listened_to():
    """3063-STATE-07, P5."""
    here = Here(claim("c"), nodes="a")
    here.talk("a", "a", owner="former", c="a")
    asked = here.negotiates(using("c"))
    assert asked.node.name == "a"
    assert asked.talk is None


def test_nobody_is_evicted_from_a_node_that_the_driver_refuses():
    here = Here(claim("c"), nodes="a")
    here.snapshot.place(pod("old", requests={"cpu": "4"}), "a")
    wanted = using("c", requests={"cpu": "4"}, priority=10)
    assert isinstance(here.unplaced(wanted).remedy, Preempt)
    here.snapshot.unnominate("uid-of-p")
    here.snapshot.prospects.spare(["uid-of-old"])
    here.talk("a", c="a")
    assert not isinstance(here.unplaced(wanted).remedy, Preempt)


def test_in_a_large_cluster_every_node_gets_its_turn_to_be_proposed():
    """3063-PSCHED-07, O-11, 3063-SCALE-05."""
    here = Here(claim("c"), nodes="")
    for number in range(400):
        here.node(f"n{number}")
    named: set[str] = set()
    for _ in range(30):
        outcome = here.placed(using("c"))
        (asked,) = outcome.writes
        assert isinstance(asked, Negotiate)
        assert len(asked.nodes) == NODES_MAX
        assert outcome.node in asked.nodes
        named.update(asked.nodes)
        here.cycle.unreserve(outcome.state, here.snapshot)
    assert len(named) == 400


# -- classes --------------------------------------------------------------------------------------


def test_the_class_narrows_the_nodes_by_their_labels_and_nothing_else_is_proposed():
    """3063-COORD-09, 3063-FILT-03, 3063-CLASS-05, 3063-PSCHED-11."""
    here = Here(claim("c"), nodes="ab")
    here.node("with", {"gpu": "yes"})
    here.put_class(resource_class(suitable={"gpu": "yes"}))
    asked = here.negotiates(using("c"))
    assert (asked.node.name, asked.nodes) == ("with", ("with",))


def test_a_class_that_changes_is_looked_at_again():
    here = Here(claim("c"), nodes="ab")
    here.put_class(resource_class(suitable={"gpu": "yes"}))
    told = summary(here.unplaced(using("c")))
    assert told == "0/2 nodes are available: 2 node(s) are not among those of the resource class."
    here.put_class(resource_class())
    assert here.placed(using("c")).node in "ab"


def test_the_class_of_an_allocated_claim_is_not_consulted():
    """3063-CLASS-04, C11."""
    here = Here(claim("c", "a"))
    here.put_class(resource_class(suitable={"gpu": "yes"}))
    assert here.placed(using("c")).node == "a"
    here.cycle.unreserve(CycleState(using("c"), NOW), here.snapshot)
    here.snapshot.resource_classes.drop("gpu")
    assert here.placed(using("c")).node == "a"


def test_a_class_that_is_not_there_is_the_reason_and_its_creation_helps():
    """O-07."""
    here = Here(claim("c", resource_class="other"))
    outcome = here.unplaced(using("c"))
    assert 'resourceclass "other" of resourceclaim "c" not found' in summary(outcome)
    here.put_class(resource_class("other"))
    assert here.negotiates(using("c"))


# -- several claims -------------------------------------------------------------------------------


def test_with_several_pending_claims_drivers_are_asked_and_no_node_is_chosen():
    """3063-RSV-03, 3063-SCHED-01, P6."""
    here = Here(claim("c"), claim("d"))
    outcome = here.unplaced(using("c", "d"))
    assert isinstance(outcome.remedy, AskDrivers)
    assert set(outcome.remedy.nodes) == set("abc")
    assert here.snapshot.ledger.hold("uid-c") is None


def test_until_there_is_an_answer_for_each_nothing_is_chosen_and_nothing_written_again():
    """P6, 3063-COORD-02."""
    here = Here(claim("c"), claim("d"))
    here.talk("abc", c="a")
    outcome = here.unplaced(using("c", "d"))
    assert outcome.remedy == AwaitDrivers()
    assert "driver gpu.example.com has not answered for claim d" in explained(outcome, here.snapshot)


def test_with_all_answers_a_node_is_chosen_that_was_asked_about_and_that_nobody_refuses():
    """3063-COORD-03, 3063-COORD-08, O-13."""
    here = Here(claim("c"), claim("d"))
    here.talk("ab", c="", d="a")
    asked = here.negotiates(using("c", "d"))
    assert asked.node.name == "b"
    assert set(asked.nodes) == {"a", "b"}


def test_where_all_that_was_asked_about_is_refused_others_are_asked_about():
    here = Here(claim("c"), claim("d"))
    here.talk("ab", c="ab", d="")
    outcome = here.unplaced(using("c", "d"))
    assert isinstance(outcome.remedy, AskDrivers)
    assert outcome.remedy.nodes == ("c",)


def test_two_claims_of_which_one_is_allocated_are_like_one():
    """3063-RSV-04."""
    here = Here(claim("c", "b", ["p"]), claim("d"))
    outcome = here.placed(using("c", "d"))
    assert outcome.node == "b"
    assert [type(one) for one in outcome.writes] == [ReserveClaim, Negotiate]


def test_nobody_makes_room_while_a_driver_may_still_find_a_place():
    here = Here(claim("c"), claim("d"), claim("e", "a"), nodes="ab")
    wanted = using("c", "d", "e")
    here.talk("a", c="")
    assert here.unplaced(wanted).remedy == AwaitDrivers()


def test_a_claim_that_one_pod_negotiates_for_is_waited_for_by_the_others():
    here = Here(claim("c"))
    first = here.placed(using("c"))
    second = pod("q", resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    assert 'resourceclaim "c" is in the process of being allocated' in summary(here.unplaced(second))
    here.cycle.unreserve(first.state, here.snapshot)
    assert here.placed(second)


# -- claims that are allocated --------------------------------------------------------------------


def test_an_allocated_claim_leaves_the_nodes_that_its_driver_says():
    """3063-COORD-01, 3063-FILT-01, 3063-ALLOC-05, 3063-SKEW-02."""
    here = Here(claim("c", "b"), claim("d", ""))
    outcome = here.placed(using("c", "d"))
    assert outcome.node == "b"
    assert [one.claim.key.name for one in outcome.writes if isinstance(one, ReserveClaim)] == ["c", "d"]


def test_reservations_are_made_in_the_order_of_names_whatever_the_order_of_the_spec():
    """3063-UNRSV-02: so of two pods that want both, one gets both."""
    here = Here(*(claim(name, "") for name in "zma"))
    reserved = [one.claim.key.name for one in here.placed(using("z", "m", "a")).writes]  # type: ignore[union-attr]
    assert reserved == ["a", "m", "z"]


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (claim("c", mode="Immediate"), "has not been allocated yet by its driver"),
        (claim("c", "a", deallocating=True), "is being deallocated by its driver"),
        (claim("c", "a", ["other"]), "is used by other and cannot be shared"),
        (
            claim("c", "a", [f"u{at}" for at in range(32)], shareable=True),
            "has 32 users, the most there can be",
        ),
        (claim("c", deleting=True), "is being deleted"),
        (claim("c", owner="other"), 'was made for pod "other"'),
    ],
)
def test_a_claim_that_cannot_be_used_now_keeps_the_pod_waiting(known: Object, why: str):
    """3063-PREF-02, 3063-PREF-03, 3063-PREF-04, 3063-STATE-26, 3063-SHARE-02, 3063-CLAIM-12, 3063-LIFE-07."""
    here = Here(known)
    wanted = using("c")
    told = here.cycle.gate(wanted, here.snapshot) or summary(here.unplaced(wanted))
    assert f'resourceclaim "c" {why}' in told


def test_a_consumer_that_is_no_pod_is_a_user_like_any_other():
    """3063-SHARE-05, 3063-STATE-13."""
    job = {"apiGroup": "batch", "resource": "jobs", "name": "j", "uid": "u"}
    here = Here(claim("c", "a").changed({"status": {"reservedFor": [job]}}))
    assert "is used by jobs/j and cannot be shared" in summary(here.unplaced(using("c")))


def test_a_shareable_claim_takes_another_user():
    """3063-SHARE-03, 3063-ALLOC-07."""
    assert Here(claim("c", "a", ["other"], shareable=True)).placed(using("c")).node == "a"


def test_an_entry_with_the_name_of_a_new_pod_and_the_uid_of_an_old_one_does_not_count():
    """3063-REF-02."""
    here = Here(claim("c", "a", ["former"]))
    assert "cannot be shared" in summary(here.unplaced(using("c")))


def test_an_allocation_counts_however_empty_it_is():
    """3063-STATE-12."""
    here = Here(claim("c").changed({"status": {"allocation": {}}}))
    (write,) = here.placed(using("c")).writes
    assert isinstance(write, ReserveClaim)


def test_a_talk_that_nothing_is_left_of_ends_with_the_binding():
    here = Here(claim("c", "a", ["p"]))
    here.talk("a", "a")
    writes = here.placed(using("c")).writes
    assert [type(one) for one in writes] == [ReserveClaim, EndTalk]


# -- giving back ----------------------------------------------------------------------------------


def full(here: Here, *nodes: str) -> None:
    for name in nodes:
        here.snapshot.place(pod(f"on-{name}", requests={"cpu": "4"}), name)


def test_an_idle_claim_in_the_wrong_place_is_given_back_and_one_of_this_pod_too():
    """3063-COORD-05, 3063-COORD-06, 3063-POSTF-02, 3063-CLAIM-15, 3063-ALT-04, 3063-FLOW-09, X-11, X-33."""
    for users in ([], ["p"]):
        here = Here(claim("c", "a", users))
        full(here, "a")
        remedy = here.unplaced(using("c", requests={"cpu": "1"})).remedy
        assert isinstance(remedy, Deallocate)
        assert remedy.claim.key.name == "c"


@pytest.mark.parametrize(
    "known",
    [
        claim("c", "a", mode="Immediate"),
        claim("c", "a", ["p", "other"], shareable=True),
        claim("c", ""),
    ],
)
def test_a_claim_is_not_moved_that_is_immediate_or_used_or_in_nobodys_way(known: Object):
    """3063-POSTF-03, 3063-MODE-03, 3063-FILT-06."""
    here = Here(known)
    full(here, "a", "b", "c")
    assert not isinstance(here.unplaced(using("c", requests={"cpu": "1"})).remedy, Deallocate)


def test_which_of_several_is_given_back_is_left_to_chance():
    """3063-POSTF-04, 3063-COORD-07; anything better than chance is for another day (3063-POSTF-07)."""
    picked = set()
    for seed in range(20):
        here = Here(claim("c", "a"), claim("d", "b"), seed=seed)
        remedy = here.unplaced(using("c", "d")).remedy
        assert isinstance(remedy, Deallocate)
        picked.add(remedy.claim.key.name)
    assert picked == {"c", "d"}


def test_no_second_claim_is_given_back_while_one_is_under_way():
    """3063-POSTF-05, and 3063-POSTF-06: if that did not help, the other may be."""
    here = Here(claim("c", "a", deallocating=True), claim("d", "b"))
    assert here.unplaced(using("c", "d")).remedy is None
    here.snapshot.put_claim(claim("c", version=2))
    full(here, "b")
    remedy = here.unplaced(using("c", "d", requests={"cpu": "1"})).remedy
    assert isinstance(remedy, Deallocate)
    assert remedy.claim.key.name == "d"


def test_a_pod_with_structured_claims_alone_has_nothing_to_do_with_it():
    """3063-POSTF-01."""
    here = Here(nodes="")
    assert here.unplaced(pod("p")).remedy is None


@pytest.mark.parametrize(
    "other", [claim("d", "a", ["rival"]), claim("d", deleting=True), claim("d", "a", deallocating=True)]
)
def test_who_cannot_have_one_claim_gives_up_the_others(other: Object):
    """3063-UNRSV-01, 3063-UNRSV-02: a rival may hold the one and wait for the other."""
    here = Here(claim("c", "a", ["p"]), other)
    wanted = using("c", "d")
    assert here.cycle.gate(wanted, here.snapshot) is None
    remedy = here.unplaced(wanted).remedy
    assert isinstance(remedy, LeaveClaims)
    assert [one.key for one in remedy.claims] == [key("c")]


def test_who_has_no_place_leaves_what_cannot_be_moved():
    """3063-UNRSV-01: an immediate claim that an earlier attempt reserved, on a node that is full."""
    here = Here(claim("c", "a", ["p"], mode="Immediate"))
    full(here, "a")
    remedy = here.unplaced(using("c", requests={"cpu": "1"})).remedy
    assert isinstance(remedy, LeaveClaims)
    assert [one.key for one in remedy.claims] == [key("c")]


def test_what_was_negotiated_for_and_given_up_is_free_to_others():
    """PLUGIN4, 3063-UNRSV-03."""
    here = Here(claim("c"))
    outcome = here.placed(using("c"))
    assert here.snapshot.ledger.hold("uid-c") is not None
    here.cycle.unreserve(outcome.state, here.snapshot)
    assert here.snapshot.ledger.hold("uid-c") is None


# -- why ------------------------------------------------------------------------------------------


def test_it_is_told_on_how_many_nodes_the_driver_refused():
    here = Here(claim("c"), nodes="abcdefghijklmnopqrst")
    here.talk("abcdefghijklmn", c="abcdefghijklmn")
    full(here, *"opqrst")
    outcome = here.unplaced(using("c", requests={"cpu": "1"}))
    words = explained(outcome, here.snapshot)
    assert "14 node(s) refused by driver gpu.example.com for claim c" in words
    assert "driver gpu.example.com refused claim c on 14 of 20 nodes" in words
    assert said(outcome.sentences, here.snapshot).endswith("nodes.")


def test_vetoes_are_worked_out_once_a_cycle(monkeypatch: pytest.MonkeyPatch):
    here = Here(claim("c"))
    here.talk("abc", c="ab")
    asked: list[str] = []
    veto: Callable[..., Any] = here.cycle.veto

    def counted(*of: Any) -> Any:
        asked.append("veto")
        return veto(*of)

    monkeypatch.setattr(here.cycle, "veto", counted)
    here.placed(using("c"))
    assert asked == ["veto"]
