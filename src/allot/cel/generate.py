"""A checked expression as a Python function.

What it promises
    GEN1  The function returns what the careful way (`interpret`) would return, or it
          raises; then the careful way has the last word. It never returns anything else. So
          an error costs a second run, and everything else costs nothing extra.
    GEN2  Nothing of the user's text becomes source: code is built from `ast` nodes, text
          only ever appears as a constant, and the function has no builtins.

A static type is trusted here only where it cannot have come through `dyn`: the
checker lets `dyn` stand for anything, and `True > 0` is an answer in Python but an
error in CEL. `Emitted.type` is that trusted type, `dyn` where there is none.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from . import types
from .checker import Checked
from .emitting import Emitted, Pool, attribute, call, compare, constant, name
from .errors import EvaluationError
from .interpret import field, has_field, optional_field, pairs
from .overloads import Overload, dispatcher
from .runtime import each, each_key, make_list, make_map, merge_entries, only_one, opt_map, sort_by, truth
from .shortcuts import shortcut
from .tree import Bind, Call, Comprehension, Ident, ListNode, Literal, Loop, MapNode, Node, OptMap, Select
from .types import BOOL, DEVICE, DYN, INT, STRING, Kind, Type, list_of
from .values import runtime_type

_FOLDED: Final = frozenset({"quantity", "semver", "ip", "cidr", "url", "duration", "timestamp"})
_SLOTS: Final = {"allowMultipleAllocations": "allow_multiple_allocations"}


def generate(checked: Checked) -> Callable[[Any], Any] | None:
    """The function, or None if Python's own compiler finds the expression too deep."""
    generator = Generator(checked)
    try:
        body = generator.emit(checked.root).code
        return generator.pool.function("d", body)
    except (RecursionError, MemoryError, SyntaxError, ValueError):
        return None


