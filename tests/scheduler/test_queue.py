"""The scheduling queue: pods, events and times in; the next pod out."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from allot.base import InvariantBroken
from allot.informers import Key
from allot.scheduler.framework import Event
from allot.scheduler.pod import PodInfo
from allot.scheduler.queue import Queue, Where

from .objects import pod

EVENTS = {
    "Fit": frozenset({Event.POD_GONE, Event.NODE_ADDED}),
    "Affinity": frozenset({Event.NODE_ADDED, Event.NODE_CHANGED}),
    "Devices": frozenset({Event.DEVICES_FREED, Event.CLAIM_CHANGED, Event.NODE_ADDED}),
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
    """U2. Age is when the pod was made: after a restart all of them arrive at once."""
    queue = Queue(EVENTS)
    queue.add(pod("late", created=9), 0.0)
    queue.add(pod("early", created=3), 0.0)
    queue.add(pod("urgent", created=20, priority=100), 0.0)
    queue.add(pod("early-too", created=3), 0.0)
    assert [taken(queue) for _ in range(5)] == ["urgent", "early", "early-too", "late", None]


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
    """U3."""
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
    """U3. A steady stream of new pods is not held up by one that has just failed."""
    queue = asleep("a")
    queue.happened(Event.POD_GONE, 0.5)
    assert queue.where(uid("a")) is Where.BACKOFF
    queue.add(pod("b"), 0.6)
    assert taken(queue, 0.9) == "b"


def test_while_nobody_else_is_due_a_pod_that_may_be_helped_need_not_wait():
    """U3. A full cluster in which one pod leaves and the next waits for its place."""
    queue = asleep("a")
    queue.happened(Event.POD_GONE, 0.5)
    assert taken(queue, 0.5) == "a"
    assert taken(queue, 1.0) is None


def test_when_nobody_in_particular_said_no_anything_may_help():
    queue = asleep("a", rejected_by=frozenset())
    queue.happened(Event.TAINT_RULE_CHANGED, 2.0)
    assert taken(queue, 2.0) == "a"


def test_of_a_group_only_the_head_is_woken_and_its_failure_speaks_for_all():
    """U5: a thousand pods of one Deployment cost one attempt an event."""
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
    """Z2: the pod that was woken left for reasons of its own; the room is still there."""
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
    """U4: the cycle looked at the node just before a pod left it."""
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
    """U5."""
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
    assert queue.where(uid("a")) is Where.BACKOFF  # U4


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
    """U4."""
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
    """U6."""
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
    with pytest.raises(InvariantBroken, match="U1"):
        queue.failed(uid("a"), "g", FIT, 0.0)


NAMES = "abcdef"
CLAIMS = {name: Key("default", f"claim-{name}" if name < "d" else "shared") for name in NAMES}
PRIORITIES = {name: 10 if name in "cf" else 0 for name in NAMES}
LEFTOVER_S = 20.0
HAPPENINGS = sorted(set(Event) - {Event.POD_CHANGED}, key=lambda one: one.name)


def a_pod(name: str, version: int) -> PodInfo:
    return pod(
        name,
        priority=PRIORITIES[name],
        labels={"version": str(version)},
        resourceClaims=[{"name": "gpu", "resourceClaimName": CLAIMS[name].name}],
    )


@dataclass
class Known:
    """A pod in the model."""

    name: str
    arrival: int
    where: Where = Where.ACTIVE
    attempts: int = 0
    not_before_s: float = 0.0
    must_wait: bool = False
    group: Hashable = None  # it sleeps in
    carries: Hashable = None  # the chance of a group
    woken: int = 0  # in which order they were, of those in backoff
    since: tuple[float, int] = (0.0, 0)
    missed: set[Event] = field(default_factory=set)

    @property
    def rank(self) -> tuple[int, int]:
        return -PRIORITIES[self.name], self.arrival


class Queueing(RuleBasedStateMachine):
    """Against a model without any index: it looks through all pods whenever it wants to know something."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(EVENTS, backoff_first_s=1.0, backoff_longest_s=4.0, leftover_s=LEFTOVER_S)
        self.now_s = 0.0
        self.pods: dict[str, Known] = {}
        self.hears: dict[Hashable, frozenset[Event]] = {}
        self.count = 0

    # -- the model ------------------------------------------------------------------------------

    def enter(self, name: str) -> Known:
        self.count += 1
        return self.pods.setdefault(name, Known(name, self.count))

    def ready(self, one: Known) -> None:
        self.count += 1
        one.where = Where.BACKOFF if one.not_before_s > self.now_s else Where.ACTIVE
        one.group, one.woken = None, self.count

    def wake(self, one: Known) -> None:
        one.carries = one.group
        self.ready(one)

    def sleepers(self, group: Hashable) -> list[Known]:
        return sorted((one for one in self.pods.values() if one.group == group), key=lambda one: one.rank)

    def rouse(self, group: Hashable) -> None:
        if any(one.carries == group for one in self.pods.values()):
            return
        for one in self.sleepers(group)[:1]:
            self.wake(one)

    def pass_on(self, one: Known) -> None:
        carried, one.carries = one.carries, None
        if carried is not None:
            self.rouse(carried)

    def ripen(self) -> None:
        for one in sorted(self.pods.values(), key=lambda one: one.since):
            if one.where is Where.ASLEEP and one.since[0] + LEFTOVER_S <= self.now_s:
                self.wake(one)
            elif one.where is Where.BACKOFF and one.not_before_s <= self.now_s:
                self.ready(one)

    # -- what is done with both -----------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES))
    def add(self, name: str) -> None:
        self.queue.add(a_pod(name, 0) if name not in self.pods else self.same(name), self.now_s)
        self.enter(name)

    def same(self, name: str) -> PodInfo:
        found = self.queue.get(uid(name))
        assert found is not None
        return found

    @rule(name=st.sampled_from(NAMES))
    def change(self, name: str) -> None:
        self.count += 1
        assert self.queue.update(a_pod(name, self.count), self.now_s) == (name in self.pods)
        one = self.pods.get(name)
        if one is not None and one.where is Where.ASLEEP:
            self.ready(one)
        elif one is not None and one.where is Where.TAKEN:
            one.missed.add(Event.POD_CHANGED)

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        self.queue.remove(uid(name), self.now_s)
        one = self.pods.pop(name, None)
        if one is not None:
            self.pass_on(one)

    @rule(name=st.sampled_from(NAMES))
    def gate(self, name: str) -> None:
        now = a_pod(name, 0) if name not in self.pods else self.same(name)
        self.queue.gate(now, [CLAIMS[name]], self.now_s)
        one = self.enter(name)
        one.where, one.group = Where.GATED, None
        self.pass_on(one)
        assert name in {found.key.name for found in self.queue.gated_by(CLAIMS[name])}

    @rule(name=st.sampled_from(NAMES))
    def release(self, name: str) -> None:
        self.queue.release(uid(name), self.now_s)
        if name in self.pods and self.pods[name].where is Where.GATED:
            self.ready(self.pods[name])

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.0, 5.0]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def next(self) -> Known | None:
        """U2, U3."""
        self.ripen()
        active = [one for one in self.pods.values() if one.where is Where.ACTIVE]
        helped = [one for one in self.pods.values() if one.where is Where.BACKOFF and not one.must_wait]
        if active:
            return min(active, key=lambda one: one.rank)
        return min(helped, key=lambda one: one.woken, default=None)

    def take_one(self) -> Known | None:
        expected = self.next()
        found = self.queue.take(self.now_s)
        if expected is None or found is None:
            moment_s = self.queue.next_moment_s()
            assert expected is found is None
            assert moment_s is None or moment_s > self.now_s
            return None
        assert found.pod.key.name == expected.name
        expected.attempts += 1
        assert found.attempts == expected.attempts
        expected.where, expected.missed = Where.TAKEN, set()
        return expected

    @rule()
    def take(self) -> None:
        self.take_one()

    @rule(group=st.sampled_from("gh"), by=st.sampled_from(sorted(EVENTS)))
    def try_all_in_vain(self, group: str, by: str) -> None:
        """What a full cluster does to a queue: without it, few walks would have many that sleep."""
        while (one := self.take_one()) is not None:
            self.fail_one(one, group, by, error=False)

    def taken(self, data: st.DataObject) -> Known:
        names = sorted(name for name, one in self.pods.items() if one.where is Where.TAKEN)
        return self.pods[data.draw(st.sampled_from(names))]

    def anyone_taken(self) -> bool:
        return any(one.where is Where.TAKEN for one in self.pods.values())

    @precondition(anyone_taken)
    @rule(
        data=st.data(), group=st.sampled_from("gh"), by=st.sampled_from(sorted(EVENTS)), error=st.booleans()
    )
    def fail(self, data: st.DataObject, group: str, by: str, error: bool) -> None:
        self.fail_one(self.taken(data), group, by, error)

    def fail_one(self, one: Known, group: str, by: str, error: bool) -> None:
        self.queue.failed(uid(one.name), group, frozenset({by}), self.now_s, error=error)
        one.not_before_s = self.now_s + min(4.0, 2.0 ** (one.attempts - 1))
        one.must_wait = error
        if error or Event.POD_CHANGED in one.missed:
            self.ready(one)
            self.pass_on(one)
            return
        self.count += 1
        one.where, one.group, one.since = Where.ASLEEP, group, (self.now_s, self.count)
        events = self.hears[group] = EVENTS[by] | {Event.NODE_GONE}
        carried, one.carries = one.carries, None
        if carried is not None and carried != group:
            self.rouse(carried)
        if one.missed & events:  # U4
            self.wake(one) if self.own_news(one) & events else self.rouse(group)

    def own_news(self, one: Known) -> set[Event]:
        return {event for event in one.missed if event is Event.CLAIM_CHANGED}

    @precondition(anyone_taken)
    @rule(data=st.data())
    def place(self, data: st.DataObject) -> None:
        one = self.taken(data)
        self.queue.placed(uid(one.name), self.now_s)
        self.pass_on(one)

    @rule(event=st.sampled_from([one for one in HAPPENINGS if one is not Event.CLAIM_CHANGED]))
    def happen(self, event: Event) -> None:
        self.queue.happened(event, self.now_s)
        for one in self.pods.values():
            if one.where is Where.TAKEN:
                one.missed.add(event)
        for group, events in self.hears.items():
            if event in events:
                self.rouse(group)

    @rule(claim=st.sampled_from(sorted(set(CLAIMS.values()))))
    def happen_to_a_claim(self, claim: Key) -> None:
        self.queue.happened(Event.CLAIM_CHANGED, self.now_s, about=claim)
        users = [one for one in self.pods.values() if CLAIMS[one.name] == claim]
        up = {one.carries for one in users if one.where in (Where.ACTIVE, Where.BACKOFF)}
        for one in sorted(users, key=lambda one: one.rank):
            if one.where is Where.TAKEN:
                one.missed.add(Event.CLAIM_CHANGED)
            elif (
                one.group is not None and one.group not in up and Event.CLAIM_CHANGED in self.hears[one.group]
            ):
                up.add(one.group)
                self.wake(one)

    # -- what must hold -------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        self.queue.check()  # U1
        assert {one.key.name for one in self.queue.pods()} == set(self.pods)
        assert {name: self.queue.where(uid(name)) for name in self.pods} == {
            name: one.where for name, one in self.pods.items()
        }
        assert sum(self.queue.pending().values()) == sum(
            one.where is not Where.TAKEN for one in self.pods.values()
        )

    def teardown(self) -> None:
        """U1, U6: whoever is neither gated nor being worked on gets a turn, though nothing more happens."""
        waiting = {name for name, one in self.pods.items() if one.where not in (Where.GATED, Where.TAKEN)}
        self.now_s += LEFTOVER_S
        seen = set()
        while (found := self.queue.take(self.now_s)) is not None:
            seen.add(found.pod.key.name)
        assert seen == waiting


TestQueueing = Queueing.TestCase
TestQueueing.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
