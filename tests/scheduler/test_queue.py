"""The scheduling queue: pods, events and times in; the next pod out."""

from collections.abc import Hashable

import pytest

from allot.base import InvariantBroken
from allot.informers import Key
from allot.scheduler.framework import Event
from allot.scheduler.pod import PodInfo
from allot.scheduler.queue import Queue, Where

from .objects import pod

EVENTS = {
    "Fit": frozenset({Event.POD_GONE, Event.NODE_ADDED}),
    "Affinity": frozenset({Event.NODE_ADDED, Event.NODE_CHANGED}),
    "Devices": frozenset({Event.DEVICES_FREED, Event.CLAIM_CHANGED, Event.NODE_ADDED, Event.DRIVER_ANSWERED}),
}
FIT, AFFINITY, DEVICES = (frozenset({name}) for name in EVENTS)


def taken(queue: Queue, now_s: float = 0.0) -> str | None:
    found = queue.take(now_s)
    return None if found is None else found.pod.key.name


def uid(name: str) -> str:
    return f"uid-of-{name}"


def asleep(*names: str, group: Hashable = "g", rejected_by: frozenset[str] = FIT) -> Queue:
    """A queue in which these pods were tried at 0 s, and fit nowhere."""
    queue = Queue(EVENTS)
    for name in names:
        queue.add(pod(name), 0.0)
    for _ in names:
        found = queue.take(0.0)
        assert found is not None
        queue.failed(found.pod.uid, group, rejected_by, 0.0)
    return queue


def test_the_highest_priority_comes_first_and_then_the_oldest():
    """QUEUE2. Age is when the pod was made: after a restart all of them arrive at once."""
    queue = Queue(EVENTS)
    queue.add(pod("late", created=9), 0.0)
    queue.add(pod("early", created=3), 0.0)
    queue.add(pod("urgent", created=20, priority=100), 0.0)
    queue.add(pod("early-too", created=3), 0.0)
    assert [taken(queue) for _ in range(5)] == ["urgent", "early", "early-too", "late", None]


def test_what_is_about_one_pod_wakes_that_one_and_no_other_of_its_group():
    queue = asleep("a", "b", rejected_by=DEVICES)
    queue.happened_to(uid("b"), Event.DRIVER_ANSWERED, 20.0)
    assert (taken(queue, 20.0), taken(queue, 20.0)) == ("b", None)
    queue.happened_to("uid-of-nobody", Event.DRIVER_ANSWERED, 20.0)


def test_an_answer_that_comes_while_the_pod_is_tried_counts_as_if_it_came_after():
    """QUEUE4."""
    queue = Queue(EVENTS)
    queue.add(pod("a"), 0.0)
    assert taken(queue) == "a"
    queue.happened_to(uid("a"), Event.DRIVER_ANSWERED, 0.0)
    queue.failed(uid("a"), "g", DEVICES, 0.0)
    assert taken(queue, 20.0) == "a"


def test_attempts_and_the_first_moment_are_told():
    queue = Queue(EVENTS)
    queue.add(pod("a"), 5.0)
    first = queue.take(6.0)
    assert first is not None
    assert (first.attempts, first.first_seen_s) == (1, 5.0)
    queue.failed(uid("a"), "g", FIT, 6.0, error=True)
    second = queue.take(7.0)
    assert second is not None
    assert (second.attempts, second.first_seen_s) == (2, 5.0)


def test_after_an_error_a_pod_waits_longer_and_longer_and_no_longer_than_the_longest():
    """QUEUE3."""
    queue = Queue(EVENTS)
    queue.add(pod("a"), 0.0)
    now_s = 0.0
    for wait_s in (1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        assert taken(queue, now_s) == "a"
        queue.failed(uid("a"), "g", frozenset(), now_s, error=True)
        assert queue.pending()["backoff"] == 1
        assert queue.next_moment_s() == now_s + wait_s
        assert taken(queue, now_s + wait_s - 0.1) is None
        now_s += wait_s


def test_a_pod_that_fits_nowhere_sleeps_until_something_that_may_help_happens():
    queue = asleep("a")
    assert queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}
    queue.happened(Event.SLICE_CHANGED, 2.0)
    assert taken(queue, 2.0) is None
    queue.happened(Event.POD_GONE, 3.0)
    assert taken(queue, 3.0) == "a"


def test_what_helps_does_not_put_a_pod_in_backoff_before_others():
    """QUEUE3. A steady stream of new pods is not held up by one that has just failed."""
    queue = asleep("a")
    queue.happened(Event.POD_GONE, 0.5)
    assert queue.where(uid("a")) is Where.BACKOFF
    queue.add(pod("b"), 0.6)
    assert taken(queue, 0.9) == "b"


def test_while_nobody_else_is_due_a_pod_that_may_be_helped_need_not_wait():
    """QUEUE3. A full cluster in which one pod leaves and the next waits for its place."""
    queue = asleep("a")
    queue.happened(Event.POD_GONE, 0.5)
    assert taken(queue, 0.5) == "a"
    assert taken(queue, 1.0) is None


