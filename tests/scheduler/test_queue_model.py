"""The scheduling queue beside a model without any index, whatever happens in whatever order."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from allot.informers import Key
from allot.scheduler.framework import Event
from allot.scheduler.pod import PodInfo
from allot.scheduler.queue import Queue, Where

from .objects import pod
from .test_queue import EVENTS, uid

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

    def next(self) -> list[Known]:
        """QUEUE2, QUEUE3. Of several groups that one event woke, any may be next."""
        self.ripen()
        active = [one for one in self.pods.values() if one.where is Where.ACTIVE]
        helped = [one for one in self.pods.values() if one.where is Where.BACKOFF and not one.must_wait]
        if active:
            return [min(active, key=lambda one: one.rank)]
        first = min((one.woken for one in helped), default=0)
        return [one for one in helped if one.woken == first]

    def take_one(self) -> Known | None:
        possible = self.next()
        found = self.queue.take(self.now_s)
        if not possible or found is None:
            moment_s = self.queue.next_moment_s()
            assert not possible and found is None
            assert moment_s is None or moment_s > self.now_s
            return None
        assert found.pod.key.name in {one.name for one in possible}
        expected = self.pods[found.pod.key.name]
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
        if one.missed & events:  # QUEUE4
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
        before = self.count
        for group, events in self.hears.items():
            if event in events:
                self.rouse(group)
        for one in self.pods.values():
            one.woken = min(one.woken, before + 1)  # at the same moment

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

    @rule(name=st.sampled_from(NAMES))
    def happen_to_one(self, name: str) -> None:
        self.queue.happened_to(uid(name), Event.DRIVER_ANSWERED, self.now_s)
        one = self.pods.get(name)
        if one is not None and one.where is Where.TAKEN:
            one.missed.add(Event.DRIVER_ANSWERED)
        elif one is not None and one.group is not None and Event.DRIVER_ANSWERED in self.hears[one.group]:
            self.wake(one)

    # -- what must hold -------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        self.queue.check()  # QUEUE1
        assert {one.key.name for one in self.queue.pods()} == set(self.pods)
        assert {name: self.queue.where(uid(name)) for name in self.pods} == {
            name: one.where for name, one in self.pods.items()
        }
        assert sum(self.queue.pending().values()) == sum(
            one.where is not Where.TAKEN for one in self.pods.values()
        )

    def teardown(self) -> None:
        """QUEUE1, QUEUE6: whoever is neither gated nor being worked on gets a turn, whatever happens."""
        waiting = {name for name, one in self.pods.items() if one.where not in (Where.GATED, Where.TAKEN)}
        self.now_s += LEFTOVER_S
        seen = set()
        while (found := self.queue.take(self.now_s)) is not None:
            seen.add(found.pod.key.name)
        assert seen == waiting


TestQueueing = Queueing.TestCase
TestQueueing.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
