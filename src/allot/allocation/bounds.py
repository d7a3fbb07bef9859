"""Counting what remains before trying it.

Three questions, each cheaper than a search, and each a proof when the answer is no:

    devices   can every device still to be chosen get a place of its own, if counters,
              groups and shared capacity are ignored? A place is a device, or all the
              partitions of one piece of hardware, with as many places as its counters
              can allow at most.
    match     is there a value for each matchAttribute constraint so that the same can be
              said of the devices that have it?
    distinct  are there enough different values left for a distinctAttribute constraint?

An answer of yes promises nothing.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from .demand import Alternative, Constraint
from .expression import Failure
from .flow import Need, matchable
from .kind import UNKNOWN_VALUE, Value
from .question import Question, Standing
from .shape import Shape
from .state import Agreed, State

COMBINATIONS_MAX = 96
"""Combinations of values that are looked at; beyond that some constraints are ignored."""

One = tuple[str, object]  # a typed attribute value
Rest = tuple[tuple[Alternative, ...], int]  # what may still be chosen from, how many devices


class Bounds:
    def __init__(self, question: Question, state: State, shape: Shape) -> None:
        self._question = question
        self._state = state
        self._shape = shape
        self._places: dict[tuple[Alternative, int, One | None], int] = {}
        self._values: dict[tuple[Alternative, int], frozenset[One]] = {}

    def possible(self, alternative: Alternative | None = None, filled: int = 0) -> bool:
        """Whether the rest may still fit, once `filled` devices of the alternative are chosen."""
        rest = list(self._rest(alternative, filled))
        room = self._room()
        return self._distinct(rest, room) and self._match(rest, room)

    def _rest(self, alternative: Alternative | None, filled: int) -> Iterator[Rest]:
        """The requests still to be filled, with the least number of devices each needs."""
        first_claim = first_request = 0
        if alternative is not None:
            first_claim, first_request = alternative.claim, alternative.request + 1
            missing = self._question.count(alternative) - filled
            if missing and not alternative.admin:
                yield (alternative,), missing
        for at, claim in enumerate(self._question.demand.claims[first_claim:]):
            for request in claim.requests[first_request if not at else 0 :]:
                if not request.alternatives[0].admin:
                    yield request.alternatives, min(map(self._question.count, request.alternatives))

    def _room(self) -> list[int]:
        return [self._room_in(members) for members in self._shape.cells]

    def _room_in(self, members: Sequence[int]) -> int:
        """How many devices of a cell can still be chosen, at most."""
        question, state = self._question, self._state
        shares = question.demand.features.consumable_capacity
        free = []
        for at in members:
            if shares and question.devices[at].kind.shareable:
                return UNLIMITED
            if at not in question.owned and at not in state.holders:
                free.append(question.devices[at].kind)
        if len(members) == 1 or not free:
            return len(free)
        left = state.left(question.view.pool_of[members[0]])
        fitting = [kind for kind in free if all(left[k] >= n for k, n in kind.draws)]
        most = len(fitting)
        for key in {key for kind in fitting for key, _ in kind.draws}:
            least = min(dict(kind.draws).get(key, 0) for kind in fitting)
            if least > 0:
                most = min(most, left[key] // least)
        return most

    def _match(self, rest: Sequence[Rest], room: Sequence[int]) -> bool:
        """Some value for each constraint leaves enough devices for everybody."""
        constraints = self._matching(rest)
        return any(
            matchable([self._need(one, dict(chosen)) for one in rest], room)
            for chosen in product(*([(key, value) for value in values] for key, values in constraints))
        )

    def _matching(self, rest: Sequence[Rest]) -> list[tuple[tuple[int, int], list[One]]]:
        """Match constraints that bind what remains, each with the values it may still take."""
        bound: dict[tuple[int, int], frozenset[One]] = {}
        for alternatives, _ in rest:
            for index in alternatives[0].constraints:
                constraint = self._constraint(alternatives[0], index)
                if constraint.distinct or any(index not in one.constraints for one in alternatives):
                    continue
                if any(self._is_odd(one, index) for one in alternatives):
                    continue
                key = (alternatives[0].claim, index)
                if key not in bound:
                    agreed = self._state.rules[key[0]][index]
                    if agreed is None:
                        agreed = frozenset().union(*(self._values_of(one, index) for one in alternatives))
                    bound[key] = agreed
        kept: list[tuple[tuple[int, int], list[One]]] = []
        combinations = 1
        for key, values in sorted(bound.items(), key=lambda item: len(item[1])):
            combinations *= max(1, len(values))
            if combinations > COMBINATIONS_MAX:
                break
            kept.append((key, sorted(values, key=repr)))
        return kept

    def _need(self, one: Rest, chosen: dict[tuple[int, int], One]) -> Need:
        alternatives, count = one
        places = 0
        for alternative in alternatives:
            mine = self._places_of(alternative, -1, None)
            for index in alternative.constraints:
                value = chosen.get((alternative.claim, index))
                if value is not None:
                    mine &= self._places_of(alternative, index, value)
            places |= mine
        return Need(places, count)

    def _distinct(self, rest: Sequence[Rest], room: Sequence[int]) -> bool:
        """Enough values that nobody has yet, where every device has just one."""
        keys = {
            (one.claim, index)
            for alternatives, _ in rest
            for one in alternatives
            for index in one.constraints
            if self._constraint(one, index).distinct
        }
        return all(self._enough_values(claim, index, rest, room) for claim, index in keys)

    def _enough_values(self, claim: int, index: int, rest: Sequence[Rest], room: Sequence[int]) -> bool:
        used = self._state.rules[claim][index] or frozenset()
        values: dict[Value, int] = {}
        needs = []
        for alternatives, count in rest:
            if alternatives[0].claim != claim or any(index not in one.constraints for one in alternatives):
                continue
            bits = 0
            for alternative in alternatives:
                for at in self._open(alternative):
                    value = self._value(alternative, index, at)
                    if value is None or value & used or not room[self._shape.cell_of[at]]:
                        continue
                    if len(value) != 1:
                        return True  # of lists, or of an unknown type: counting proves nothing
                    bits |= 1 << values.setdefault(value, len(values))
            needs.append(Need(bits, count))
        return matchable(needs, [1] * len(values))

    def _constraint(self, alternative: Alternative, index: int) -> Constraint:
        return self._question.demand.claims[alternative.claim].constraints[index]

    def _open(self, alternative: Alternative) -> Iterator[int]:
        row = self._question.row(alternative)
        return (at for at in row.worth_trying if row.standings[at] is Standing.OPEN)

    def _value(self, alternative: Alternative, index: int, at: int) -> Agreed:
        value = self._question.value(alternative, self._constraint(alternative, index), at)
        return None if isinstance(value, Failure) else value

    def _is_odd(self, alternative: Alternative, index: int) -> bool:
        """Whether some device has a value of an unknown type, which may come first and alone."""
        return any(self._value(alternative, index, at) == UNKNOWN_VALUE for at in self._open(alternative))

    def _values_of(self, alternative: Alternative, index: int) -> frozenset[One]:
        key = (alternative, index)
        if key not in self._values:
            found = (self._value(alternative, index, at) for at in self._open(alternative))
            self._values[key] = frozenset().union(*(value for value in found if value))
        return self._values[key]

    def _places_of(self, alternative: Alternative, index: int, value: One | None) -> int:
        """Cells in which the alternative could choose a device, with this value if one is given."""
        key = (alternative, index, value)
        if key not in self._places:
            bits = 0
            for at in self._open(alternative):
                if value is None or value in (self._value(alternative, index, at) or ()):
                    bits |= 1 << self._shape.cell_of[at]
            self._places[key] = bits
        return self._places[key]


UNLIMITED = 1 << 30
