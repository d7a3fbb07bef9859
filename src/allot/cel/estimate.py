"""The most a selector can cost, before it ever runs.

Costs are CEL's abstract units: one for a look-up or a simple call, a tenth for
each character of a string that is read, ten for making a list. Admission refuses
what may exceed the limit, so the numbers are part of the API: they are computed
by the rules of Kubernetes 1.37, including its generosities and its oddities.

What is followed through the tree
    sizes    how long a string, list or map can be
    entries  how large the elements of a container can be
    paths    where in the device a value comes from (`hints` knows the bounds there)
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from . import hints
from .callcost import CallCost, Operand, call_cost
from .checker import Checked
from .hints import Path
from .span import EMPTY, ONE, UNKNOWN, ZERO, Span, fixed
from .tree import Bind, Call, Comprehension, Ident, ListNode, Literal, Loop, MapNode, Node, OptMap, Select
from .types import Kind, Type, is_optional

LIST_COST = fixed(10)
MAP_COST = fixed(30)
_SCALARS = frozenset({Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT})


class Entries(NamedTuple):
    """Sizes of what a container holds."""

    container: Kind
    key: Span
    value: Span

    def either(self, other: "Entries | None") -> "Entries | None":
        if other is None:
            return None
        return Entries(self.container, self.key.either(other.key), self.value.either(other.value))


class Local(NamedTuple):
    """What is known of a variable that a macro introduced."""

    path: Path
    size: Span | None
    entries: Entries | None


SizeAt = Callable[[Path], Span | None]
"""The size of what lies at a path, or None where nothing is known."""


def estimate(checked: Checked, size_at: SizeAt = hints.size_at) -> Span:
    return _Estimator(checked, size_at).cost(checked.root)


class _Estimator:
    def __init__(self, checked: Checked, size_at: SizeAt) -> None:
        self._checked = checked
        self._size_at = size_at
        self._sizes: dict[int, Span] = {}
        self._entries: dict[int, Entries] = {}
        self._paths: dict[int, Path] = {}
        self._locals: Mapping[str, Local] = {}

    def cost(self, node: Node) -> Span:
        match node:
            case Literal():
                return ZERO
            case Ident():
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Comprehension():
                return self._sort_by(node) if node.loop is Loop.SORT_BY else self._comprehension(node)
            case Bind():
                return self._bind(node)
            case OptMap():
                return self._opt_map(node)

    # -- what is known about a node

    def _type(self, node: Node) -> Type:
        return self._checked.types[node.id]

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            local = self._locals.get(node.name)
            return (node.name.lstrip("."),) if local is None else local.path
        return self._paths.get(node.id, ())

    def _size(self, node: Node) -> Span | None:
        known = self._sizes.get(node.id) or _written_size(node) or self._size_at(self._path(node))
        if known is not None:
            return known
        if _is_scalar(self._type(node)):
            return ONE
        local = self._locals.get(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.size

    def _size_or_unknown(self, node: Node) -> Span:
        found = self._size(node)
        return UNKNOWN if found is None else found

    def _entries_of(self, node: Node) -> Entries | None:
        known = self._entries.get(node.id)
        if known is None and isinstance(node, Ident) and node.name in self._locals:
            return self._locals[node.name].entries
        return known

    def _remember(self, node: Node, size: Span | None, entries: Entries | None = None) -> None:
        if size is not None:
            self._sizes[node.id] = size
        if entries is not None:
            self._entries[node.id] = entries

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        element = self._size_at((*path, "@items")) if path else None
        return Operand(node, self._type(node), self._size(node), element)

    # -- the kinds of node

    def _select(self, node: Select) -> Span:
        if node.id in self._checked.constants:
            return ONE  # a dotted name
        cost = self.cost(node.operand)
        if node.test:
            return cost  # has() is free in Kubernetes
        self._paths[node.id] = (*self._path(node.operand), node.field)
        charged = self._type(node.operand).kind in (Kind.MAP, Kind.STRUCT, Kind.PARAM)
        return cost.plus(ONE) if charged else cost

    def _list(self, node: ListNode) -> Span:
        cost, size = LIST_COST, EMPTY if node.elements else ZERO
        for element in node.elements:
            cost = cost.plus(self.cost(element))
            size = size.either(self._size_or_unknown(element))
        self._remember(node, None, Entries(Kind.LIST, ONE, size))
        return cost

    def _map(self, node: MapNode) -> Span:
        cost = MAP_COST
        key = value = EMPTY if node.entries else ZERO
        for entry in node.entries:
            cost = cost.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.either(self._size_or_unknown(entry.key))
            value = value.either(self._size_or_unknown(entry.value))
        self._remember(node, None, Entries(Kind.MAP, key, value))
        return cost

    def _call(self, node: Call) -> Span:
        name = self._checked.qualified.get(node.id, node.function)
        if name == "dyn":
            cost = self.cost(node.args[0]).plus(ONE)
            self._remember(node, self._size(node.args[0]), self._entries_of(node.args[0]))
            return cost
        costs = [self.cost(arg) for arg in node.args]
        target = None if node.id in self._checked.qualified else node.target
        before = ZERO if target is None else self.cost(target)
        called = self._overloads_cost(node, name, target, costs)
        return before.plus(called)

    def _overloads_cost(self, node: Call, name: str, target: Node | None, costs: list[Span]) -> Span:
        """The range over every overload that may be meant, and the size of what it returns."""
        operands = [self._operand(arg) for arg in node.args]
        aimed = None if target is None else self._operand(target)
        total, size = EMPTY, None
        for overload in self._checked.overloads.get(node.id, ()):
            found = self._one_overload(name, overload.id, aimed, operands, costs)
            total = total.either(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.either(found.size)
            if overload.id in ("index_list", "index_map"):
                held = self._entries_of(node.args[0])
                size = None if held is None else held.value
                step = "@items" if overload.id == "index_list" else "@values"
                self._paths[node.id] = (*self._path(node.args[0]), step)
            if size is None:
                size = self._size(node)
        self._remember(node, size, self._call_entries(node, name))
        return total

    def _one_overload(
        self, name: str, id: str, target: Operand | None, operands: list[Operand], costs: list[Span]
    ) -> CallCost:
        if id in ("logical_and", "logical_or"):
            return CallCost(Span(costs[0].low, costs[0].plus(costs[1]).high))
        if id == "conditional":
            size = operands[1].size_or_unknown().either(operands[2].size_or_unknown())
            return CallCost(costs[0].plus(costs[1].either(costs[2])), size)
        found = call_cost(name, id, target, operands)
        total = found.cost
        for cost in costs:
            total = total.plus(cost)
        return CallCost(total, found.size)

    def _call_entries(self, node: Call, name: str) -> Entries | None:
        if name not in ("_+_", "_?_:_"):
            return None
        left, right = (self._entries_of(arg) for arg in node.args[-2:])
        return None if left is None else left.either(right)

    # -- macros, priced as the loops upstream would expand them to

    def _loop_locals(self, node: Comprehension) -> dict[str, Local]:
        held, path = self._entries_of(node.range), self._path(node.range)
        container = self._type(node.range).kind if held is None else held.container
        keys = "@indices" if container is Kind.LIST else "@keys"
        values = "@items" if container is Kind.LIST else "@values"
        key = Local((*path, keys), None if held is None else held.key, None)
        value = Local((*path, values), None if held is None else held.value, None)
        if node.var2 is not None:
            return {node.var: key, node.var2: value}
        return {node.var: value if container is Kind.LIST else key}

    def _comprehension(self, node: Comprehension) -> Span:
        total = self.cost(node.range)
        outer = self._locals
        self._locals = {**outer, **self._loop_locals(node)}
        where = ZERO if node.where is None else self.cost(node.where)
        yields = ZERO if node.yields is None else self.cost(node.yields)
        yielded = self._yielded_size(node)
        self._locals = outer

        count = self._size_or_unknown(node.range)
        start, step, end = _loop_prices(node, where, yields)
        self._remember(node, *_loop_result(node.loop, count, yielded))
        return total.plus(start).plus(end).plus(count.times(step))

    def _yielded_size(self, node: Comprehension) -> Span:
        """The size of one element of the list a macro makes; asked while its variables are known."""
        if node.yields is not None:
            return self._size_or_unknown(node.yields)
        if node.loop is not Loop.FILTER or _is_scalar(self._type(node).params[0]):
            return ONE
        local = self._locals[node.var]
        return self._size_at(local.path) or local.size or UNKNOWN

    def _sort_by(self, node: Comprehension) -> Span:
        total = LIST_COST.plus(self.cost(node.range))
        outer = self._locals
        self._locals = {**outer, **self._loop_locals(node)}
        yields = ZERO if node.yields is None else self.cost(node.yields)
        self._locals = outer

        count = self._size_or_unknown(node.range)
        keys = count.times(yields.plus(fixed(12))).plus(fixed(12))  # the map over the input
        key_type = self._type(node.yields).kind if node.yields is not None else Kind.DYN
        factor = 2.0 if key_type in _SCALARS else 2.1
        work = count.times(count)
        self._remember(node, work)  # as with `sort`, upstream takes the work for the size of the result
        return total.plus(ONE).plus(keys).plus(work.scaled(factor)).plus(fixed(11))

    def _bind(self, node: Bind) -> Span:
        total = LIST_COST.plus(self.cost(node.value))
        outer = self._locals
        bound = Local(self._path(node.value), self._size(node.value), self._entries_of(node.value))
        self._locals = {**outer, node.name: bound}
        total = total.plus(self.cost(node.body))
        self._remember(node, self._size(node.body), self._entries_of(node.body))
        self._locals = outer
        return total

    def _opt_map(self, node: OptMap) -> Span:
        target = self.cost(node.target)
        outer = self._locals
        held = self._type(node.target).params
        size = ONE if held and _is_scalar(held[0]) else None
        self._locals = {**outer, node.name: Local((), size, None)}
        body = self.cost(node.body)
        self._locals = outer
        found = LIST_COST.plus(target).plus(ONE).plus(body).plus(ZERO if node.flat else ONE)
        return target.plus(ONE).plus(found.either(ONE))


def _written_size(node: Node) -> Span | None:
    match node:
        case Literal(value=str() | bytes() as text):
            return fixed(len(text))
        case Literal():
            return ONE
        case ListNode(elements=elements):
            return fixed(len(elements))
        case MapNode(entries=entries):
            return fixed(len(entries))
    return None


def _is_scalar(type: Type) -> bool:
    if is_optional(type):
        return _is_scalar(type.params[0])
    return type.kind in _SCALARS


def _loop_prices(node: Comprehension, where: Span, yields: Span) -> tuple[Span, Span, Span]:
    """What a macro pays once before, for each element, and once after."""
    match node.loop:
        case Loop.ALL:
            return ZERO, where.plus(fixed(1)).plus(fixed(2))._replace(low=3), ONE
        case Loop.EXISTS:
            return ZERO, where.plus(fixed(1)).plus(fixed(3))._replace(low=4), ONE
        case Loop.EXISTS_ONE:
            return ZERO, where.plus(Span(1, 2)), fixed(2)
        case Loop.FILTER:
            return LIST_COST, where.plus(Span(1, 13)), ONE
        case Loop.MAP | Loop.TRANSFORM_LIST:
            return LIST_COST, _kept(node, where, yields.plus(fixed(12))), ONE
        case Loop.TRANSFORM_MAP:
            return MAP_COST, _kept(node, where, yields.plus(fixed(3))), ONE
        case _:
            return MAP_COST, _kept(node, where, yields.plus(fixed(2))), ONE


def _kept(node: Comprehension, where: Span, insert: Span) -> Span:
    return insert if node.where is None else where.plus(insert.either(ONE))


def _loop_result(loop: Loop, count: Span, yielded: Span) -> tuple[Span, Entries | None]:
    match loop:
        case Loop.ALL | Loop.EXISTS | Loop.EXISTS_ONE:
            return ONE, None
        case Loop.MAP | Loop.FILTER | Loop.TRANSFORM_LIST:
            return count, Entries(Kind.LIST, ONE, ZERO.either(yielded))
        case _:
            return count, None
