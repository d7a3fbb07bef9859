"""Why one device does not serve one request.

Each device gets exactly one reason: the first check that it fails, in an order that
goes from what the device is to what others have left of it. So the counts of an
explanation add up to the devices looked at, and the further down the list a device
gets, the nearer a miss it was.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from allot.api import Quantity, QuantityFormat

from .budget import Budget, BudgetSpent
from .capacity import Capacity, CapacityError, Policy, consumed
from .clauses import conjuncts
from .demand import Alternative, ClaimDemand, Demand
from .expression import Expression, Failure, selector
from .features import Features
from .inventory import NodeView
from .kind import Device, PoolId
from .ledger import Ledger, Usage
from .pool import NO_MEMBERS, SPLIT, CounterKey, Groups, PoolView, joined, usable
from .question import OPTIONAL_NODE_OPERATIONS, untolerated


class Reason(Enum):
    """In the order of the checks."""

    NODE = "on another node"
    GATED = "needing a feature that is off"
    UNJUDGED = "not judged, since selectors take too long to evaluate"
    SELECTOR = "not selected"
    FAILED = "whose selector fails"
    CAPACITY = "with too little capacity"
    OPERATIONS = "needing node operations that the node does not know"
    TAINT = "tainted"
    IN_USE = "in use"
    SHARED = "with too little capacity left"
    COUNTERS = "with too little left of a counter"
    GROUPS = "incompatible with what is in use beside it"
    ATTRIBUTE = "lacking an attribute that a constraint compares"
    FREE = "free"


COUNTERS_GATED = "shared counters"


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one device."""

    device: Device
    reason: Reason
    detail: str = ""
    holders: tuple[str, ...] = ()
    clause: str = ""  # the part of a selector that said no
    passed: int = 0  # parts of selectors that said yes before


class _Drawn(NamedTuple):
    """What those who hold devices of a pool draw from its counters."""

    users: list[Device]
    left: Mapping[CounterKey, int]


@dataclass(frozen=True, slots=True)
class Situation:
    """One demand, one node, what is taken there, and what selectors may cost to be evaluated for words."""

    demand: Demand
    view: NodeView
    ledger: Ledger
    budget: Budget
    _drawn: dict[PoolId, _Drawn] = field(default_factory=dict)
    _drained: dict[Device, "Finding | None"] = field(default_factory=dict)  # the same for every request

    @property
    def features(self) -> Features:
        return self.demand.features

    def usage(self, device: Device) -> Usage:
        return self.ledger.usage(device.id.pool_id).get(device.id.name, Usage())

    def drawn(self, pool: PoolView) -> _Drawn:
        if pool.id not in self._drawn:
            users = list(pool.drawing(self.ledger.usage(pool.id)))
            left = dict(pool.totals)
            for user in users:
                for key, amount in user.kind.draws:
                    left[key] -= amount
            self._drawn[pool.id] = _Drawn(users, left)
        return self._drawn[pool.id]

    def drained(self, device: Device, pool: PoolView) -> "Finding | None":
        """Why counters keep the device away, worked out once for all requests."""
        if device not in self._drained:
            self._drained[device] = _drained(self, device, pool)
        return self._drained[device]

    def findings(self, alternative: Alternative) -> list[Finding]:
        claim = self.demand.claims[alternative.claim]
        pools = {pool.id: pool for pool in self.view.pools}
        return [
            _judged(self, claim, alternative, device, pools[device.id.pool_id])
            for device in self.view.devices
        ]


def _judged(
    situation: Situation, claim: ClaimDemand, alternative: Alternative, device: Device, pool: PoolView
) -> Finding:
    if not usable(device, situation.view.node):
        return Finding(device, Reason.NODE)
    if device.kind.binding and not situation.features.device_binding_and_status:
        return Finding(device, Reason.GATED, "binding conditions")
    if device.kind.consumption and not situation.features.partitionable_devices:
        return Finding(device, Reason.GATED, COUNTERS_GATED)
    return (
        _unselected(situation, alternative, device)
        or _too_small(situation, alternative, device)
        or _unwelcome(situation, alternative, device)
        or _taken(situation, alternative, device)
        or situation.drained(device, pool)
        or _incomparable(situation, claim, alternative, device)
        or Finding(device, Reason.FREE)
    )


def _unselected(situation: Situation, alternative: Alternative, device: Device) -> Finding | None:
    passed = 0
    for clause in alternative.clauses:
        text = clause.expression.text
        try:
            answer = clause.expression.paid_on(device.kind, situation.budget)
        except BudgetSpent:
            return Finding(device, Reason.UNJUDGED)
        if isinstance(answer, Failure):
            return Finding(device, Reason.FAILED, f"{text}: {answer.message}")
        if answer is not True:
            at, part = _failed_part(text, situation, device)
            return Finding(device, Reason.SELECTOR, clause=part, passed=passed + at)
        passed += len(_parts(text, situation.features))
    return None


def _failed_part(text: str, situation: Situation, device: Device) -> tuple[int, str]:
    try:
        for at, (part, expression) in enumerate(_parts(text, situation.features)):
            if expression.paid_on(device.kind, situation.budget) is False:
                return at, part
    except BudgetSpent:
        pass  # then the whole is quoted
    return 0, text


@lru_cache(maxsize=1024)
def _parts(text: str, features: Features) -> tuple[tuple[str, Expression], ...]:
    return tuple((part, selector(part, features)) for part in conjuncts(text))


