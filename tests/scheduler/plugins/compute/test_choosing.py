"""The flow against trying everything."""

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.scheduler.plugins.compute.choosing import Wish, choose, is_met

PLACES = range(4)


def cheapest(wishes, free):
    """The cost of the best answer, found by trying all of them; None if there is none."""
    best = None

    def meet(at, left, cost):
        nonlocal best
        if at == len(wishes):
            best = cost if best is None else min(best, cost)
            return
        spread(at, list(wishes[at].costs.items()), wishes[at].amount, left, cost)

    def spread(at, places, rest, left, cost):
        if not places:
            if rest == 0:
                meet(at + 1, left, cost)
            return
        (one, price), *others = places
        for count in range(min(rest, left[one]) + 1):
            after = {**left, one: left[one] - count}
            spread(at, others, rest - count, after, cost + count * price)

    meet(0, dict(enumerate(free)), 0)
    return best


def wishes_of(*wanted):
    return [Wish(amount, dict.fromkeys(places, 0)) for amount, places in wanted]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.lists(
        st.builds(Wish, st.integers(1, 3), st.dictionaries(st.integers(0, 3), st.integers(0, 9))), max_size=3
    ),
)
def test_an_answer_is_found_whenever_there_is_one_and_is_the_cheapest(free, wishes):
    """14-SCHED-01, 14-SCHED-05: CHOOSE1 and CHOOSE2."""
    best, chosen = cheapest(wishes, free), choose(wishes, free)
    assert (chosen is None) == (best is None)
    if wishes:
        assert is_met(wishes, free) == (best is not None)
    if chosen is not None:
        assert [sum(own.values()) for own in chosen] == [one.amount for one in wishes]
        assert all(sum(own.get(at, 0) for own in chosen) <= free[at] for at in PLACES)
        assert (
            sum(n * one.costs[at] for one, own in zip(wishes, chosen, strict=True) for at, n in own.items())
            == best
        )


def test_what_another_needs_is_left_to_it():
    """14-SCHED-05: A may have either, B only the first."""
    assert choose(wishes_of((1, [0, 1]), (1, [0])), [1, 1]) == [{1: 1}, {0: 1}]


def test_devices_count_once():
    """14-SCHED-04: two of the same two, twice."""
    assert choose(wishes_of((2, [0]), (2, [0])), [2]) is None


def test_a_wish_may_be_spread():
    """14-SCHED-02"""
    assert choose(wishes_of((3, [0, 1])), [2, 2]) is not None
