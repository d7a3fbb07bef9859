"""Which devices are as good as others, so that a failure with one is a failure with all.

Two devices are *alike* when every request of the demand sees the same in them:
their states, the attribute values that constraints compare, their capacity and
what they draw from counters. Devices that draw from the same counters belong to
one *cell*; two cells are alike when they hold alike devices in the same order over
the same amounts. A device without counters is a cell of its own.

Swapping two alike cells that have been used in the same way changes nothing that
a search could notice, not even an error it would meet. Hence the two uses:

    twin(at)     where trying a device failed, trying its twins fails too
    key(...)     states with the same key have the same future

A position in the order of trying breaks the symmetry for the request that is
being filled, because only later devices may follow; `key` says so by telling
cells beyond that position apart.
"""

from collections.abc import Hashable, Sequence

from .budget import Budget
from .demand import Alternative
from .question import Question
from .state import State

DRAWS_WORK = 8
"""Units of work that looking at all the counters of one device takes."""

MEMBERS_FREE = 16
"""Cells of so many devices are looked at for nothing: a step pays for that."""


class Shape:
    """Computed once a search has had its first failure; easy problems never pay for it."""

    def __init__(self, question: Question, state: State, budget: Budget, *, heed_errors: bool) -> None:
        self._question = question
        self._state = state
        self._budget = budget
        self._requests = [
            request.alternatives for claim in question.demand.claims for request in claim.requests
        ]
        self._offsets = _offsets([len(claim.requests) for claim in question.demand.claims])
        self._has_admin = any(one.admin for one in question.demand.alternatives())
        self._heed_errors = heed_errors
        self._ids: dict[Hashable, int] = {}
        rows = question.rows.values()
        candidates = sorted({at for row in rows for at in (*row.worth_trying, *row.selected)})
        compared = sum(1 + len(one.constraints) for one in question.demand.alternatives())
        budget.work(len(candidates) * (len(rows) + compared))
        self._usable = self._uses(candidates)
        # A request for all devices stops at the first that is in use, and a constraint that
        # objects before that is an error: which of two alike devices is in use then matters.
        self._ordered = {
            at
            for one in question.demand.alternatives()
            if heed_errors and one.all_devices and one.constraints
            for at in question.row(one).selected
        }
        # Nobody checks published counters: a device that draws less than nothing gives, and then
        # what is out of reach may come back. Such hardware is judged by its past, and not counted.
        self.has_givers = any(
            amount < 0 for at in candidates for _, amount in question.devices[at].kind.draws
        )
        likeness = {at: self._id(self._likeness(at)) for at in candidates}
        self.cell_of: dict[int, int] = {}
        self._types: list[int] = []
        self.cells: list[list[int]] = []  # devices, in order
        self._local: dict[int, int] = {}  # a device's likeness within its cell
        self._sets: list[dict[str, int]] = []  # counter sets of a cell, by their place in it
        self._by_past: list[bool] = []  # whether a cell is judged by its past rather than its future
        self._known: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._alive: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}
        for cell, members in enumerate(self._connected(candidates)):
            self._settle(cell, members, likeness)

    def twin(self, at: int, claim: int, request: int) -> Hashable:
        """Equal for devices that this request might as well exchange."""
        cell = self.cell_of[at]
        if len(self.cells[cell]) == 1 and at not in self._state.shares:
            return (self._local[at], at in self._state.holders and self._marks(cell))
        return (self._local[at], self._types[cell], self._condition(cell, self._later(claim, request)))

    def key(self, claim: int, request: int, beyond: int | None) -> Hashable:
        """What the rest of the problem depends on, from this request on.

        `beyond` is the position after which the request in progress may still choose,
        or None when it may choose anywhere.
        """
        later = self._later(claim, request)
        self._budget.work(len(self._state.taken))
        near: list[tuple[int, int]] = []
        far: list[tuple[int, int]] = []
        for cell in {self.cell_of[taking.at] for taking in self._state.taken}:
            if any(self._usable[at] & later for at in self.cells[cell]):
                condition = self._condition(cell, later)
                if beyond is None or self.cells[cell][-1] <= beyond:
                    near.append((self._types[cell], condition))
                else:
                    far.append((cell, condition))
        return (tuple(sorted(near)), tuple(sorted(far)))

    def _later(self, claim: int, request: int) -> int:
        """This request and all that follow, as bits."""
        return -1 << (self._offsets[claim] + request)

    def _condition(self, cell: int, later: int) -> int:
        """What a cell is still good for, as a number; equal numbers, equal prospects.

        How it came to that does not matter, unless errors do: they are met on devices
        that are long out of reach. Shares and admin access leave marks of their own.
        """
        if self._by_past[cell]:
            return self._id(self._marks(cell))
        key = (cell, later, self.past_of(cell))
        if key not in self._known:
            self._budget.work(DRAWS_WORK * len(self.cells[cell]))
            self._known[key] = self._id(self._prospects(cell, later))
        return self._known[key]

    def _prospects(self, cell: int, later: int) -> Hashable:
        """The devices that can still be chosen, in order, and what there is to draw from."""
        alive = [at for at in self.alive_in(cell) if self._usable[at] & later]
        if not alive or not self._sets[cell]:
            return tuple(self._local[at] for at in alive)
        pool = self._question.view.pool_of[alive[0]]
        left = self._state.left(pool)
        wanted: dict[tuple[str, str], int] = {}
        for at in alive:
            for key, amount in self._question.devices[at].kind.draws:
                wanted[key] = wanted.get(key, 0) + amount
        names = self._sets[cell]
        return (
            tuple(self._local[at] for at in alive),
            # More than all of them could draw is as good as just enough.
            tuple(sorted((names[key[0]], key[1], min(left[key], most)) for key, most in wanted.items())),
            tuple((names[key], self._state.agreement(pool, key)) for key in sorted({s for s, _ in wanted})),
        )

    def past_of(self, cell: int) -> tuple[int, ...]:
        """The devices of a cell that have been chosen, as a whole or in part.

        A device that an admin looks at as well is there twice: it draws from counters twice.
        """
        self._pay_for(cell)
        holders, shares = self._state.holders, self._state.shares
        return tuple(
            [at for at in self.cells[cell] for _ in range(len(holders.get(at, ())) or (at in shares))]
        )

    def alive_in(self, cell: int) -> tuple[int, ...]:
        """The devices of a cell that could still be chosen."""
        key = (cell, self.past_of(cell))
        if key not in self._alive:
            self._budget.work(DRAWS_WORK * len(self.cells[cell]))
            self._alive[key] = tuple(at for at in self.cells[cell] if self.is_alive(at))
        return self._alive[key]

    def is_alive(self, at: int) -> bool:
        """Whether the device could still be chosen, as far as holders and counters go."""
        question, state = self._question, self._state
        if at in question.owned or at in state.holders:
            return False
        kind = question.devices[at].kind
        return not kind.consumption or state.is_charged(at) or state.may_draw(at, kind)

    def _uses(self, candidates: Sequence[int]) -> dict[int, int]:
        uses = dict.fromkeys(candidates, 0)
        for place, alternatives in enumerate(self._requests):
            for at in {at for one in alternatives for at in self._reach(one)}:
                uses[at] |= 1 << place
        return uses

    def _reach(self, alternative: Alternative) -> tuple[int, ...]:
        row = self._question.row(alternative)
        return row.selected if alternative.all_devices else row.worth_trying

    def _likeness(self, at: int) -> Hashable:
        question = self._question
        kind = question.devices[at].kind
        seen: list[Hashable] = []
        for row in question.rows.values():
            parts = row.parts.get(at)
            seen.append((row.states[at], parts and tuple((name, q.nano) for name, q in parts.items())))
        for alternatives in self._requests:
            for one in alternatives:
                rules = question.demand.claims[one.claim].constraints
                seen.extend(question.value(one, rules[index], at) for index in one.constraints)
        usage = question.shared.get(at)
        capacity = (
            tuple((name, capacity.value.nano) for name, capacity in kind.capacity.items())
            if question.demand.features.consumable_capacity
            else ()
        )
        return (
            tuple(seen),
            at in question.owned,
            usage and (len(usage.sharers), tuple(sorted(usage.consumed.items()))),
            kind.shareable,
            capacity,
            at if at in self._ordered else None,
        )

    def _connected(self, candidates: Sequence[int]) -> list[list[int]]:
        """Devices that draw from common counter sets, directly or through others."""
        question = self._question
        leader: dict[Hashable, Hashable] = {}

        def find(one: Hashable) -> Hashable:
            while (above := leader.setdefault(one, one)) != one:
                leader[one] = leader.setdefault(above, above)  # half the way for whoever comes next
                one = above
            return one

        groups: dict[Hashable, list[int]] = {}
        roots: dict[int, Hashable] = {}
        for at in candidates:
            root: Hashable = ("device", at)
            for consumption in question.devices[at].kind.consumption:
                counters = find((question.view.pool_of[at], consumption.counter_set))
                leader[counters] = find(root)
            roots[at] = root
        for at in candidates:
            groups.setdefault(find(roots[at]), []).append(at)
        return list(groups.values())

    def _settle(self, cell: int, members: list[int], likeness: dict[int, int]) -> None:
        question = self._question
        pool = question.view.pool_of[members[0]]
        names: dict[str, int] = {}  # counter sets, renamed in order of appearance
        described: list[Hashable] = []
        for at in members:
            draws = tuple(
                (names.setdefault(one.counter_set, len(names)), one.amounts, one.groups)
                for one in question.devices[at].kind.consumption
            )
            described.append((likeness[at], draws))
        state: list[Hashable] = []
        if names:
            stock = question.stock(pool)
            state = [
                (
                    tuple(sorted((c, n) for (s, c), n in stock.left.items() if s == name)),
                    stock.groups.get(name),
                    stock.overdrawn,
                )
                for name in names
            ]
        self.cells.append(members)
        self._types.append(self._id((tuple(described), tuple(state))))
        shares = question.demand.features.consumable_capacity
        self._sets.append(names)
        self._by_past.append(
            self._heed_errors
            or self._has_admin
            or self.has_givers
            or (shares and any(question.devices[at].kind.shareable for at in members))
        )
        for at, description in zip(members, described, strict=True):
            self.cell_of[at] = cell
            self._local[at] = self._id(description)

    def _marks(self, cell: int) -> Hashable:
        """How a cell has been used: which likenesses, how often, and by which claims if that matters."""
        self._pay_for(cell)
        state = self._state
        marks = []
        for at in self.cells[cell]:
            holders, shares = state.holders.get(at), state.shares.get(at, 0)
            if holders or shares:
                who = self._id(holders) if self._has_admin else len(holders or ())
                consumed = tuple(sorted(state.consumed_of(at).items())) if shares else ()
                marks.append((self._local[at], who, self._id((shares, consumed))))
        marks.sort()
        return tuple(marks)

    def _pay_for(self, cell: int) -> None:
        """A look at every member; of a few it costs less than paying for it."""
        members = len(self.cells[cell])
        if members > MEMBERS_FREE:
            self._budget.work(members // 4)

    def _id(self, content: Hashable) -> int:
        return self._ids.setdefault(content, len(self._ids))


def _offsets(lengths: list[int]) -> list[int]:
    total, offsets = 0, []
    for length in lengths:
        offsets.append(total)
        total += length
    return offsets
