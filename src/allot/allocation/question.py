"""One demand put to one node: which devices could serve which request, and which never can.

What is decided here does not depend on the order of trying. For every want and
device there is one of four states; `search` then only looks at what depends on
earlier choices (devices in use, counters, groups, shared capacity, constraints).

    NO       not selected: a selector says no, another node, too little capacity
    ERROR    asking is fatal: an expression fails, or an amount cannot be expressed
    BLOCKED  selected and never allocatable: tainted, gated, node operations
    OPEN     worth a try

ERROR matters only where upstream's order of trying reaches it, so it is an answer
here and not an exception. A request for all devices is the exception to that: it
looks at every device before anything is tried.

An example
    A node publishes `small` with 16Gi, `large` with 80Gi, `worn` with 80Gi and a taint, and
    `bare`, which says nothing of its memory. One device of at least 40Gi is asked for.

        small    NO        the selector says no, whatever else is chosen
        large    OPEN
        worn     BLOCKED   selected, and nobody tolerates its taint
        bare     ERROR     the selector reads what is not there

    `worth_trying` is large and bare: where the order of trying comes to bare before a plan is
    complete, the answer is its error. `selected` is large and worn: who asks for all devices
    asks for both, and cannot have them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import cast

from allot.api import resource

from .answer import Refused
from .budget import Budget
from .capacity import CapacityError, Consumed, consumed
from .demand import RESULTS_MAX, Alternative, Constraint, Demand, Want
from .expression import Failure
from .inventory import Inventory, NodeView
from .kind import Device, Value, value_of
from .ledger import Ledger, Usage
from .node import BadNodeSelector, Node
from .pool import SPLIT, CounterKey, Groups, joined, usable

OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
"""What a node declares when its agent can skip operations."""

ROWS_REMEMBERED = 256


class DeviceState(IntEnum):
    NO = 0
    ERROR = 1
    BLOCKED = 2
    OPEN = 3


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a device stands at ERROR."""

    message: str
    clause: int | None = None  # place among the alternative's clauses
    compiling: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """How every device of the node stands with one want."""

    states: tuple[DeviceState, ...]
    worth_trying: tuple[int, ...]  # OPEN and ERROR, in order
    selected: tuple[int, ...]  # OPEN and BLOCKED, in order: what "all devices" means
    troubles: Mapping[int, Trouble]
    parts: Mapping[int, Consumed]  # what an allocation takes of each capacity; empty without the gate
    is_writable: bool  # whether every device could be put into a result


@dataclass(frozen=True, slots=True)
class Stock:
    """What is left of a pool's counters, and what groups those who draw from them agree on."""

    left: Mapping[CounterKey, int]  # may be below zero: a driver may shrink what is in use
    groups: Mapping[str, Groups]  # by counter set
    overdrawn: bool
    """Some counter is below zero. Upstream looks at every counter of the pool before it lets
    another device draw from any, so then none may."""


