"""The careful way to run a selector: node by node, errors absorbed, cost counted.

The generated code is fast because it is optimistic. This is where an evaluation
goes when optimism failed: an error that `||` may still absorb, a worst case over
the limit, a device larger than the API allows. It is also the plainest statement
of what each node means.

What it promises
    EVAL1  `&&` and `||` are commutative about errors: a side that decides wins over a side
           that fails. `all` and `exists` are long `&&` and `||`.
    EVAL2  CostExceeded is never absorbed.
    EVAL3  A bound variable is evaluated when first used, at most once, and not at all if
           never used.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .checker import Checked
from .device import CelDevice
from .errors import CostExceeded, EvaluationError
from .library import FUNCTIONS
from .library.operators import BY_VALUE, finds, optional_index
from .meter import Meter
from .overloads import Overload
from .tree import (
    Bind,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    Loop,
    MapNode,
    Node,
    OptMap,
    Select,
    is_empty_list,
)  # fmt: skip
from .values import NONE, Optional, from_key, no_overload, to_key, type_name

Scope = dict[str, Any]
_GO_NAMES = {"bool": "types.Bool", "int": "types.Int", "uint": "types.Uint", "double": "types.Double",
             "string": "types.String", "bytes": "types.Bytes", "null_type": "types.Null"}  # fmt: skip

# What one turn of a macro costs besides its own expressions: for an element it keeps, and for another.
_STEP_COSTS = {
    Loop.ALL: (3, 3),
    Loop.EXISTS: (4, 4),
    Loop.EXISTS_ONE: (2, 1),
    Loop.FILTER: (13, 1),
    Loop.MAP: (12, 1),
    Loop.TRANSFORM_LIST: (12, 1),
    Loop.TRANSFORM_MAP: (3, 1),
    Loop.TRANSFORM_ENTRY: (2, 1),
    Loop.SORT_BY: (12, 1),
}


def evaluate(checked: Checked, device: CelDevice, meter: Meter) -> Any:
    return evaluate_in(checked, {"device": device}, meter)


def evaluate_in(checked: Checked, scope: Scope, meter: Meter) -> Any:
    """With values for every variable that the expression was checked with."""
    return _Evaluation(checked, meter).value(checked.root, scope)


def field(operand: Any, name: str) -> Any:
    """`operand.name`, for every operand that can have fields."""
    if isinstance(operand, dict):
        try:
            return operand[name]
        except KeyError:
            raise EvaluationError(f"no such key: {name}") from None
    if isinstance(operand, CelDevice):
        return device_field(operand, name)
    if isinstance(operand, Optional):
        return optional_field(operand, name)
    raise no_overload(operand, name)


def device_field(device: CelDevice, name: str) -> Any:
    return device.allow_multiple_allocations if name == "allowMultipleAllocations" else getattr(device, name)


def optional_field(operand: Any, name: str) -> Optional:
    """`operand.?name`."""
    if isinstance(operand, Optional):
        return optional_field(operand.value, name) if operand.present else NONE
    if isinstance(operand, CelDevice):
        return Optional(device_field(operand, name))
    if not isinstance(operand, dict):
        raise no_overload(operand, name)
    return optional_index(operand, name)


def has_field(operand: Any, name: str) -> bool:
    if isinstance(operand, Optional):
        return operand.present and has_field(operand.value, name)
    if isinstance(operand, CelDevice):
        return True
    if not isinstance(operand, dict):
        raise no_overload(operand, name)
    return finds(operand, name)


def pairs(container: Any) -> Iterable[tuple[Any, Any]]:
    """Index or key, and value: what a macro loops over."""
    if isinstance(container, dict):
        return [(from_key(key), value) for key, value in container.items()]
    if isinstance(container, list | tuple):
        return enumerate(container)
    name = type_name(container)
    raise EvaluationError(f"got '{_GO_NAMES.get(name, name)}', expected iterable type")


def sort_by_keys(items: Iterable[Any], keys: list[Any]) -> list[Any]:
    if len({type(key) for key in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    try:
        order = sorted(range(len(keys)), key=keys.__getitem__)
    except TypeError:
        raise EvaluationError("list elements must be comparable") from None
    listed = list(items)
    return [listed[index] for index in order]


def insert(entries: dict[Any, Any], key: Any, value: Any) -> None:
    filed = to_key(key)
    if filed in entries:
        raise EvaluationError(f"insert failed: key {key} already exists")
    entries[filed] = value


class _Later:
    """A bound value nobody has asked for yet (EVAL3)."""

    __slots__ = ("_error", "_made", "_make", "_value")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made = False
        self._error: EvaluationError | None = None
        self._value: Any = None

    def get(self) -> Any:
        if not self._made:
            self._made = True
            try:
                self._value = self._make()
            except EvaluationError as error:
                self._error = error
        if self._error is not None:
            raise self._error
        return self._value


class _Evaluation:
    def __init__(self, checked: Checked, meter: Meter) -> None:
        self._checked = checked
        self._meter = meter

    def value(self, node: Node, scope: Scope) -> Any:
        match node:
            case Literal():
                return node.value
            case Ident():
                return self._ident(node, scope)
            case Select():
                return self._select(node, scope)
            case Call():
                return self._call(node, scope)
            case ListNode():
                return self._list(node, scope)
            case MapNode():
                return self._map(node, scope)
            case Comprehension():
                return self._comprehension(node, scope)
            case Bind():
                later = _Later(lambda: self.value(node.value, scope))
                return self.value(node.body, {**scope, node.name: later})
            case OptMap():
                return self._opt_map(node, scope)

    # -- names, fields, aggregates

    def _ident(self, node: Ident, scope: Scope) -> Any:
        self._meter.charge(1)
        if node.id in self._checked.constants:
            return self._checked.constants[node.id]
        found = scope[node.name.lstrip(".")]
        return found.get() if type(found) is _Later else found

    def _select(self, node: Select, scope: Scope) -> Any:
        if node.id in self._checked.constants:
            return self._checked.constants[node.id]
        operand = self.value(node.operand, scope)
        if node.test:
            return has_field(operand, node.field)
        self._meter.charge(1)
        return field(operand, node.field)

    def _list(self, node: ListNode, scope: Scope) -> list[Any]:
        self._meter.charge(0 if all(isinstance(part, Literal) for part in node.elements) else 10)
        made: list[Any] = []
        for index, element in enumerate(node.elements):
            value = self.value(element, scope)
            if index not in node.optional:
                made.append(value)
            elif not isinstance(value, Optional):
                raise no_overload(value)
            elif value.present:
                made.append(value.value)
        return made

    def _map(self, node: MapNode, scope: Scope) -> dict[Any, Any]:
        self._meter.charge(30)
        made: dict[Any, Any] = {}
        for entry in node.entries:
            key, value = self.value(entry.key, scope), self.value(entry.value, scope)
            if entry.optional:
                if not isinstance(value, Optional):
                    raise no_overload(value)
                if not value.present:
                    continue
                value = value.value
            insert(made, key, value)
        return made

    # -- calls

    def _call(self, node: Call, scope: Scope) -> Any:
        match node.function:
            case "_&&_":
                return self._until(False, (self._bool(arg, scope) for arg in node.args))
            case "_||_":
                return self._until(True, (self._bool(arg, scope) for arg in node.args))
            case "_?_:_":
                chosen = node.args[1] if self._bool(node.args[0], scope)() else node.args[2]
                return self.value(chosen, scope)
            case "_?._":
                operand = self.value(node.args[0], scope)
                self._meter.charge(1)
                return optional_field(operand, str(self.value(node.args[1], scope)))
            case "or" | "orValue" if node.target is not None:
                return self._or_else(node, scope)
            case "@in" if is_empty_list(node.args[1]):
                return False  # whatever is looked for
        return self._strict(node, scope)

    def _strict(self, node: Call, scope: Scope) -> Any:
        name = self._checked.qualified.get(node.id, node.function)
        args = [self.value(arg, scope) for arg in node.args]
        if node.target is not None and node.id not in self._checked.qualified:
            args.insert(0, self.value(node.target, scope))
        values = tuple(args)
        overload = _chosen(name, self._checked.overloads[node.id], values)
        self._meter.charge_call(name, overload.id, overload.member, values)
        try:
            return overload.run(*values)
        except (TypeError, AttributeError):
            # The first element spoke for a list, and a later one is of another kind.
            raise no_overload(*values) from None

    def _or_else(self, node: Call, scope: Scope) -> Any:
        """`or` and `orValue` do not look at what they do not need."""
        assert node.target is not None
        self._meter.charge(1)
        optional = self.value(node.target, scope)
        if not isinstance(optional, Optional):
            raise no_overload(optional)
        if optional.present:
            return optional.value if node.function == "orValue" else optional
        return self.value(node.args[0], scope)

    def _bool(self, node: Node, scope: Scope) -> Callable[[], bool]:
        def ask() -> bool:
            value = self.value(node, scope)
            if type(value) is not bool:
                raise no_overload(value)
            return value

        return ask

    def _until(self, decisive: bool, questions: Iterable[Callable[[], bool]]) -> bool:
        """Ask until one answer decides; an error counts only if none does (EVAL1)."""
        error: EvaluationError | None = None
        for ask in questions:
            try:
                if ask() is decisive:
                    return decisive
            except CostExceeded:
                raise
            except EvaluationError as problem:
                error = error or problem
        if error is not None:
            raise error
        return not decisive

    # -- macros

    def _comprehension(self, node: Comprehension, scope: Scope) -> Any:
        container = self.value(node.range, scope)
        self._meter.charge(1)
        inner = self._inner_scopes(node, container, scope)
        match node.loop:
            case Loop.ALL | Loop.EXISTS:
                assert node.where is not None
                where = node.where
                return self._until(node.loop is Loop.EXISTS, self._questions(where, node.loop, inner))
            case Loop.EXISTS_ONE:
                return sum(1 for _ in self._kept(node, inner)) == 1
            case Loop.FILTER:
                return [each[node.var] for each, _, _ in self._kept(node, inner)]
            case Loop.MAP | Loop.TRANSFORM_LIST:
                return [self._yielded(node, each) for each, _, _ in self._kept(node, inner)]
            case Loop.SORT_BY:
                return self._sorted(node, container, inner)
            case Loop.TRANSFORM_MAP | Loop.TRANSFORM_ENTRY:
                return self._transformed(node, inner)

    def _inner_scopes(
        self, node: Comprehension, container: Any, scope: Scope
    ) -> Iterator[tuple[Scope, Any, Any]]:
        is_map = isinstance(container, dict)
        for key, value in pairs(container):
            if node.var2 is not None:
                yield {**scope, node.var: key, node.var2: value}, key, value
            else:
                yield {**scope, node.var: key if is_map else value}, key, value

    def _kept(
        self, node: Comprehension, inner: Iterator[tuple[Scope, Any, Any]]
    ) -> Iterator[tuple[Scope, Any, Any]]:
        kept, skipped = _STEP_COSTS[node.loop]
        for each in inner:
            keeps = node.where is None or self._bool(node.where, each[0])()
            self._meter.charge(kept if keeps else skipped)
            if keeps:
                yield each

    def _questions(
        self, where: Node, loop: Loop, inner: Iterator[tuple[Scope, Any, Any]]
    ) -> Iterator[Callable[[], bool]]:
        for scope, _, _ in inner:
            self._meter.charge(_STEP_COSTS[loop][0])
            yield self._bool(where, scope)

    def _yielded(self, node: Comprehension, scope: Scope) -> Any:
        assert node.yields is not None
        return self.value(node.yields, scope)

    def _sorted(self, node: Comprehension, container: Any, inner: Iterator[tuple[Scope, Any, Any]]) -> Any:
        if isinstance(container, dict):
            raise no_overload(container)
        keys = [self._yielded(node, each) for each, _, _ in self._kept(node, inner)]
        self._meter.charge(2 * len(keys) ** 2 + 11)
        return sort_by_keys(container, keys)

    def _transformed(self, node: Comprehension, inner: Iterator[tuple[Scope, Any, Any]]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for each, key, _ in self._kept(node, inner):
            yielded = self._yielded(node, each)
            if node.loop is Loop.TRANSFORM_MAP:
                insert(made, key, yielded)
                continue
            if not isinstance(yielded, dict):
                raise no_overload(made, yielded)
            for filed, value in yielded.items():
                insert(made, from_key(filed), value)
        return made

    def _opt_map(self, node: OptMap, scope: Scope) -> Any:
        self._meter.charge(3)
        optional = self.value(node.target, scope)
        if not isinstance(optional, Optional):
            raise no_overload(optional)
        if not optional.present:
            return NONE
        made = self.value(node.body, {**scope, node.name: optional.value})
        if not node.flat:
            return Optional(made)
        if not isinstance(made, Optional):
            raise no_overload(made)
        return made


def _chosen(name: str, overloads: tuple[Overload, ...], values: tuple[Any, ...]) -> Overload:
    for overload in overloads:
        if overload.takes(values):
            return overload
    # Solving for a type that is not known yet may have settled on the wrong one; operators go by value.
    for overload in FUNCTIONS[name] if name in BY_VALUE else ():
        if overload.takes(values):
            return overload
    raise no_overload(*values)
