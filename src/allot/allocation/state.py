"""What a search has chosen so far, and whether one more device may join.

`take` does all checks that depend on earlier choices, in upstream's order, and
either changes everything or nothing; `undo` takes back the latest. Nothing else
changes the state, so there is one place where undo can be wrong.

An example
    A card of 8Gi is published whole and in halves, and a claim asks for two devices of it.

        take whole     yes: all 8Gi of the card's counter are drawn
        take half-0    no: nothing is left of the counter, and nothing has changed
        undo           the 8Gi are back
        take half-0    yes, and 4Gi are left
        take half-0    no: it is in use
        take half-1    yes: the claim has its two devices
"""

from typing import NamedTuple

from .capacity import Consumed
from .demand import Alternative
from .expression import Failure
from .kind import Kind, Value
from .pool import SPLIT, CounterKey, Groups, joined
from .question import DeviceState, Question

Agreed = Value | None
"""What a constraint has seen: None before the first device, then the values that all have
in common (match) or that any has (distinct)."""

Rules = tuple[Agreed, ...]
"""One entry for each constraint of a claim."""


class FatalError(Exception):
    """The order of trying met an error before a solution."""

    def __init__(self, message: str, device: str = "") -> None:
        super().__init__(message)
        self.device = device


class Taking(NamedTuple):
    """One choice, with what is needed to take it back."""

    alternative: Alternative
    at: int
    rules: Rules  # before
    parts: Consumed | None  # what a share consumes
    charged: bool  # whether it draws from counters
    groups: tuple[tuple[tuple[int, str], Groups], ...]  # before