class Generator:
    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.pool = Pool()
        self._locals: dict[str, Emitted] = {"device": Emitted(name("d"), DEVICE)}
        self._done: dict[int, Emitted] = {}

    def emit(self, node: Node) -> Emitted:
        """Code for one node; asked twice it answers once, or nested shortcuts would double the work."""
        if node.id not in self._done:
            self._done[node.id] = self._emitted(node)
        return self._done[node.id]

    def _emitted(self, node: Node) -> Emitted:
        match node:
            case Literal():
                return self.known(node.value)
            case Ident():
                constant_type = self.checked.constants.get(node.id)
                if constant_type is not None:
                    return Emitted(self.pool.add(constant_type), types.type_of(DYN))
                return self._locals[node.name.lstrip(".")]
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Comprehension():
                return self._comprehension(node)
            case Bind():
                value = self.emit(node.value)
                body = self._lambda({node.name: value.type}, node.body)
                return Emitted(call(body.code, value.code), body.type)
            case OptMap():
                return self._opt_map(node)

    # -- helpers, also for `shortcuts`

    def known(self, value: Any) -> Emitted:
        code = constant(value) if type(value) in (str, int, float, bytes, bool) else self.pool.add(value)
        return Emitted(code, runtime_type(value), value)

    def helper(self, function: Callable[..., Any], *args: ast.expr) -> ast.expr:
        return call(self.pool.add(function), *args)

    def truth(self, node: Node) -> ast.expr:
        """A condition; what is not surely a bool is made to prove it."""
        emitted = self.emit(node)
        return emitted.code if emitted.type == BOOL else self.helper(truth, emitted.code)

    def _lambda(self, names: dict[str, Type], body: Node) -> Emitted:
        outer = self._locals
        fresh = {given: Emitted(name(self.pool.fresh()), type) for given, type in names.items()}
        self._locals = {**outer, **fresh}
        emitted = self.emit(body)
        self._locals = outer
        params = [variable.code.id for variable in fresh.values() if isinstance(variable.code, ast.Name)]
        return Emitted(self.pool.lambda_(params, emitted.code), emitted.type)

    # -- names and fields

    def _select(self, node: Select) -> Emitted:
        if node.id in self.checked.constants:
            return Emitted(self.pool.add(self.checked.constants[node.id]), types.type_of(DYN))
        operand = self.emit(node.operand)
        holds_maps = operand.type.kind is Kind.MAP and operand.type.params[1].kind is Kind.MAP
        if node.test:
            if operand.type.kind is Kind.MAP and not holds_maps:
                return Emitted(compare(constant(node.field), ast.In(), operand.code), BOOL)
            return Emitted(self.helper(has_field, operand.code, constant(node.field)), BOOL)
        if operand.type == DEVICE:
            return Emitted(
                attribute(operand.code, _SLOTS.get(node.field, node.field)), self.checked.types[node.id]
            )
        if operand.type.kind is Kind.MAP:
            return Emitted(_subscript(operand.code, constant(node.field)), _trusted(operand.type.params[1]))
        return Emitted(self.helper(field, operand.code, constant(node.field)))

    # -- calls

    def _call(self, node: Call) -> Emitted:
        match node.function:
            case "_&&_" | "_||_":
                joint = ast.And() if node.function == "_&&_" else ast.Or()
                return Emitted(ast.BoolOp(joint, [self.truth(arg) for arg in node.args]), BOOL)
            case "!_":
                return Emitted(ast.UnaryOp(ast.Not(), self.truth(node.args[0])), BOOL)
            case "_?_:_":
                return self._conditional(node)
            case "_?._":
                operand, key = self.emit(node.args[0]), self.emit(node.args[1])
                return Emitted(self.helper(optional_field, operand.code, key.code))
        target = () if node.target is None or node.id in self.checked.qualified else (node.target,)
        args = [self.emit(arg) for arg in (*target, *node.args)]
        return self._folded(node, args) or shortcut(self, node, args) or self._plain(node, args)

    def _conditional(self, node: Call) -> Emitted:
        then, otherwise = self.emit(node.args[1]), self.emit(node.args[2])
        code = ast.IfExp(self.truth(node.args[0]), then.code, otherwise.code)
        return Emitted(code, then.type if then.type == otherwise.type else DYN)

    def _folded(self, node: Call, args: list[Emitted]) -> Emitted | None:
        if node.function not in _FOLDED or not args or not all(arg.is_constant for arg in args):
            return None
        try:
            return self.known(dispatcher(self.checked.overloads[node.id])(*(arg.value for arg in args)))
        except EvaluationError:
            return None  # it will fail when it runs, as it should

    def _plain(self, node: Call, args: list[Emitted]) -> Emitted:
        overloads = self.checked.overloads[node.id]
        sure = len(overloads) == 1 and all(map(_is_certain, overloads[0].params, [arg.type for arg in args]))
        run = overloads[0].run if sure else dispatcher(overloads)
        return Emitted(self.helper(run, *(arg.code for arg in args)), self._result(node, overloads, args))

    def _result(self, node: Call, overloads: tuple[Overload, ...], args: list[Emitted]) -> Type:
        """Functions keep their word about what they return, unless it depends on what they were given."""
        given_sure = all(_is_solid(arg.type) for arg in args)
        if len(overloads) == 1 and (given_sure or _is_solid(overloads[0].result)):
            return _trusted(self.checked.types[node.id])
        results = {overload.result for overload in overloads}
        only = results.pop()
        return only if not results and _is_solid(only) else DYN

    # -- aggregates

    def _list(self, node: ListNode) -> Emitted:
        elements = [self.emit(element) for element in node.elements]
        codes = [element.code for element in elements]
        kinds = {element.type for element in elements}
        if node.optional:
            flags = constant(tuple(index in node.optional for index in range(len(codes))))
            return Emitted(self.helper(make_list, flags, *codes))
        trusted = list_of(kinds.pop()) if len(kinds) == 1 else DYN
        return Emitted(ast.List(codes, ast.Load()), trusted if elements else list_of(DYN))

    def _map(self, node: MapNode) -> Emitted:
        entries = [
            ast.Tuple(
                [constant(entry.optional), self.emit(entry.key).code, self.emit(entry.value).code], ast.Load()
            )
            for entry in node.entries
        ]
        return Emitted(self.helper(make_map, *entries))

    # -- macros

    def _comprehension(self, node: Comprehension) -> Emitted:
        source = self.emit(node.range)
        if node.loop is Loop.SORT_BY:
            return self._sort_by(node, source)
        loop = self._loop(node, source)
        outer = self._locals
        self._locals = {**outer, **loop.names}
        conditions = [] if node.where is None else [self.truth(node.where)]
        yields = None if node.yields is None else self.emit(node.yields)
        self._locals = outer
        return self._looped(node, loop, conditions, yields)

    def _loop(self, node: Comprehension, source: Emitted) -> "_Loop":
        is_list, is_map = source.type.kind is Kind.LIST, source.type.kind is Kind.MAP
        first = name(self.pool.fresh())
        if node.var2 is not None:
            second = name(self.pool.fresh())
            key = INT if is_list else source.type.params[0] if is_map else DYN
            value = source.type.params[-1] if is_list or is_map else DYN
            names = {node.var: Emitted(first, key), node.var2: Emitted(second, value)}
            target: ast.expr = ast.Tuple([_stored(first), _stored(second)], ast.Store())
            return _Loop(self.helper(pairs, source.code), target, names, first)
        item = source.type.params[0] if is_list or is_map else DYN
        reader = each_key if is_map and item != STRING else None if is_list or is_map else each
        items = source.code if reader is None else self.helper(reader, source.code)
        return _Loop(items, _stored(first), {node.var: Emitted(first, item)}, first)

    def _looped(
        self, node: Comprehension, loop: "_Loop", conditions: list[ast.expr], yields: Emitted | None
    ) -> Emitted:
        over = [ast.comprehension(loop.target, loop.items, conditions, 0)]
        bare = [ast.comprehension(loop.target, loop.items, [], 0)]
        match node.loop:
            case Loop.ALL:
                return Emitted(self.helper(all, ast.GeneratorExp(conditions[0], bare)), BOOL)
            case Loop.EXISTS:
                return Emitted(self.helper(any, ast.GeneratorExp(conditions[0], bare)), BOOL)
            case Loop.EXISTS_ONE:
                return Emitted(self.helper(only_one, ast.GeneratorExp(constant(1), over)), BOOL)
            case Loop.FILTER:
                item = next(iter(loop.names.values()))
                return Emitted(ast.ListComp(loop.key, over), list_of(item.type))
        assert yields is not None
        match node.loop:
            case Loop.MAP | Loop.TRANSFORM_LIST:
                return Emitted(ast.ListComp(yields.code, over), list_of(yields.type))
            case Loop.TRANSFORM_MAP:
                entry = ast.Tuple([constant(False), loop.key, yields.code], ast.Load())
                return Emitted(
                    call(self.pool.add(make_map), ast.Starred(ast.GeneratorExp(entry, over), ast.Load()))
                )
            case _:
                return Emitted(self.helper(merge_entries, ast.GeneratorExp(yields.code, over)))

    def _sort_by(self, node: Comprehension, source: Emitted) -> Emitted:
        assert node.yields is not None
        is_list = source.type.kind is Kind.LIST
        key = self._lambda({node.var: source.type.params[0] if is_list else DYN}, node.yields)
        return Emitted(self.helper(sort_by, source.code, key.code), source.type if is_list else DYN)

    def _opt_map(self, node: OptMap) -> Emitted:
        target = self.emit(node.target)
        body = self._lambda({node.name: DYN}, node.body)
        return Emitted(self.helper(opt_map, target.code, body.code, constant(node.flat)))


@dataclass(frozen=True, slots=True)
class _Loop:
    items: ast.expr
    target: ast.expr
    names: dict[str, Emitted]
    key: ast.expr  # the first variable, to be read


def _stored(variable: ast.Name) -> ast.Name:
    return ast.Name(variable.id, ast.Store())


def _subscript(container: ast.expr, key: ast.expr) -> ast.expr:
    return ast.Subscript(container, key, ast.Load())


def _is_certain(wanted: Type, given: Type) -> bool:
    """Whether a trusted type proves that a value will be accepted."""
    if wanted.is_dynamic or wanted.kind is Kind.PARAM:
        return True
    return (
        wanted.kind is given.kind
        and wanted.name == given.name
        and all(_is_certain(w, g) for w, g in zip(wanted.params, given.params, strict=True))
    )


def _is_solid(type: Type) -> bool:
    return not type.is_dynamic and type.kind is not Kind.PARAM and all(map(_is_solid, type.params))


def _trusted(type: Type) -> Type:
    return DYN if type.is_dynamic else type
