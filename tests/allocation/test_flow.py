"""Needs and places, against trying everything."""

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


@given(st.integers(0, 60), st.frozensets(st.integers(1, 12), min_size=1, max_size=3))
def test_what_pieces_can_use_up_is_what_trying_all_sums_says(amount, sizes):
    sums = {0}
    while True:
        more = {one + size for one in sums for size in sizes if one + size <= amount} | sums
        if more == sums:
            break
        sums = more

    assert most_usable(amount, sizes) == max(sums)
