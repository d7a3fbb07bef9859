"""Counting what remains before trying it.

Four questions, each cheaper than a search, and each a proof when the answer is no:

    amounts   is there as much of every counter and shared capacity as the rest takes at least?
    devices   can every device still to be chosen get a place of its own, if constraints are
              ignored? A place is a device, or all the partitions of one piece of hardware,
              with as many places as its counters can allow; a device that is shared has as
              many as there is room for the smallest shares.
    match     is there a value for each matchAttribute constraint so that the same can be
              said of the devices that have it?
    distinct  are there enough different values left for a distinctAttribute constraint?

An answer of yes promises nothing.

An example
    A card of 8Gi is published whole and in halves, as in `state`. Three devices are asked for.

    Each of them draws 4Gi at the least, 12Gi together, and there are 8: `amounts` says no, and
    not one of the combinations is tried. Two devices pass: 8Gi suffice, and the card, which is
    one place to `devices`, has room for two of the smallest. Once the whole card is taken the
    remaining one of them needs 4Gi of nothing: no again, one step into the search and not after
    all that could have followed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from .budget import Budget
from .demand import Alternative, Constraint
from .expression import Failure
from .flow import Need, bits_of, matchable, most_usable, open_places
from .kind import UNKNOWN_VALUE, Value
from .question import DeviceState, Question, Row
from .shape import DRAWS_WORK, Shape
from .state import State

COMBINATIONS_MAX = 96
"""Combinations of values that are looked at; beyond that some constraints are ignored."""

UNLIMITED = 1 << 30

One = tuple[str, object]  # a typed attribute value
Rule = tuple[int, int]  # claim, constraint


@dataclass(slots=True, eq=False)
class _Profile:
    """What alternatives that want the same under the same constraints have in common."""

    claim: int
    constraints: tuple[int, ...]
    open: int  # devices, as bits
    values: Mapping[int, Mapping[int, Value | None]]  # by constraint, then device, open or not
    kinds: Mapping[int, frozenset[Value]]  # by constraint: those of open devices; without unknown types
    odd: frozenset[int]  # constraints under which some device has a value of an unknown type
    least: Mapping[str, int]  # of counters and shared capacity, the least that any device takes
    sizes: Mapping[str, frozenset[int]]  # all the pieces that any device takes
    places: dict[tuple[int, One] | None, int] = field(default_factory=dict)  # cells, as bits


class Rest:
    """Requests that want the same, and how many devices they still need together."""

    __slots__ = ("profiles", "units")

    def __init__(self, profiles: tuple[_Profile, ...], units: int) -> None:
        self.profiles = profiles
        self.units = units

    def is_under(self, rule: Rule) -> bool:
        """Whether the constraint binds every one of its devices."""
        return all(one.claim == rule[0] and rule[1] in one.constraints for one in self.profiles)


@dataclass(slots=True)
class _Broken:
    """Cells that choices have been made from."""

    gone: int  # with nothing left, as bits
    partly: list[int]


class Bounds:
    def __init__(self, question: Question, state: State, shape: Shape, budget: Budget) -> None:
        self._question = question
        self._state = state
        self._shape = shape
        self._budget = budget
        self._seen: dict[object, Mapping[int, Value | None]] = {}  # by what is compared, then device
        self._shares = question.demand.features.consumable_capacity
        self._shareable = {at for at in shape.cell_of if self._shares and question.devices[at].kind.shareable}
        self._profiles: dict[object, _Profile] = {}
        self._of: dict[Alternative, _Profile] = {}
        for alternative in question.demand.alternatives():
            self._of[alternative] = self._profile(alternative)
        self._rooms: dict[tuple[int, tuple[int, ...]], int] = {}
        self._room = [self._room_in(cell) for cell in range(len(shape.cells))]
        # Without constraints and counters, counting devices is all there is to it.
        self.is_exact = all(len(cell) == 1 for cell in shape.cells) and not any(
            one.constraints or one.admin or request.is_list
            for claim in question.demand.claims
            for request in claim.requests
            for one in request.alternatives
        )
        self._witness: tuple[tuple[Rule, One], ...] | None = None  # values that sufficed last

    def possible(self, alternative: Alternative | None = None, filled: int = 0) -> bool:
        """Whether the rest may still fit, once `filled` devices of the alternative are chosen."""
        rest = self._rest(alternative, filled)
        if not self._amounts_suffice(rest):
            return False
        room = list(self._room)
        broken = _Broken(0, [])
        for cell in {self._shape.cell_of[taking.at] for taking in self._state.taken}:
            room[cell] = self._room_in(cell)
            if not room[cell]:
                broken.gone |= 1 << cell
            elif len(self._shape.cells[cell]) > 1:
                broken.partly.append(cell)
        return (
            self._values_suffice(rest)
            and self._devices_suffice(rest, broken, room)
            and all(
                self._admin_suffices(claim, needs) for claim, needs in self._admin_rest(alternative, filled)
            )
        )

    def open_cells(self, alternative: Alternative, filled: int) -> int | None:
        """Cells from which the next device may come, as bits; None where this way of counting is blind."""
        if not self.is_exact or alternative.admin:
            return None
        rest = self._rest(alternative, filled)
        gone = sum(1 << self._shape.cell_of[one.at] for one in self._state.taken if one.parts is None)
        room = [0 if gone >> cell & 1 else free for cell, free in enumerate(self._room)]
        broken = _Broken(gone, [])
        needs = [Need(self._places(group.profiles[0], broken, None), group.units) for group in rest]
        self._budget.work(len(room) + sum(need.units for need in needs) * len(needs))
        return open_places(needs, room)

    # What remains

    def _rest(self, alternative: Alternative | None, filled: int) -> list[Rest]:
        """Admin access takes nothing away and is left out."""
        units: dict[tuple[_Profile, ...], int] = {}
        claims = self._question.demand.claims
        first_claim = first_request = 0
        if alternative is not None:
            first_claim, first_request = alternative.claim, alternative.request + 1
            missing = self._question.count(alternative) - filled
            if missing and not alternative.admin:
                units[self._of[alternative],] = missing
        for claim in claims[first_claim:]:
            for request in claim.requests[first_request:]:
                if not request.alternatives[0].admin:
                    key = tuple(self._of[one] for one in request.alternatives)
                    units[key] = units.get(key, 0) + min(map(self._question.count, request.alternatives))
            first_request = 0
        return [Rest(profiles, count) for profiles, count in units.items()]

    def _admin_rest(
        self, alternative: Alternative | None, filled: int
    ) -> Iterator[tuple[int, list[tuple[Alternative, int]]]]:
        """By claim, the requests with admin access still to be filled. They have no alternatives."""
        after = (-1, -1) if alternative is None else (alternative.claim, alternative.request)
        for at, claim in enumerate(self._question.demand.claims):
            asked = [request.alternatives[0] for request in claim.requests if request.alternatives[0].admin]
            later = [(one, self._question.count(one)) for one in asked if (one.claim, one.request) > after]
            if alternative is not None and alternative.admin and alternative.claim == at:
                later.append((alternative, self._question.count(alternative) - filled))
            if later:
                yield at, later

    def _admin_suffices(self, claim: int, rest: Sequence[tuple[Alternative, int]]) -> bool:
        """Admin access takes nothing from others, but a claim gets no device twice."""
        taken = sum(1 << at for at, holders in self._state.holders.items() if claim in holders)
        needs = [Need(self._of[one].open & ~taken, units) for one, units in rest if units]
        room = [UNLIMITED if at in self._shareable else 1 for at in range(len(self._question.devices))]
        return self._matchable(needs, room)

    def _matchable(self, needs: Sequence[Need], room: Sequence[int]) -> bool:
        self._budget.work(len(room) // 8 + sum(need.units for need in needs) * len(needs))
        return matchable(needs, room)

    def _profile(self, alternative: Alternative) -> _Profile:
        derived = tuple(sorted((name, id(one)) for name, one in alternative.derived.items()))
        key = (alternative.want, alternative.claim, alternative.constraints, derived)
        if key not in self._profiles:
            self._profiles[key] = self._read_profile(alternative)
        return self._profiles[key]

    def _read_profile(self, alternative: Alternative) -> _Profile:
        row = self._question.row(alternative)
        devices = [at for at in row.worth_trying if row.states[at] is DeviceState.OPEN]
        rules = self._question.demand.claims[alternative.claim].constraints
        self._budget.work(len(devices) * (2 + len(alternative.constraints)))
        values: dict[int, Mapping[int, Value | None]] = {}
        kinds: dict[int, frozenset[Value]] = {}
        odd = set()
        for index in alternative.constraints:
            values[index] = self._values(alternative, rules[index])
            found = {value for at in devices if (value := values[index][at]) is not None}
            if UNKNOWN_VALUE in found:
                odd.add(index)
            kinds[index] = frozenset(found - {UNKNOWN_VALUE})
        draws = [self._sure_draws(at, row) for at in devices]
        names = {name for one in draws for name in one}
        least = {name: min(sum(one.get(name, ())) for one in draws) for name in names}
        return _Profile(
            claim=alternative.claim,
            constraints=alternative.constraints,
            open=sum(1 << at for at in devices),
            values=values,
            kinds=kinds,
            odd=frozenset(odd),
            least={name: amount for name, amount in least.items() if amount > 0},
            sizes={name: frozenset(n for one in draws for n in one.get(name, ())) - {0} for name in names},
        )

    def _sure_draws(self, at: int, row: Row) -> Mapping[str, tuple[int, ...]]:
        """What is gone whenever the device is chosen, by name: one piece for each set it draws from.

        Of several shares only the first draws from counters, but each consumes its part.
        """
        kind = self._question.devices[at].kind
        if self._shares and kind.shareable:
            return {f"capacity {name}": (part.nano,) for name, part in row.parts.get(at, {}).items()}
        drawn: dict[str, tuple[int, ...]] = {}
        for (_, counter), amount in kind.draws:
            drawn[f"counter {counter}"] = (*drawn.get(f"counter {counter}", ()), amount)
        return drawn

    def _values(self, alternative: Alternative, constraint: Constraint) -> Mapping[int, Value | None]:
        """What a constraint sees in every device: the same for all whose attributes are computed alike."""
        key = (constraint.attribute, alternative.derived.get(constraint.attribute))
        if key not in self._seen:
            self._budget.work(2 * len(self._shape.cell_of))
            found = {at: self._question.value(alternative, constraint, at) for at in self._shape.cell_of}
            self._seen[key] = {at: None if isinstance(v, Failure) else v for at, v in found.items()}
        return self._seen[key]

    # Amounts

    def _amounts_suffice(self, rest: Sequence[Rest]) -> bool:
        must: dict[str, int] = {}
        sizes: dict[str, set[int]] = {}
        for one in rest:
            for name in one.profiles[0].least:
                least = min(profile.least.get(name, 0) for profile in one.profiles)
                if least:
                    must[name] = must.get(name, 0) + one.units * least
                    sizes.setdefault(name, set()).update(*(p.sizes[name] for p in one.profiles))
        if not must:
            return True
        there = dict.fromkeys(must, 0)
        pieces = {name: frozenset(some) for name, some in sizes.items()}
        self._budget.work(sum(map(len, pieces.values())))
        for turn, (name, left) in enumerate(self._leftovers()):
            if not turn % 64:
                self._budget.work(64)
            if name in there and left > 0:
                there[name] += most_usable(left, pieces[name])
        return all(there[name] >= amount for name, amount in must.items())

    def _leftovers(self) -> Iterator[tuple[str, int]]:
        """What there is in each place, by name."""
        for pool in range(len(self._question.view.pools)):
            for (_, counter), amount in self._state.left(pool).items():
                yield f"counter {counter}", amount
        for at in self._shareable:
            for name, amount in self._capacity_left(at).items():
                yield f"capacity {name}", amount

    def _capacity_left(self, at: int) -> dict[str, int]:
        used = self._state.consumed_of(at)
        capacity = self._question.devices[at].kind.capacity
        return {name: one.value.nano - used.get(name, 0) for name, one in capacity.items()}

    # Places

    def _room_in(self, cell: int) -> int:
        """How many devices of a cell can still be chosen, at most."""
        if not self._shareable.isdisjoint(self._shape.cells[cell]):
            return self._counted_room(cell)
        key = (cell, self._shape.past_of(cell))
        if key not in self._rooms:
            self._rooms[key] = self._counted_room(cell)
        return self._rooms[key]

    def _counted_room(self, cell: int) -> int:
        question = self._question
        members = self._shape.cells[cell]
        if not self._shareable.isdisjoint(members):
            return self._shares_left(members[0]) if len(members) == 1 else UNLIMITED
        alive = [question.devices[at].kind for at in self._shape.alive_in(cell)]
        if len(members) == 1 or not alive:
            return len(alive)
        left = self._state.left(question.view.pool_of[members[0]])
        draws = [dict(kind.draws) for kind in alive]
        self._budget.work(sum(map(len, draws)))
        most = len(alive)
        for key in draws[0]:  # what one of them does not draw from may not limit them
            least = min(one.get(key, 0) for one in draws)
            if least > 0:
                most = min(most, left[key] // least)
        return most

    def _shares_left(self, at: int) -> int:
        """How many of the smallest shares anybody asks for a device still has."""
        if at in self._question.owned:
            return 0
        left = self._capacity_left(at)
        self._budget.work(len(self._question.rows) * (1 + len(left)))
        parts = [
            row.parts.get(at, {})
            for row in self._question.rows.values()
            if row.states[at] is DeviceState.OPEN
        ]
        most = UNLIMITED
        for name, amount in left.items():
            least = min((part[name].nano for part in parts if name in part), default=0)
            if least > 0:
                most = min(most, max(0, amount) // least)
        return most

    def _places(self, profile: _Profile, broken: _Broken, wanted: tuple[int, One] | None) -> int:
        """Cells in which a device can be chosen, one with the wanted value if there is one."""
        if wanted not in profile.places:
            self._budget.work(len(self._shape.cell_of))
            cells = {self._shape.cell_of[at] for at in self._with(profile, wanted)}
            profile.places[wanted] = sum(1 << cell for cell in cells)
        places = profile.places[wanted] & ~broken.gone
        for cell in broken.partly:
            if places >> cell & 1 and not any(
                profile.open >> at & 1 and self._has(profile, at, wanted) for at in self._shape.alive_in(cell)
            ):
                places &= ~(1 << cell)
        return places

    def _with(self, profile: _Profile, wanted: tuple[int, One] | None) -> Iterator[int]:
        return (at for at in bits_of(profile.open) if self._has(profile, at, wanted))

    def _has(self, profile: _Profile, at: int, wanted: tuple[int, One] | None) -> bool:
        return wanted is None or wanted[1] in (profile.values[wanted[0]].get(at) or UNKNOWN_VALUE)

    # Match

    def _devices_suffice(self, rest: Sequence[Rest], broken: _Broken, room: Sequence[int]) -> bool:
        """With some value for each constraint there are places for everybody."""
        plain = [[self._places(one, broken, None) for one in group.profiles] for group in rest]
        rules = self._match_rules(rest)
        last = self._witness
        same_rules = last is not None and [rule for rule, _ in last] == [rule for rule, _ in rules]
        if last is not None and same_rules and self._fit(rest, plain, broken, room, last):
            return True
        for chosen in product(*([(rule, value) for value in values] for rule, values in rules)):
            if self._fit(rest, plain, broken, room, chosen):
                self._witness = chosen
                return True
        return False

    def _fit(
        self,
        rest: Sequence[Rest],
        plain: Sequence[Sequence[int]],
        broken: _Broken,
        room: Sequence[int],
        chosen: Sequence[tuple[Rule, One]],
    ) -> bool:
        self._budget.work(sum(map(len, plain)) * (1 + len(chosen)))
        units: dict[int, int] = {}
        for group, all_places in zip(rest, plain, strict=True):
            places = 0
            for profile, mine in zip(group.profiles, all_places, strict=True):
                for (claim, index), value in chosen:
                    if claim == profile.claim and index in profile.constraints:
                        if not self._may_agree(claim, index, value):
                            return False
                        mine &= self._places(profile, broken, (index, value))
                places |= mine
            units[places] = units.get(places, 0) + group.units
        return self._matchable([Need(places, count) for places, count in units.items()], room)

    def _may_agree(self, claim: int, index: int, value: One) -> bool:
        agreed = self._state.rules[claim][index]
        return agreed is None or value in agreed

    def _match_rules(self, rest: Sequence[Rest]) -> list[tuple[Rule, list[One]]]:
        """Match constraints that bind what remains, each with the values it may still take."""
        bound: dict[Rule, frozenset[One]] = {}
        for group in rest:
            first = group.profiles[0]
            rules = self._question.demand.claims[first.claim].constraints
            for index in first.constraints:
                rule = (first.claim, index)
                if rule in bound or rules[index].distinct or not group.is_under(rule):
                    continue
                if any(index in one.odd for one in group.profiles):
                    continue
                agreed = self._state.rules[first.claim][index]
                bound[rule] = (
                    agreed
                    if agreed is not None
                    else frozenset().union(*(v for one in group.profiles for v in one.kinds[index]))
                )
                self._budget.work(len(bound[rule]))
        kept: list[tuple[Rule, list[One]]] = []
        combinations = 1
        for rule, values in sorted(bound.items(), key=lambda item: len(item[1])):
            combinations *= max(1, len(values))
            if combinations > COMBINATIONS_MAX:
                break
            kept.append((rule, sorted(values, key=repr)))
        return kept

    # Distinct

    def _values_suffice(self, rest: Sequence[Rest]) -> bool:
        rules = {
            (profile.claim, index)
            for group in rest
            for profile in group.profiles
            for index in profile.constraints
            if self._question.demand.claims[profile.claim].constraints[index].distinct
        }
        return all(self._enough_values(rule, [one for one in rest if one.is_under(rule)]) for rule in rules)

    def _enough_values(self, rule: Rule, rest: Sequence[Rest]) -> bool:
        """Enough values that nobody has yet, where every device has just one."""
        claim, index = rule
        used = self._state.rules[claim][index] or UNKNOWN_VALUE
        numbers: dict[Value, int] = {}
        needs = []
        for group in rest:
            bits = 0
            for profile in group.profiles:
                if index in profile.odd or any(len(value) != 1 for value in profile.kinds[index]):
                    return True  # of lists, and of what has no type, counting proves nothing
                self._budget.work(DRAWS_WORK * profile.open.bit_count())
                for at in bits_of(profile.open):
                    value = profile.values[index][at]
                    if value and not value & used and self._shape.is_alive(at):
                        bits |= 1 << numbers.setdefault(value, len(numbers))
            needs.append(Need(bits, group.units))
        return self._matchable(needs, [1] * len(numbers))