def test_when_nobody_in_particular_said_no_anything_may_help():
    queue = asleep("a", rejected_by=frozenset())
    queue.happened(Event.TAINT_RULE_CHANGED, 2.0)
    assert taken(queue, 2.0) == "a"


def test_of_a_group_only_the_head_is_woken_and_its_failure_speaks_for_all():
    """QUEUE5: a thousand pods of one Deployment cost one attempt an event."""
    queue = asleep("a", "b", "c")
    queue.happened(Event.POD_GONE, 2.0)
    queue.happened(Event.NODE_ADDED, 2.0)
    assert [taken(queue, 2.0), taken(queue, 2.0)] == ["a", None]
    queue.failed(uid("a"), "g", FIT, 2.0)
    assert taken(queue, 2.0) is None
    assert queue.pending()["unschedulable"] == 3


def test_when_the_head_finds_a_place_the_next_is_tried_at_once():
    queue = asleep("a", "b", "c")
    queue.happened(Event.POD_GONE, 2.0)
    assert taken(queue, 2.0) == "a"
    queue.placed(uid("a"), 2.0)
    assert taken(queue, 2.0) == "b"
    queue.placed(uid("b"), 2.0)
    assert taken(queue, 2.0) == "c"
    queue.failed(uid("c"), "g", FIT, 2.0)
    assert taken(queue, 2.0) is None


@pytest.mark.parametrize("how", ["removed", "gated", "another group", "an error"])
def test_the_chance_of_a_group_does_not_go_with_the_pod_that_carried_it(how: str):
    """SLEEP2: the pod that was woken left for reasons of its own; the room is still there."""
    queue = asleep("a", "b")
    queue.happened(Event.POD_GONE, 2.0)
    assert taken(queue, 2.0) == "a"
    match how:
        case "removed":
            queue.remove(uid("a"), 2.0)
        case "gated":
            queue.gate(pod("a"), [Key("default", "c")], 2.0)
        case "another group":
            queue.failed(uid("a"), "h", AFFINITY, 2.0)
        case "an error":
            queue.failed(uid("a"), "g", frozenset(), 2.0, error=True)
    assert taken(queue, 2.0) == "b"


def test_what_happens_during_an_attempt_counts_after_it():
    """QUEUE4: the cycle looked at the node just before a pod left it."""
    queue = Queue(EVENTS)
    queue.add(pod("a"), 0.0)
    assert taken(queue) == "a"
    queue.happened(Event.POD_GONE, 0.0)
    queue.failed(uid("a"), "g", FIT, 0.0)
    assert queue.where(uid("a")) is Where.BACKOFF

    queue = Queue(EVENTS)
    queue.add(pod("a"), 0.0)
    queue.happened(Event.POD_GONE, 0.0)
    assert taken(queue) == "a"
    queue.happened(Event.SLICE_CHANGED, 0.0)
    queue.failed(uid("a"), "g", FIT, 0.0)
    assert queue.where(uid("a")) is Where.ASLEEP


