"""The work queue: keys and times in, keys out."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from allot.base import InvariantBroken
from allot.informers import Limits, WorkQueue


def taken(queue: WorkQueue[str], now_s: float = 0.0) -> str | None:
    found = queue.take(now_s)
    return None if found is None else found.key


def test_keys_come_in_the_order_in_which_they_were_added_and_once():
    """WORKQ2, WORKQ3."""
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a", "c", "b"):
        queue.add(key, 0.0)
    assert [taken(queue), taken(queue), taken(queue), taken(queue)] == ["a", "b", "c", None]


def test_a_key_that_a_worker_has_is_not_given_to_another():
    """WORKQ1, WORKQ2: the addition is kept for afterwards."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 0.0)
    assert taken(queue) == "a"
    queue.add("a", 1.0)
    assert taken(queue, 1.0) is None
    queue.done("a")
    assert taken(queue, 2.0) == "a"
    queue.done("a")
    assert taken(queue, 3.0) is None
    assert queue.idle


def test_a_delayed_key_comes_at_the_earliest_moment_asked_for():
    """WORKQ4."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add_at("a", 10.0)
    queue.add_at("a", 5.0)
    queue.add_at("a", 7.0)
    assert queue.next_moment_s() == 5.0
    assert taken(queue, 4.9) is None
    assert taken(queue, 5.0) == "a"
    queue.done("a")
    assert taken(queue, 100.0) is None


def test_failures_in_a_row_wait_longer_and_longer_and_success_ends_the_row():
    """WORKQ5."""
    queue: WorkQueue[str] = WorkQueue(Limits(first_s=1.0, longest_s=6.0))
    assert [queue.retry("a", 0.0) for _ in range(5)] == [1.0, 2.0, 4.0, 6.0, 6.0]
    assert queue.retry("b", 0.0) == 1.0
    queue.forget("a")
    assert queue.retry("a", 0.0) == 1.0


def test_conflicts_are_tried_again_soon_and_do_not_count_as_failures():
    """WORKQ5."""
    queue: WorkQueue[str] = WorkQueue(Limits(first_s=0.1, longest_s=60.0, conflict_longest_s=0.3))
    assert [queue.retry_conflict("a", 0.0) for _ in range(4)] == [0.1, 0.2, 0.3, 0.3]
    assert queue.retry("a", 0.0) == 0.1


def test_finishing_what_was_not_taken_is_a_bug():
    with pytest.raises(InvariantBroken, match="WORKQ1"):
        WorkQueue[str]().done("a")


def test_waiting_and_running_times_are_told():
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 1.0)
    found = queue.take(3.0)
    assert found is not None
    assert found.waited_s == 2.0
    assert queue.longest_running_s(10.0) == queue.unfinished_s(10.0) == 7.0


KEYS = st.sampled_from("abcd")


class Queueing(RuleBasedStateMachine):
    """Against a model that keeps, for each key, whether it is owed a turn and since when it may have it."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue[str] = WorkQueue(Limits(first_s=1.0, longest_s=8.0, conflict_longest_s=2.0))
        self.now_s = 0.0
        self.owed: dict[str, None] = {}
        self.working: list[str] = []
        self.delayed: dict[str, float] = {}
        self.failures: Counter[str] = Counter()

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key, self.now_s)
        self.owed.setdefault(key)

    @rule(key=KEYS, wait_s=st.integers(0, 5))
    def add_later(self, key: str, wait_s: int) -> None:
        self._delay(key, self.now_s + wait_s)
        self.queue.add_at(key, self.now_s + wait_s)

    @rule(seconds=st.integers(0, 4))
    def wait(self, seconds: int) -> None:
        self.now_s += seconds

    @rule()
    def take(self) -> None:
        for key, at_s in sorted(self.delayed.items(), key=lambda one: one[1]):
            if at_s <= self.now_s:
                del self.delayed[key]
                self.owed.setdefault(key)
        found = self.queue.take(self.now_s)
        may_go = [key for key in self.owed if key not in self.working]
        if found is None:
            assert not may_go
            return
        assert found.key in may_go
        del self.owed[found.key]
        self.working.append(found.key)

    @precondition(lambda self: self.working)
    @rule(data=st.data(), how=st.sampled_from(["well", "failure"]))
    def finish(self, data: st.DataObject, how: str) -> None:
        key = data.draw(st.sampled_from(self.working))
        self.working.remove(key)
        if how == "well":
            self.failures[key] = 0
            self.queue.forget(key)
        else:
            wait_s = min(8.0, 2.0 ** self.failures[key])
            self.failures[key] += 1
            self._delay(key, self.now_s + wait_s)
            assert self.queue.retry(key, self.now_s) == wait_s
        self.queue.done(key)

    def _delay(self, key: str, at_s: float) -> None:
        self.delayed[key] = min(at_s, self.delayed.get(key, at_s))

    @invariant()
    def agrees(self) -> None:
        self.queue.check()
        assert self.queue.next_moment_s() == min(self.delayed.values(), default=None)


TestQueueing = Queueing.TestCase
TestQueueing.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