@dataclass(slots=True, eq=False)
class Question:
    demand: Demand
    view: NodeView
    rows: Mapping[Want, Row]
    usages: Mapping[int, Mapping[str, Usage]]  # what is taken, by place of the pool in the view
    owned: frozenset[int]  # devices that somebody holds as a whole
    shared: Mapping[int, Usage]  # devices of which somebody holds a share
    _stocks: dict[int, Stock] = field(default_factory=dict)

    @property
    def node(self) -> Node:
        return self.view.node

    @property
    def devices(self) -> tuple[Device, ...]:
        return self.view.devices

    def row(self, alternative: Alternative) -> Row:
        return self.rows[alternative.want]

    def count(self, alternative: Alternative) -> int:
        """How many devices the alternative needs on this node."""
        return len(self.row(alternative).selected) if alternative.all_devices else alternative.count

    def value(self, alternative: Alternative, constraint: Constraint, at: int) -> Value | Failure | None:
        """The attribute that a constraint compares; None when the device has none."""
        kind = self.view.devices[at].kind
        if computed := alternative.derived.get(constraint.attribute):
            return cast(Value | Failure, computed.on(kind))
        lists = self.demand.features.list_type_attributes
        key = (constraint.attribute, lists)
        if key in kind.remembered:
            return cast(Value | None, kind.remembered[key])
        attribute = kind.attribute(constraint.attribute)
        value = None if attribute is None else value_of(attribute, lists=lists)
        kind.remember(key, value)
        return value

    def stock(self, pool: int) -> Stock:
        """What the allocated devices of a pool leave for others to draw from."""
        if pool not in self._stocks:
            self._stocks[pool] = self._weighed(pool)
        return self._stocks[pool]

    def error(self, alternative: Alternative, at: int) -> str:
        """The words for a device that stands at ERROR."""
        trouble = self.row(alternative).troubles[at]
        device = self.devices[at].id
        if trouble.clause is None:
            return f"{alternative.label}: device {device}: {trouble.message}"
        clause = alternative.clauses[trouble.clause]
        where = f"{clause.owner}: selector #{clause.index}"
        if trouble.compiling:
            return f"{where}: CEL compile error: {trouble.message}"
        return f"{where} on device {device}: CEL runtime error: {trouble.message}"

    @property
    def has_invalid_pool(self) -> bool:
        return any(pool.invalid for pool in self.view.pools)

    def is_risky(self) -> bool:
        """Whether some order of trying could meet an error."""
        return self.last_risk() is not None

    def last_risk(self) -> tuple[int, int] | None:
        """The last request, as claim and place in it, that could meet an error; None if none could."""
        risks = [(one.claim, one.request) for one in self.demand.alternatives() if self._risks(one)]
        return risks[-1] if risks else None

    def _risks(self, alternative: Alternative) -> bool:
        row = self.row(alternative)
        if row.troubles or not row.is_writable or (alternative.all_devices and alternative.constraints):
            return True
        rules = self.demand.claims[alternative.claim].constraints
        for index in alternative.constraints if alternative.derived else ():
            if rules[index].attribute in alternative.derived and any(
                isinstance(self.value(alternative, rules[index], at), Failure) for at in row.worth_trying
            ):
                return True
        return False

    def _weighed(self, pool: int) -> Stock:
        if not self.demand.features.partitionable_devices:
            return Stock({}, {}, overdrawn=False)  # nothing draws, so nothing is left to know
        seen = self.view.pools[pool]
        left = dict(seen.totals)
        groups: dict[str, Groups] = {}
        for device in seen.drawing(self.usages.get(pool, ())):
            for counter_set, amounts, names in device.kind.consumption:
                for counter, amount in amounts:
                    left[counter_set, counter] -= amount
                before = groups.get(counter_set)
                after = joined(before, names)
                if after is SPLIT and (before == frozenset() or not names):
                    continue  # accepted against the rules; whoever came first decides
                groups[counter_set] = after
        return Stock(left, groups, any(amount < 0 for amount in left.values()))


def has_many_terms(device: Device) -> bool:
    """Such a device cannot be put into a result; validation keeps them out of slices, not of devices."""
    selector = device.node_selector
    return selector is not None and len(selector.node_selector_terms) > 1


def ask(
    node: Node, inventory: Inventory, ledger: Ledger, demand: Demand, budget: Budget
) -> Question | Refused:
    """Put the demand to the node, or say why that is already wrong. Raises BudgetSpent.

    What was read before that is kept, so whoever asks again comes further.
    """
    try:
        view = inventory.view(node)
    except BadNodeSelector as error:
        return Refused(f"gather pool information: {error}")
    rows = {one.want: _row(view, one.want, budget) for one in demand.alternatives()}
    question = Question(demand, view, rows, *_taken(view, ledger))
    if demand.derives:
        _derive(question, budget)
    for alternative in demand.alternatives():
        if alternative.all_devices and (wrong := _wrong_for_all(question, alternative)):
            return Refused(wrong)
    for claim in demand.claims:
        least = sum(min(question.count(one) for one in request.alternatives) for request in claim.requests)
        if least > RESULTS_MAX:
            return Refused(
                f"claim {claim.label}: number of requested devices {least} "
                f"exceeds the claim limit of {RESULTS_MAX}"
            )
    return question


def _taken(
    view: NodeView, ledger: Ledger
) -> tuple[dict[int, Mapping[str, Usage]], frozenset[int], dict[int, Usage]]:
    usages: dict[int, Mapping[str, Usage]] = {}
    owned: list[int] = []
    shared: dict[int, Usage] = {}
    for place, pool in enumerate(view.pools):
        used = ledger.usage(pool.id)
        if not used:
            continue
        usages[place] = used
        for name, usage in used.items():
            at = view.index.get((*pool.id, name))
            if at is not None:
                if usage.owners:
                    owned.append(at)
                if usage.sharers:
                    shared[at] = usage
    return usages, frozenset(owned), shared