def test_news_of_a_claim_wakes_those_who_use_it():
    """Claims change with every pod that is bound: pods that use other claims must not notice."""
    queue = Queue(EVENTS)
    for name in ("a", "b", "c"):
        queue.add(pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": f"claim-{name}"}]), 0.0)
    for _ in range(3):
        name = taken(queue)
        assert name is not None
        queue.failed(uid(name), "g", DEVICES, 0.0)
    queue.happened(Event.CLAIM_CHANGED, 2.0, about=Key("default", "claim-b"))
    assert [taken(queue, 2.0), taken(queue, 2.0)] == ["b", None]


def test_a_pod_whose_priority_changed_waits_in_its_new_place():
    queue = Queue(EVENTS)
    queue.add(pod("a"), 0.0)
    queue.add(pod("b"), 0.0)
    assert queue.update(pod("b", priority=5), 0.0)
    assert [taken(queue), taken(queue)] == ["b", "a"]


def test_a_pod_hears_of_the_claims_that_it_uses_now():
    """The name of a generated claim comes later, and may come to another one."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]

    def named(claim: str) -> PodInfo:
        status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim}]}
        return pod("a", resourceClaims=claims, status=status)

    queue = Queue(EVENTS)
    queue.add(named("old"), 0.0)
    queue.update(named("new"), 0.0)
    assert taken(queue) == "a"
    queue.failed(uid("a"), "g", DEVICES, 0.0)
    queue.happened(Event.CLAIM_CHANGED, 1.0, about=Key("default", "old"))
    assert taken(queue, 1.0) is None
    queue.happened(Event.CLAIM_CHANGED, 1.0, about=Key("default", "new"))
    assert taken(queue, 1.0) == "a"


def test_of_those_who_share_a_claim_one_is_woken():
    """QUEUE5."""
    queue = Queue(EVENTS)
    for name in ("a", "b", "c"):
        queue.add(pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}]), 0.0)
    for _ in range(3):
        name = taken(queue)
        assert name is not None
        queue.failed(uid(name), "g", DEVICES, 0.0)
    for _ in range(5):
        queue.happened(Event.CLAIM_CHANGED, 2.0, about=Key("default", "shared"))
    assert [taken(queue, 2.0), taken(queue, 2.0)] == ["a", None]
    queue.happened(Event.CLAIM_CHANGED, 2.0, about=Key("default", "shared"))
    queue.failed(uid("a"), "g", DEVICES, 2.0)
    assert queue.where(uid("a")) is Where.BACKOFF  # QUEUE4


def test_a_pod_that_changed_is_tried_again_by_itself():
    queue = asleep("a", "b")
    assert queue.update(pod("b", labels={"team": "x"}), 2.0)
    assert [taken(queue, 2.0), taken(queue, 2.0)] == ["b", None]


def test_what_we_write_about_a_pod_does_not_bring_it_back():
    """Otherwise every explanation that we write would cause the next attempt, and the next explanation."""
    queue = asleep("a")
    told = {"conditions": [{"type": "PodScheduled", "status": "False"}], "nominatedNodeName": "n"}
    assert not queue.update(pod("a", status=told), 2.0)
    assert taken(queue, 2.0) is None
    found = queue.get(uid("a"))
    assert found is not None
    assert found.status.nominated_node_name == "n"


def test_the_name_of_a_generated_claim_is_news_for_the_pod():
    queue = asleep("a", rejected_by=DEVICES)
    named = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "a-gpu-x7k2p"}]}
    assert queue.update(pod("a", status=named), 2.0)
    assert taken(queue, 2.0) == "a"


def test_a_pod_that_changes_during_its_attempt_is_tried_again():
    """QUEUE4."""
    queue = Queue(EVENTS)
    queue.add(pod("a"), 0.0)
    assert taken(queue) == "a"
    queue.update(pod("a", labels={"team": "x"}), 0.0)
    queue.failed(uid("a"), "g", FIT, 0.0)
    assert taken(queue, 1.0) == "a"


def test_a_gated_pod_is_found_by_what_it_waits_for():
    queue = Queue(EVENTS)
    queue.gate(pod("a"), [Key("default", "x"), Key("default", "y")], 0.0)
    queue.gate(pod("b"), [Key("default", "y")], 0.0)
    queue.happened(Event.NODE_ADDED, 1.0)
    assert taken(queue, 1000.0) is None
    assert queue.pending()["gated"] == 2
    assert [one.key.name for one in queue.gated_by(Key("default", "y"))] == ["a", "b"]
    assert [one.key.name for one in queue.gated_by(Key("default", "x"))] == ["a"]
    queue.release(uid("a"), 2.0)
    assert queue.gated_by(Key("default", "x")) == []
    assert [taken(queue, 2.0), taken(queue, 2.0)] == ["a", None]


def test_a_pod_that_slept_too_long_is_tried_whatever_happened():
    """QUEUE6."""
    queue = asleep("a", "b")
    assert queue.next_moment_s() == 300.0
    assert taken(queue, 299.0) is None
    assert [taken(queue, 300.0), taken(queue, 300.0)] == ["a", "b"]


def test_reports_about_a_pod_that_is_gone_are_nothing():
    """It was deleted while its binding was written."""
    queue = Queue(EVENTS)
    queue.add(pod("a"), 0.0)
    assert taken(queue) == "a"
    queue.remove(uid("a"), 0.0)
    queue.placed(uid("a"), 0.0)
    queue.failed(uid("a"), "g", FIT, 0.0)
    queue.remove(uid("a"), 0.0)
    assert len(queue) == 0


def test_an_attempt_that_nobody_made_cannot_fail():
    queue = Queue(EVENTS)
    queue.add(pod("a"), 0.0)
    with pytest.raises(InvariantBroken, match="QUEUE1"):
        queue.failed(uid("a"), "g", FIT, 0.0)


def test_what_is_remembered_does_not_grow_while_the_queue_is_never_empty():
    """QUEUE7: with a storm of important pods, one that fails again and again left a trace each time."""
    queue = Queue(EVENTS)
    for number in range(5000):
        now_s = number * 20.0
        queue.add(pod("storm", priority=9, uid=f"storm-{number}"), now_s)
        queue.add(pod("waits", labels={"edition": str(number)}), now_s)
        found = queue.take(now_s)
        assert found is not None and found.pod.key.name == "storm"
        queue.add(pod("keeps it busy", priority=5, uid=f"busy-{number}"), now_s)
        queue.failed(found.pod.uid, "g", FIT, now_s)
        queue.happened(Event.POD_GONE, now_s)  # it may hurry, and never gets to
        queue.remove(f"storm-{number}", now_s)
        queue.remove(f"busy-{number - 1}", now_s)
    queue.check()
    kept = len(queue._hurrying) + len(queue._active) + len(queue._backoff)
    assert len(queue) == 2 and kept < 200
