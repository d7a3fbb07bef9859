"""Leases, with the time handed over."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.node.renewals import Renewals


def test_thousands_that_join_at_once_come_up_spread_over_the_period():
    """RENEW2: no second has more than a little over its share, and none is empty."""
    renewals = Renewals(60.0)
    for number in range(5000):
        renewals.join(f"n{number}", 1000.0, at_once=False)
    seconds = Counter()
    for second in range(60):
        seconds[second] = len(renewals.due(1000.0 + second + 1))
    assert sum(seconds.values()) == 5000
    assert min(seconds.values()) >= 75
    assert max(seconds.values()) <= 92


def test_everybody_comes_up_once_in_each_period():
    """RENEW1."""
    renewals = Renewals(60.0)
    for number in range(50):
        renewals.join(f"n{number}", 0.0, at_once=False)
    for _ in range(3):
        renewals.due(0.0)
    seen: list[str] = []
    now_s = 0.0
    while now_s < 600.0:
        now_s += 0.25
        seen += renewals.due(now_s)
    assert set(Counter(seen).values()) == {10}


def test_a_node_without_a_lease_comes_up_at_once():
    renewals = Renewals(60.0)
    renewals.join("n", 10.0, at_once=True)
    assert renewals.due(10.0) == ["n"]
    assert renewals.due(10.0) == []
    assert renewals.next_s() == 70.0


def test_joining_twice_changes_nothing_and_leaving_ends_it():
    renewals = Renewals(60.0)
    renewals.join("n", 0.0, at_once=True)
    renewals.join("n", 5.0, at_once=True)
    assert renewals.due(100.0) == ["n"]
    renewals.leave("n")
    assert renewals.due(1e6) == []
    assert renewals.next_s() is None


def test_a_renewal_that_failed_comes_up_soon():
    """RENEW3."""
    renewals = Renewals(60.0)
    renewals.join("n", 0.0, at_once=True)
    renewals.due(0.0)
    renewals.failed("n", 1.0)
    assert renewals.next_s() == 6.0
    assert renewals.due(6.0) == ["n"]
    renewals.failed("gone", 6.0)
    assert len(renewals) == 1


def test_after_a_long_sleep_each_is_renewed_once():
    renewals = Renewals(60.0)
    for number in range(10):
        renewals.join(f"n{number}", 0.0, at_once=False)
    assert sorted(renewals.due(86400.0)) == sorted(f"n{number}" for number in range(10))
    assert renewals.due(86401.0) == []


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.sampled_from(["join", "leave", "fail", "due"]), st.integers(0, 4), st.floats(0, 40)),
        max_size=40,
    )
)
def test_whoever_has_joined_is_due_within_a_period(moves):
    renewals = Renewals(60.0)
    joined: set[str] = set()
    now_s = 0.0
    for move, number, passed_s in moves:
        now_s += passed_s
        name = f"n{number}"
        match move:
            case "join":
                renewals.join(name, now_s, at_once=bool(number % 2))
                joined.add(name)
            case "leave":
                renewals.leave(name)
                joined.discard(name)
            case "fail":
                renewals.failed(name, now_s)
            case "due":
                assert set(renewals.due(now_s)) <= joined
    assert set(renewals.due(now_s + 60.0)) == joined