def _derive(question: Question, budget: Budget) -> None:
    """Evaluate what constraints will compare, once a kind, so that later it is only looked up."""
    for alternative in question.demand.alternatives():
        if not alternative.derived:
            continue
        rules = question.demand.claims[alternative.claim].constraints
        for index in alternative.constraints:
            computed = alternative.derived.get(rules[index].attribute)
            if computed is None:
                continue
            for kind in {question.devices[at].kind for at in question.row(alternative).worth_trying}:
                computed.paid_on(kind, budget)


def _wrong_for_all(question: Question, alternative: Alternative) -> str | None:
    """Asking for all devices needs to know all of them."""
    for pool in question.view.pools:
        if pool.incomplete or pool.invalid:
            how = "being updated" if pool.incomplete else "invalid"
            return (
                f"{alternative.label}: asks for all devices, but resource pool {pool.id} is currently {how}"
            )
    first = next(iter(question.row(alternative).troubles), None)
    return None if first is None else question.error(alternative, first)


def _row(view: NodeView, want: Want, budget: Budget) -> Row:
    """Remembered with the view: it does not depend on who holds what."""
    row = view.remembered.get(want)
    if row is None:
        if len(view.remembered) >= ROWS_REMEMBERED:
            view.remembered.clear()
        row = view.remembered[want] = _read_row(view, want, budget)
    return cast(Row, row)


def _read_row(view: NodeView, want: Want, budget: Budget) -> Row:
    budget.work(len(view.devices))
    states: list[DeviceState] = []
    troubles: dict[int, Trouble] = {}
    parts: dict[int, Consumed] = {}
    by_kind: dict[object, Consumed | Trouble | None] = {}
    for at, device in enumerate(view.devices):
        key = (device.kind, device.place.per_device)
        if key not in by_kind:
            by_kind[key] = _selected(view, want, device, budget)
        found = by_kind[key]
        if found is None:
            states.append(DeviceState.NO)
        elif isinstance(found, Trouble):
            states.append(DeviceState.ERROR)
            troubles[at] = found
        else:
            states.append(DeviceState.BLOCKED if _blocked(view, want, device) else DeviceState.OPEN)
            if found:
                parts[at] = found
    return Row(
        states=tuple(states),
        worth_trying=tuple(
            at for at, one in enumerate(states) if one in (DeviceState.OPEN, DeviceState.ERROR)
        ),
        selected=tuple(at for at, one in enumerate(states) if one >= DeviceState.BLOCKED),
        troubles=troubles,
        parts=parts,
        is_writable=not any(has_many_terms(device) for device in view.devices),
    )


def _selected(view: NodeView, want: Want, device: Device, budget: Budget) -> Consumed | Trouble | None:
    """What an allocation takes of the device's capacity; None when the device is not selected."""
    kind = device.kind
    if kind.binding and not view.features.device_binding_and_status:
        return None
    for index, expression in enumerate(want.expressions):
        match = expression.paid_on(kind, budget)
        if isinstance(match, Failure):
            return Trouble(match.message, index, match.compiling)
        if not match:
            return None
    try:
        if not usable(device, view.node):
            return None
        if not view.features.consumable_capacity:
            return {}
        return consumed(want.capacity, kind.capacity, fractional=view.features.fractional_capacity_range)
    except BadNodeSelector as error:
        return Trouble(str(error))
    except CapacityError as error:
        return Trouble(f"checking capacity: {error}")


def _blocked(view: NodeView, want: Want, device: Device) -> bool:
    features = view.features
    if device.kind.consumption and not features.partitionable_devices:
        return True
    if device.place.skip_node_operations and features.newest_rules and not _may_skip(view):
        return True
    return features.device_taints and untolerated(device, want) is not None


def _may_skip(view: NodeView) -> bool:
    return view.features.optional_node_operations and OPTIONAL_NODE_OPERATIONS in view.node.declared_features


def untolerated(device: Device, want: Want) -> resource.DeviceTaint | None:
    """The first taint that keeps the want away from the device."""
    for taint in device.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not any(
            _tolerates(toleration, taint) for toleration in want.tolerations
        ):
            return taint
    return None


def _tolerates(toleration: resource.DeviceToleration, taint: resource.DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