class State:
    def __init__(self, question: Question, *, heed_errors: bool) -> None:
        self.question = question
        self.taken: list[Taking] = []
        self.sizes = [0] * len(question.demand.claims)  # devices of each claim
        self.rules: list[Rules] = [(None,) * len(claim.constraints) for claim in question.demand.claims]
        self.holders: dict[int, tuple[int, ...]] = {}  # claims that chose a device as a whole
        self.shares: dict[int, int] = {}  # shares chosen of a device
        self._heed_errors = heed_errors
        self._features = question.demand.features
        self._left: dict[int, dict[CounterKey, int]] = {}  # counters, by pool
        self._groups: dict[tuple[int, str], Groups] = {}  # by pool and counter set
        self._flight: dict[int, dict[str, int]] = {}  # consumed capacity, by device

    def is_in_use(self, alternative: Alternative, at: int) -> bool:
        """An admin looks over shoulders: only its own claim keeps it away."""
        holders = self.holders.get(at)
        if alternative.admin:
            return holders is not None and alternative.claim in holders
        return holders is not None or at in self.question.owned

    def take(self, alternative: Alternative, at: int) -> bool:
        """Choose the device if it may join. Raises FatalError where upstream would."""
        if self.is_in_use(alternative, at):
            return False
        row = self.question.row(alternative)
        state = row.states[at]
        if state is not DeviceState.OPEN:
            if state is DeviceState.ERROR and self._heed_errors:
                device = str(self.question.devices[at].id)
                raise FatalError(self.question.error(alternative, at), device)
            return False
        parts = row.parts.get(at)
        has_room = not parts or self._has_room(at, parts)
        if not has_room and not alternative.all_devices:
            return False
        kind = self.question.devices[at].kind
        shareable = kind.shareable and self._features.consumable_capacity
        charged = bool(kind.consumption) and not self.is_charged(at)
        if charged and not self.may_draw(at, kind):
            return False
        rules = self.rules[alternative.claim]
        agreed = self._agreed(alternative, at, rules) if alternative.constraints else rules
        if agreed is None:
            return False
        if not has_room:  # of all devices: a constraint that objects is fatal, and asked first
            return False
        self.rules[alternative.claim] = agreed
        groups = self._draw(at, kind, 1) if charged else ()
        if shareable:
            parts = parts or {}
            self._consume(at, parts, 1)
            self.shares[at] = self.shares.get(at, 0) + 1
        else:
            parts = None
            self.holders[at] = (*self.holders.get(at, ()), alternative.claim)
        self.sizes[alternative.claim] += 1
        self.taken.append(Taking(alternative, at, rules, parts, charged, groups))
        return True

    def undo(self) -> None:
        """Take back the latest choice."""
        alternative, at, rules, parts, charged, groups = self.taken.pop()
        self.sizes[alternative.claim] -= 1
        self.rules[alternative.claim] = rules
        if parts is None:
            rest = self.holders[at][:-1]
            if rest:
                self.holders[at] = rest
            else:
                del self.holders[at]
        else:
            self._consume(at, parts, -1)
            self.shares[at] -= 1
            if not self.shares[at]:
                del self.shares[at]
        if charged:
            self._draw(at, self.question.devices[at].kind, -1)
            for key, before in groups:
                self._groups[key] = before

    def left(self, pool: int) -> dict[CounterKey, int]:
        """What the choices so far leave of a pool's counters."""
        left = self._left.get(pool)
        if left is None:
            left = self._left[pool] = dict(self.question.stock(pool).left)
        return left

    def agreement(self, pool: int, counter_set: str) -> Groups:
        key = (pool, counter_set)
        if key not in self._groups:
            self._groups[key] = self.question.stock(pool).groups.get(counter_set)
        return self._groups[key]

    def consumed_of(self, at: int) -> dict[str, int]:
        """What others and the choices so far consume of a device's capacity."""
        total = dict(self._flight.get(at, ()))
        if usage := self.question.shared.get(at):
            for name, amount in usage.consumed.items():
                total[name] = total.get(name, 0) + amount
        return total

    def is_charged(self, at: int) -> bool:
        """Whether the device draws from its counters already: the first share pays for all."""
        if not (self._features.consumable_capacity and self.question.devices[at].kind.shareable):
            return False
        return at in self.shares or at in self.question.shared

    def _has_room(self, at: int, parts: Consumed) -> bool:
        if at not in self._flight and at not in self.question.shared:
            return True  # the row has compared an unused device already
        used = self.consumed_of(at)
        capacity = self.question.devices[at].kind.capacity
        return all(used.get(name, 0) + part.nano <= capacity[name].value.nano for name, part in parts.items())

    def may_draw(self, at: int, kind: Kind) -> bool:
        """Whether counters and groups allow the device beside what is taken."""
        pool = self.question.view.pool_of[at]
        if not self._features.partitionable_devices or self.question.stock(pool).overdrawn:
            return False
        left = self.left(pool)
        if any(left[key] < amount for key, amount in kind.draws):
            return False
        return not self._features.compatibility_groups or all(
            joined(self.agreement(pool, counter_set), names) is not SPLIT
            for counter_set, _, names in kind.consumption
        )

    def _draw(self, at: int, kind: Kind, times: int) -> tuple[tuple[tuple[int, str], Groups], ...]:
        pool = self.question.view.pool_of[at]
        left = self.left(pool)
        before = []
        for counter_set, amounts, names in kind.consumption:
            for counter, amount in amounts:
                left[counter_set, counter] -= times * amount
            if times > 0 and self._features.compatibility_groups:
                key = (pool, counter_set)
                before.append((key, self.agreement(pool, counter_set)))
                self._groups[key] = joined(self._groups[key], names)
        return tuple(before)

    def _consume(self, at: int, parts: Consumed, times: int) -> None:
        flight = self._flight.setdefault(at, {})
        for name, part in parts.items():
            flight[name] = flight.get(name, 0) + times * part.nano
        if times < 0 and self.shares[at] == 1:
            del self._flight[at]

    def _agreed(self, alternative: Alternative, at: int, rules: Rules) -> Rules | None:
        """What the constraints have seen with this device, or None if one of them objects."""
        constraints = self.question.demand.claims[alternative.claim].constraints
        lists = self._features.list_type_attributes
        after = list(rules)
        for index in alternative.constraints:
            constraint = constraints[index]
            value = self.question.value(alternative, constraint, at)
            if isinstance(value, Failure):
                if self._heed_errors:
                    raise FatalError(self._derived_error(alternative, constraint.attribute, at, value))
                return None
            if value is None or (lists and not value):
                joint: Agreed = None
            elif constraint.distinct:
                joint = _apart(rules[index], value)
            else:
                joint = _alike(rules[index], value)
            if joint is None:
                if alternative.all_devices and self._heed_errors:
                    raise FatalError(
                        f"{alternative.label}: cannot add device {self.question.devices[at].id} "
                        "because a claim constraint would not be satisfied"
                    )
                return None
            after[index] = joint
        return tuple(after)

    def _derived_error(self, alternative: Alternative, attribute: str, at: int, failure: Failure) -> str:
        device = self.question.devices[at].id
        return f"evaluate derived attribute {attribute} on device {device} failed: {failure.message}"


def _alike(agreed: Agreed, value: Value) -> Agreed:
    """The values in common. The first device decides, whatever it has."""
    return value if agreed is None else (agreed & value) or None


def _apart(agreed: Agreed, value: Value) -> Agreed:
    """All values so far, if the new ones are not among them; an unknown type only comes first."""
    if agreed is None:
        return value
    return None if not value or agreed & value else agreed | value
