"""A tree to a typed tree: every name known, every call resolved.

What it promises
    CHECK1  The tree itself is untouched; types, overloads and the functions that hide
            behind dotted names are filed under the numbers of the nodes.
    CHECK2  Every complaint carries the place CEL's own checker would name, and checking
            goes on after one, so a user sees all of them at once.
    CHECK3  A call whose arguments are `dyn` keeps every overload that could apply: the
            estimator charges for the dearest, the run time picks by value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import types, unify
from .errors import Issue
from .overloads import Functions, Overload
from .tree import Bind, Call, Comprehension, Ident, ListNode, Literal, Loop, MapNode, Node, OptMap, Select
from .types import BOOL, DYN, ERROR, INT, STRING, Kind, Type, is_optional, list_of, map_of, optional_of, param
from .values import runtime_type


@dataclass(frozen=True, slots=True)
class Environment:
    functions: Functions
    variables: Mapping[str, Type]
    fields: Mapping[Type, Mapping[str, Type]]  # of struct types


@dataclass(frozen=True, slots=True)
class Checked:
    root: Node
    types: Mapping[int, Type]
    overloads: Mapping[int, tuple[Overload, ...]]
    qualified: Mapping[int, str] = field(
        default_factory=dict
    )  # `sets.contains(...)`: the function's full name
    constants: Mapping[int, Type] = field(default_factory=dict)  # names of types, used as values

    @property
    def type(self) -> Type:
        return self.types[self.root.id]


def check(root: Node, environment: Environment) -> tuple[Checked, list[Issue]]:
    checker = _Checker(environment)
    checker.check(root)
    solved = {id: unify.resolve(checker.solution, t, free_is_dyn=True) for id, t in checker.types.items()}
    return Checked(root, solved, checker.overloads, checker.qualified, checker.constants), checker.issues


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self.types: dict[int, Type] = {}
        self.overloads: dict[int, tuple[Overload, ...]] = {}
        self.qualified: dict[int, str] = {}
        self.constants: dict[int, Type] = {}
        self.issues: list[Issue] = []
        self.solution: unify.Solution = {}
        self._environment = environment
        self._scope: dict[str, Type] = dict(environment.variables)
        self._fresh = 0

    def check(self, node: Node) -> Type:
        match node:
            case Literal():
                found = runtime_type(node.value)
            case Ident():
                found = self._ident(node)
            case Select():
                found = self._select(node)
            case Call():
                found = self._call(node)
            case ListNode():
                found = self._list(node)
            case MapNode():
                found = self._map(node)
            case Comprehension():
                found = self._comprehension(node)
            case Bind():
                value = self.check(node.value)
                found = self._within({node.name: value}, node.body)
            case OptMap():
                found = self._opt_map(node)
        self.types[node.id] = found
        return found

    # -- helpers

    def _complain(self, at: int, message: str) -> Type:
        self.issues.append(Issue(at, message))
        return ERROR

    def _param(self) -> Type:
        self._fresh += 1
        return param(f"_var{self._fresh}")

    def _resolved(self, type: Type) -> Type:
        return unify.resolve(self.solution, type)

    def _fits(self, given: Type, wanted: Type) -> bool:
        found = unify.assign(self.solution, [(given, wanted)])
        if found is None:
            return False
        self.solution = found
        return True

    def _mismatch(self, at: int, wanted: Type, given: Type) -> None:
        self._complain(at, f"expected type '{self._shown(wanted)}' but found '{self._shown(given)}'")

    def _shown(self, type: Type) -> str:
        return str(unify.resolve(self.solution, type, free_is_dyn=True))

    def _within(self, names: Mapping[str, Type], body: Node) -> Type:
        outer = self._scope
        self._scope = {**outer, **names}
        found = self.check(body)
        self._scope = outer
        return found

    # -- names and fields

    def _ident(self, node: Ident) -> Type:
        scope = self._environment.variables if node.name.startswith(".") else self._scope
        name = node.name.lstrip(".")
        found = scope.get(name)
        if found is not None:
            return found
        return self._constant(node, name) or self._complain(
            node.at, f"undeclared reference to '{name}' (in container '')"
        )

    def _constant(self, node: Node, name: str) -> Type | None:
        """The type whose name this is, as a value."""
        named = types.TYPE_NAMES.get(name)
        if named is None:
            return None
        self.constants[node.id] = named
        return types.type_of(named)

    def _dotted(self, node: Node) -> str | None:
        """`a.b.c` as text, unless its head is a variable."""
        parts: list[str] = []
        while isinstance(node, Select) and not node.test:
            parts.append(node.field)
            node = node.operand
        if not isinstance(node, Ident) or node.name in self._scope:
            return None
        return ".".join([node.name, *reversed(parts)])

    def _select(self, node: Select) -> Type:
        name = None if node.test else self._dotted(node)
        if name is not None and (found := self._constant(node, name)) is not None:
            return found
        operand = self._resolved(self.check(node.operand))
        found = self._field(node.at, operand, node.field)
        return BOOL if node.test else found

    def _field(self, at: int, operand: Type, name: str) -> Type:
        if is_optional(operand):
            return optional_of(self._field(at, self._resolved(operand.params[0]), name))
        match operand.kind:
            case Kind.MAP:
                return operand.params[1]
            case Kind.STRUCT:
                fields = self._environment.fields.get(operand, {})
                return fields.get(name) or self._complain(at, f"undefined field '{name}'")
            case Kind.PARAM:
                self._fits(DYN, operand)
                return DYN
            case Kind.DYN | Kind.ANY | Kind.ERROR:
                return DYN
        return self._complain(at, f"type '{operand}' does not support field selection")

    # -- calls

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            return self._optional_select(node)
        if node.target is None:
            return self._overloaded(node, node.function, node.args, member=False)
        prefix = self._dotted(node.target)
        qualified = f"{prefix}.{node.function}" if prefix else ""
        if qualified in self._environment.functions:
            self.qualified[node.id] = qualified
            return self._overloaded(node, qualified, node.args, member=False)
        return self._overloaded(node, node.function, (node.target, *node.args), member=True)

    def _optional_select(self, node: Call) -> Type:
        operand = self._resolved(self.check(node.args[0]))
        self.types[node.args[1].id] = STRING
        inner = operand.params[0] if is_optional(operand) else operand
        found = self._field(node.at, self._resolved(inner), str(node.args[1].value))  # type: ignore[union-attr]
        self.overloads[node.id] = self._environment.functions["_?._"]
        return found if is_optional(found) else optional_of(found)

    def _overloaded(self, node: Call, name: str, args: Sequence[Node], member: bool) -> Type:
        known = self._environment.functions.get(name)
        given = [self.check(arg) for arg in args]
        if known is None:
            return self._complain(node.at, f"undeclared reference to '{name}' (in container '')")
        candidates: list[Overload] = []
        result: Type | None = None
        is_open = any(type.is_open for type in given)
        for overload in known:
            if overload.member is not member or len(overload.params) != len(given):
                continue
            returned = self._returned(overload, given, is_open)
            if returned is None:
                continue
            candidates.append(overload)
            if result is None:
                result = returned
            elif not result.is_dynamic and result != returned:
                result = DYN
        if result is None:
            return self._complain(
                node.at,
                f"found no matching overload for '{name}' applied to '{self._applied(given, member)}'",
            )
        self.overloads[node.id] = tuple(candidates)
        return result

    def _returned(self, overload: Overload, given: Sequence[Type], is_open: bool) -> Type | None:
        """What the overload returns for these arguments, or None if it does not take them."""
        if not overload.generic and not is_open:
            return overload.result if unify.fits_plainly(given, overload.params) else None
        params, returned = self._freshened(overload)
        solution = unify.assign(self.solution, zip(given, params, strict=True))
        if solution is None:
            return None
        self.solution = solution
        return self._resolved(returned)

    def _freshened(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        names: dict[Type, Type] = {}

        def fresh(type: Type) -> Type:
            if type.kind is Kind.PARAM:
                if type not in names:
                    names[type] = self._param()
                return names[type]
            if not type.params:
                return type
            return Type(type.kind, type.name, tuple(fresh(part) for part in type.params))

        return tuple(fresh(p) for p in overload.params), fresh(overload.result)

    def _applied(self, given: Sequence[Type], member: bool) -> str:
        shown = [self._shown(type) for type in given]
        return f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"

    # -- aggregates

    def _list(self, node: ListNode) -> Type:
        element: Type | None = None
        for index, part in enumerate(node.elements):
            element = self._element(part, element, index in node.optional)
        return list_of(self._param() if element is None else element)

    def _map(self, node: MapNode) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._element(entry.key, key, False)
            value = self._element(entry.value, value, entry.optional)
        return map_of(self._param() if key is None else key, self._param() if value is None else value)

    def _element(self, node: Node, before: Type | None, optional: bool) -> Type:
        found = self.check(node)
        if optional:
            resolved = self._resolved(found)
            if is_optional(resolved):
                found = resolved.params[0]
            elif not resolved.is_dynamic:
                self._mismatch(node.at, optional_of(resolved), resolved)
        if before is None:
            return found
        joined, self.solution = unify.join(self.solution, before, found)
        return joined  # `dyn` where they differ: whether they may is for `validate` to say

    # -- macros

    def _comprehension(self, node: Comprehension) -> Type:
        key, value = self._ranged(node)
        if node.var2 is None:
            names = {node.var: key if self._loops_over_map(node) else value}
        else:
            names = {node.var: key, node.var2: value}
        if node.where is not None:
            self._demand_bool(node.where, self._within(names, node.where))
        yielded = BOOL if node.yields is None else self._within(names, node.yields)
        return self._produced(node, names[node.var], key, yielded)

    def _loops_over_map(self, node: Comprehension) -> bool:
        return self._resolved(self.types[node.range.id]).kind is Kind.MAP

    def _ranged(self, node: Comprehension) -> tuple[Type, Type]:
        """Types of the key (or index) and of the value while looping."""
        range_type = self._resolved(self.check(node.range))
        match range_type.kind:
            case Kind.LIST:
                return INT, range_type.params[0]
            case Kind.MAP:
                return range_type.params[0], range_type.params[1]
            case Kind.DYN | Kind.ERROR:
                return DYN, DYN
            case Kind.PARAM:
                self._fits(DYN, range_type)
                return DYN, DYN
        self._complain(
            node.range.at,
            f"expression of type '{range_type}' cannot be range of a comprehension"
            " (must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def _demand_bool(self, node: Node, given: Type) -> None:
        if not self._fits(given, BOOL):
            self._mismatch(node.at, BOOL, given)

    def _produced(self, node: Comprehension, item: Type, key: Type, yielded: Type) -> Type:
        match node.loop:
            case Loop.ALL | Loop.EXISTS | Loop.EXISTS_ONE:
                return BOOL
            case Loop.FILTER:
                return list_of(item)
            case Loop.MAP | Loop.TRANSFORM_LIST:
                return list_of(yielded)
            case Loop.TRANSFORM_MAP:
                return map_of(key, yielded)
            case Loop.TRANSFORM_ENTRY:
                return self._entries(node, yielded)
            case Loop.SORT_BY:
                return self._sorted(node, yielded)

    def _entries(self, node: Comprehension, yielded: Type) -> Type:
        wanted = map_of(self._param(), self._param())
        if not self._fits(yielded, wanted):
            self._mismatch(node.at, wanted, yielded)
        return wanted

    def _sorted(self, node: Comprehension, key: Type) -> Type:
        resolved = self._resolved(key)
        if not resolved.is_dynamic and resolved.kind is not Kind.PARAM and resolved not in types.COMPARABLE:
            given = [self.types[node.range.id], list_of(key)]
            return self._complain(
                node.at,
                "found no matching overload for '@sortByAssociatedKeys' applied to "
                f"'{self._applied(given, member=True)}'",
            )
        range_type = self._resolved(self.types[node.range.id])
        if range_type.kind is Kind.MAP:
            given = [range_type, list_of(key)]
            return self._complain(
                node.at,
                "found no matching overload for '@sortByAssociatedKeys' applied to "
                f"'{self._applied(given, member=True)}'",
            )
        return range_type if range_type.kind is Kind.LIST else list_of(DYN)

    def _opt_map(self, node: OptMap) -> Type:
        name = "optFlatMap" if node.flat else "optMap"
        target = self._resolved(self.check(node.target))
        if not is_optional(target) and not target.is_dynamic:
            return self._complain(
                node.at, f"found no matching overload for '{name}' applied to '{target}.()'"
            )
        inner = target.params[0] if is_optional(target) else DYN
        body = self._within({node.name: inner}, node.body)
        if not node.flat:
            return optional_of(body)
        if not self._fits(body, optional_of(self._param())):
            self._mismatch(node.at, optional_of(DYN), body)
        return self._resolved(body) if is_optional(self._resolved(body)) else optional_of(DYN)