def _too_small(situation: Situation, alternative: Alternative, device: Device) -> Finding | None:
    if not situation.features.consumable_capacity:
        return None
    try:
        parts = _consumed(situation, alternative, device)
    except CapacityError as error:
        return Finding(device, Reason.CAPACITY, str(error))
    if parts is not None:
        return None
    short = [
        words
        for name, asked in alternative.want.capacity.items()
        if (words := _shortage(name, asked, device.kind.capacity.get(name), situation.features))
    ]
    return Finding(device, Reason.CAPACITY, ", ".join(short) or "its defaults are more than it has")


def _shortage(name: str, asked: Quantity, offered: Capacity | None, features: Features) -> str:
    if offered is None:
        return f"{name}: {asked} asked, none published"
    if asked > offered.value:
        return f"{name}: {asked} asked, {offered.value} published"
    fractional = features.fractional_capacity_range
    if offered.policy is None or consumed({name: asked}, {name: offered}, fractional=fractional) is not None:
        return ""
    return f"{name}: {asked} asked, allowed of {offered.value} is {_allowed(offered.policy)}"


def _allowed(policy: Policy) -> str:
    span = policy.range
    if span is None:
        return " or ".join(map(str, policy.values))
    most = f" to {span.max}" if span.max is not None else " or more"
    return f"{span.min}{most}" + (f" in steps of {span.step}" if span.step is not None else "")


def _consumed(
    situation: Situation, alternative: Alternative, device: Device
) -> Mapping[str, Quantity] | None:
    fractional = situation.features.fractional_capacity_range
    return consumed(alternative.want.capacity, device.kind.capacity, fractional=fractional)


def _unwelcome(situation: Situation, alternative: Alternative, device: Device) -> Finding | None:
    features = situation.features
    if device.place.skip_node_operations and features.newest_rules:
        declared = situation.view.node.declared_features
        if not features.optional_node_operations or OPTIONAL_NODE_OPERATIONS not in declared:
            return Finding(device, Reason.OPERATIONS)
    taint = untolerated(device, alternative.want) if features.device_taints else None
    if taint is not None:
        return Finding(device, Reason.TAINT, f"{taint.key}={taint.value}:{taint.effect}")
    return None


def _taken(situation: Situation, alternative: Alternative, device: Device) -> Finding | None:
    usage = situation.usage(device)
    if usage.owners and not alternative.admin:
        return Finding(device, Reason.IN_USE, holders=usage.owners)
    if not situation.features.consumable_capacity:
        return None
    parts = _consumed(situation, alternative, device) or {}
    for name, part in parts.items():
        value = device.kind.capacity[name].value
        left = value.nano - usage.consumed.get(name, 0)
        if part.nano > left:
            words = f"{name}: {part} needed, {Quantity(max(left, 0), value.format)} of {value} left"
            return Finding(device, Reason.SHARED, words, holders=usage.sharers)
    return None


def _drained(situation: Situation, device: Device, pool: PoolView) -> Finding | None:
    if not device.kind.consumption:
        return None
    usage = situation.usage(device)
    if device.kind.shareable and situation.features.consumable_capacity and usage.sharers:
        return None  # the shares in use have paid
    used = situation.ledger.usage(pool.id)
    users, all_left = situation.drawn(pool)
    wanted: dict[CounterKey, int] = {}
    for key, amount in device.kind.draws:
        wanted[key] = wanted.get(key, 0) + amount
    for (counter_set, counter), left in all_left.items():
        amount = wanted.get((counter_set, counter), 0)
        if amount > left:  # also of a counter that is overdrawn: then nothing may draw from the pool
            drawing = [user for user in users if _draws(user, counter_set, counter)]
            format = _written((device, *drawing), counter_set, counter)
            words = f"{Quantity(amount, format)} needed, {Quantity(left, format)} left"
            words = f"{counter_set}/{counter}: {words if left >= 0 else 'overdrawn'}"
            return Finding(device, Reason.COUNTERS, words, _holders(used, drawing))
    if situation.features.compatibility_groups:
        for counter_set, _, groups in device.kind.consumption:
            beside = {user: own for user in users if (own := _groups(user, counter_set)) is not None}
            if joined(_agreed(beside.values()), groups) is SPLIT:
                return Finding(device, Reason.GROUPS, counter_set, _holders(used, list(beside)))
    return None


def _written(devices: Iterable[Device], counter_set: str, counter: str) -> QuantityFormat:
    """The family of suffixes that the first of the devices to draw from a counter uses for it."""
    texts = (
        one.counters[counter].value
        for device in devices
        for one in device.kind.description.consumes_counters
        if one.counter_set == counter_set and counter in one.counters
    )
    return Quantity.parse(next(texts, "0")).format


def _groups(device: Device, counter_set: str) -> frozenset[str] | None:
    return next((one.groups for one in device.kind.consumption if one.counter_set == counter_set), None)


def _agreed(members: Iterable[frozenset[str]]) -> Groups:
    """What those who draw already agree on; one that was let in against the rules does not count."""
    agreed: Groups = NO_MEMBERS
    for groups in members:
        after = joined(agreed, groups)
        if after is not SPLIT or (agreed and groups):
            agreed = after
    return agreed


def _draws(device: Device, counter_set: str, counter: str) -> int:
    return sum(
        amount
        for name, amounts, _ in device.kind.consumption
        for its, amount in amounts
        if (name, its) == (counter_set, counter)
    )


def _holders(used: Mapping[str, Usage], devices: list[Device]) -> tuple[str, ...]:
    usages = [used[device.id.name] for device in devices]
    return tuple(dict.fromkeys(name for usage in usages for name in (*usage.owners, *usage.sharers)))


def _incomparable(
    situation: Situation, claim: ClaimDemand, alternative: Alternative, device: Device
) -> Finding | None:
    for index in alternative.constraints:
        name = claim.constraints[index].attribute
        if name not in alternative.derived and device.kind.attribute(name) is None:
            return Finding(device, Reason.ATTRIBUTE, name)
    return None
