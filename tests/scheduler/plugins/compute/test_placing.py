"""Containers in their order and groups whole, against trying everything."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api import compute
from allot.scheduler.plugins.compute.asking import Ask, ComputeAsk
from allot.scheduler.plugins.compute.placing import Part, distribute, group_options, place


def asked(*wanted, inits=()):
    return ComputeAsk(
        tuple(Ask(at, f"a{at}", f"a{at}", amount) for at, (amount, _) in enumerate(wanted)), inits
    )


def options(*wanted):
    return [((Part(None, amount, dict.fromkeys(places, 0)),),) for amount, places in wanted]


def held(answer, wanted, inits, count):
    by_container = [
        {str(one): n for (at, _, one), n in answer.items() if at == container}
        for container in range(len(wanted))
    ]
    init, rest = by_container[: len(inits)], by_container[len(inits) :]
    most = compute.records.peak(list(zip(init, inits, strict=True)), rest)
    return [most.get(str(one), 0) for one in range(count)]


def some_way(wanted, inits, free):
    """Whether any choice keeps within what is free, and the fewest devices that one holds."""
    ways = [list(distribute(amount, [free[one] for one in places])) for amount, places in wanted]
    best = None
    for counts in product(*ways):
        answer = {
            (at, None, one): n
            for at, (_, places) in enumerate(wanted)
            for one, n in zip(places, counts[at], strict=True)
        }
        holds = held(answer, wanted, inits, len(free))
        if all(n <= most for n, most in zip(holds, free, strict=True)):
            best = sum(holds) if best is None else min(best, sum(holds))
    return best


WANTED = st.tuples(st.integers(1, 2), st.lists(st.integers(0, 2), unique=True, max_size=3))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(WANTED, min_size=1, max_size=4),
    st.lists(st.booleans(), max_size=2),
    st.lists(st.integers(0, 2), min_size=3, max_size=3),
)
def test_init_containers_and_sidecars_are_placed_whenever_they_can_be(wanted, inits, free):
    """14-ASK-06: the peak counts, and devices of a container that ended serve a later one."""
    inits = tuple(inits[: len(wanted) - 1])
    best = some_way(wanted, inits, free)
    answer = place(asked(*wanted, inits=inits), options(*wanted), free)
    assert (answer is None) == (best is None)
    if answer is not None:
        holds = held(answer, wanted, inits, len(free))
        assert all(n <= most for n, most in zip(holds, free, strict=True))
        for at, (amount, places) in enumerate(wanted):
            own = {one: n for (ask, _, one), n in answer.items() if ask == at}
            assert sum(own.values()) == amount
            assert set(own) <= set(places)


def test_an_init_container_takes_what_the_pod_holds_anyway():
    """14-ASK-06"""
    wanted = [(1, [0, 1]), (1, [1])]
    answer = place(asked(*wanted, inits=(False,)), options(*wanted), [1, 1])
    assert answer == {(0, None, 1): 1, (1, None, 1): 1}


GROUPS = st.lists(
    st.tuples(st.integers(1, 2), st.lists(st.integers(0, 3), unique=True)), min_size=1, max_size=2
)


@settings(max_examples=200, deadline=None)
@given(
    GROUPS,
    st.integers(1, 2),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.lists(st.integers(0, 1), min_size=4, max_size=4),
)
def test_groups_are_whole_and_share_their_value(members, amount, free, values):
    """14-GROUP-02, 14-GROUP-04: against taking groups one by one in every way."""
    wanted = [(at, count, dict.fromkeys(places, 0)) for at, (count, places) in enumerate(members)]

    def one_by_one(left, groups):
        if groups == 0:
            return True
        for value in set(values):
            places = [[one for one in own if values[one] == value] for _, own in members]
            ways = [
                list(distribute(count, [left[one] for one in own]))
                for (count, _), own in zip(members, places, strict=True)
            ]
            for counts in product(*ways):
                rest = list(left)
                for own, taken in zip(places, counts, strict=True):
                    for one, n in zip(own, taken, strict=True):
                        rest[one] -= n
                if min(rest) >= 0 and one_by_one(rest, groups - 1):
                    return True
        return False

    ways = group_options(amount, wanted, lambda one: values[one], free)
    answer = place(asked((amount, [])), [ways], free)
    assert (answer is not None) == one_by_one(free, amount)
    for value in set(values) if answer is not None else ():
        taken = [
            sum(n for (_, m, one), n in answer.items() if m == at and values[one] == value)
            for at, _ in enumerate(members)
        ]
        assert len({n // count for n, (count, _) in zip(taken, members, strict=True)}) == 1


def test_only_values_that_every_member_has_are_tried():
    """PLACED1: else the ways to be tried are used up by those that lead nowhere."""
    many = dict.fromkeys(range(20), 0)
    ways = group_options(3, [(0, 1, many), (1, 1, {20: 0})], lambda one: one % 20, [9] * 21)
    assert [[(part.member, part.amount, set(part.costs)) for part in way] for way in ways] == [
        [(0, 3, {0}), (1, 3, {20})]
    ]


@pytest.mark.parametrize(
    ("amount", "most", "ways"), [(2, [1, 1], 1), (2, [2, 2], 3), (3, [1, 1], 0), (0, [], 1)]
)
def test_all_ways_to_distribute(amount, most, ways):
    assert len(list(distribute(amount, most))) == ways
