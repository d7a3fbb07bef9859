"""Whether many needs can be met at once from places with limited room.

A bipartite flow, grown one unit at a time along alternating paths. Sets of places
are the bits of an integer, so a step looks at all of them at once. `most_usable` is
the same question for amounts: how much of a place can be used up at all.

An example
    Two needs of one unit each. The first may have place 0 or 1, the second place 0 alone.
    The first takes place 0; the second finds it full, and moves the first on to place 1:

    >>> first, second = Need(places=0b011, units=1), Need(places=0b001, units=1)
    >>> matchable([first, second], room=[1, 1])
    True

    Were both bound to place 0, there would be nowhere to move to, unless it had room for two:

    >>> matchable([second, second], room=[1, 1]), matchable([second, second], room=[2, 1])
    (False, True)

    With both needs met, a unit of the first can only be in place 1:

    >>> bin(open_places([first, second], room=[1, 1]))
    '0b10'

    Of 10 units, pieces of 4 and 6 use up all, pieces of 4 alone only 8:

    >>> most_usable(10, frozenset({4, 6})), most_usable(10, frozenset({4}))
    (10, 8)
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import gcd
from typing import NamedTuple


class Need(NamedTuple):
    """So many units, each from one of these places."""

    places: int  # bits
    units: int


def matchable(needs: Sequence[Need], room: Sequence[int]) -> bool:
    if not all(_enough(need, room) for need in needs):
        return False
    if len(needs) == 1:
        return True
    flow = _Flow(needs, room)
    return all(flow.push(at) for at, need in enumerate(needs) for _ in range(need.units))


def open_places(needs: Sequence[Need], room: Sequence[int]) -> int:
    """The places that a unit of the first need can have while all needs are met; 0 if they cannot be."""
    flow = _Flow(needs, room)
    if not all(flow.push(at) for at, need in enumerate(needs) for _ in range(need.units)):
        return 0
    return flow.vacant_for(0)


def _enough(need: Need, room: Sequence[int]) -> bool:
    """Whether one need alone could be met."""
    missing, places = need.units, need.places
    while places and missing > 0:
        missing -= room[_lowest(places)]
        places &= places - 1
    return missing <= 0


UNITS_MAX = 512
"""Finer divisions than this are not worked out. Amounts are written by strangers, 1Ti beside 1n, so
nothing here may be as large as they are: only this many units are ever told apart."""


@lru_cache(maxsize=4096)
def most_usable(amount: int, sizes: frozenset[int]) -> int:
    """The most of an amount that pieces of these sizes can use up, as many of each as one likes.

    At least that much: where the units are too many to be told apart, it is what would be used up
    if every multiple of the unit could be had.
    """
    fitting = [size for size in sizes if size <= amount]
    if not fitting:
        return 0
    unit = gcd(*fitting)
    units = amount // unit
    if units > UNITS_MAX:
        return units * unit
    everything = (1 << units + 1) - 1
    reached = 1  # bit n: n units can be used up
    for size in fitting:
        step = size // unit
        while step <= units:  # one piece more, then two, four, ...: any number of them
            reached |= reached << step & everything
            step *= 2
    return (reached.bit_length() - 1) * unit


class _Flow:
    def __init__(self, needs: Sequence[Need], room: Sequence[int]) -> None:
        self._places = [need.places for need in needs]
        self._left = list(room)
        self._spare = sum(1 << place for place, left in enumerate(room) if left > 0)
        self._users: list[dict[int, int]] = [{} for _ in room]  # units of each need, by place

    def push(self, need: int) -> bool:
        """One unit more for a need, moving others aside where that helps."""
        came_from: dict[int, tuple[int, int]] = {}  # need: (who takes its place, the place)
        seen_needs, seen_places = {need}, 0
        waiting = [need]
        while waiting:
            one = waiting.pop()
            hit = self._places[one] & self._spare
            if hit:
                self._assign(need, one, _lowest(hit), came_from)
                return True
            fresh = self._places[one] & ~seen_places
            seen_places |= fresh
            for place in bits_of(fresh):
                for user in self._users[place]:
                    if user not in seen_needs:
                        seen_needs.add(user)
                        came_from[user] = (one, place)
                        waiting.append(user)
        return False

    def vacant_for(self, need: int) -> int:
        """Places that can be had by moving others aside, once the need gives back one of its own."""
        own = next(place for place, users in enumerate(self._users) if need in users)
        vacant = self._spare | 1 << own
        while True:
            movable = {at for at, places in enumerate(self._places) if places & vacant}
            more = sum(
                1 << place
                for place, users in enumerate(self._users)
                if not vacant >> place & 1 and not movable.isdisjoint(users)
            )
            if not more:
                return self._places[need] & vacant
            vacant |= more

    def _assign(self, first: int, need: int, place: int, came_from: dict[int, tuple[int, int]]) -> None:
        self._left[place] -= 1
        if not self._left[place]:
            self._spare &= ~(1 << place)
        self._users[place][need] = self._users[place].get(need, 0) + 1
        while need != first:
            taker, place = came_from[need]
            users = self._users[place]
            users[need] -= 1
            if not users[need]:
                del users[need]
            users[taker] = users.get(taker, 0) + 1
            need = taker


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def bits_of(bits: int) -> Iterator[int]:
    while bits:
        yield _lowest(bits)
        bits &= bits - 1
