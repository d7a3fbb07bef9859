"""Needs and places, against trying everything."""

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from allot.allocation.flow import Need, matchable, most_usable, open_places

needs = st.lists(st.builds(Need, st.integers(0, 31), st.integers(1, 2)), max_size=5)
rooms = st.lists(st.integers(0, 2), min_size=5, max_size=5)


def fits(units: list[int], room: tuple[int, ...]) -> bool:
    if not units:
        return True
    return any(
        units[0] >> place & 1 and free and fits(units[1:], (*room[:place], free - 1, *room[place + 1 :]))
        for place, free in enumerate(room)
    )


def single(wanted: list[Need]) -> list[int]:
    return [need.places for need in wanted for _ in range(need.units)]


@given(needs, rooms)
@settings(max_examples=300)
def test_says_yes_exactly_when_there_is_a_way(wanted, room):
    assert matchable(wanted, room) == fits(single(wanted), tuple(room))


@given(needs.filter(bool), rooms)
@settings(max_examples=300)
def test_a_place_is_open_exactly_when_the_others_can_do_without(wanted, room):
    """For one unit of the first need, with everybody else still to be served."""
    rest = single(wanted)[1:]
    expected = 0
    for place, free in enumerate(room):
        without = tuple(left - (at == place) for at, left in enumerate(room))
        if wanted[0].places >> place & 1 and free and fits(rest, without):
            expected |= 1 << place

    assert open_places(wanted, room) == expected


def test_moves_others_aside_along_a_chain():
    """Each could take the first place; only the last has no other."""
    chain = [Need(0b0011, 1), Need(0b0110, 1), Need(0b1100, 1), Need(0b0001, 1)]

    assert matchable(chain, [1, 1, 1, 1])
    assert not matchable([*chain, Need(0b1111, 1)], [1, 1, 1, 1])


@given(
    st.integers(0, 60),
    st.frozensets(st.integers(1, 12) | st.integers(10**18, 10**30), min_size=1, max_size=4),
)
def test_what_pieces_can_use_up_is_what_trying_all_sums_says(amount, sizes):
    sums = {0}
    while True:
        more = {one + size for one in sums for size in sizes if one + size <= amount} | sums
        if more == sums:
            break
        sums = more

    assert most_usable(amount, sizes) == max(sums)


amounts = st.integers(1, 20).flatmap(lambda n: st.sampled_from([n, n * 10**6, n * 10**9, n * 2**40 * 10**9]))


@given(amounts, st.frozensets(amounts, min_size=1, max_size=6))
def test_what_pieces_can_use_up_is_never_said_to_be_less_than_it_is(amount, sizes):
    """Greedy use is a way to use it up; whatever is said must be at least that, and no more than there is."""
    left = amount
    for size in sorted(sizes, reverse=True):
        left %= size

    assert amount - left <= most_usable(amount, sizes) <= amount


def test_amounts_of_very_different_size_take_no_memory():
    """1Ei beside one nano unit: nothing may be as large as an amount."""
    tracemalloc.start()
    try:
        assert most_usable(8, frozenset({4, 2**60 * 10**9})) == 8
        assert most_usable(2**60 * 10**9, frozenset({1, 2**60 * 10**9})) == 2**60 * 10**9
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak_bytes < 100_000
