"""What counts of a load, and for how long each pod waited."""

from allot.bench.load import Tally


def test_a_burst_lasts_from_the_first_creation_to_the_last_binding():
    tally = Tally({"a": 1.0, "b": 1.5}, {"a": 2.0, "b": 4.0})
    assert tally.ended_s - tally.began_s == 3.0
    assert tally.times_to_bind_s() == [1.0, 2.5]


def test_a_pod_that_is_seen_bound_before_its_creation_is_answered_waited_for_nothing():
    assert Tally({"a": 2.0}, {"a": 1.9}).times_to_bind_s() == [0.0]


def test_a_window_counts_what_was_bound_before_it_closed():
    """One was bound too late, and of one the answer to its creation never arrived."""
    tally = Tally({"a": 1.0, "b": 10.0, "c": 10.5}, {"a": 1.2, "b": 10.8, "c": 11.5, "d": 10.9})
    assert tally.within(10.0).bound_s == {"a": 1.2, "b": 10.8}
    assert tally.within(10.0).accepted_s == {"a": 1.0, "b": 10.0}
