"""Calls that are not calls: `has`, `all`, `map`, `cel.bind` and the others.

A macro is recognised by its name, its number of arguments and whether it has a
target; a call that fits none stays an ordinary call and is the checker's
problem. Each maker turns the arguments into the node the rest of the compiler
knows.
"""

from collections.abc import Callable
from typing import Final

from .errors import ParseProblem
from .tree import Bind, Call, Comprehension, Ident, ListNode, Loop, Node, OptMap, Select

Maker = Callable[[int, int, Node, tuple[Node, ...]], Node]


def expand(id: int, at: int, function: str, target: Node | None, args: tuple[Node, ...]) -> Node:
    """The macro's node, or the plain call."""
    if target is None:
        return (
            _has(id, at, args[0])
            if function == "has" and len(args) == 1
            else Call(id, at, function, None, args)
        )
    if function == "bind" and isinstance(target, Ident) and target.name == "cel" and len(args) == 3:
        return Bind(id, at, _name(args[0]), args[1], args[2])
    maker = _MAKERS.get((function, len(args)))
    return Call(id, at, function, target, args) if maker is None else maker(id, at, target, args)


def _has(id: int, at: int, arg: Node) -> Node:
    if not isinstance(arg, Select) or arg.test:
        raise ParseProblem(arg.at, "invalid argument to has() macro")
    return Select(id, at, arg.operand, arg.field, test=True)


def _name(arg: Node) -> str:
    if not isinstance(arg, Ident):
        raise ParseProblem(arg.at, "argument must be a simple name")
    if arg.name == "__result__":
        raise ParseProblem(arg.at, "iteration variable overwrites accumulator variable")
    return arg.name


def _two_names(args: tuple[Node, ...]) -> tuple[str, str]:
    first, second = _name(args[0]), _name(args[1])
    if first == second:
        raise ParseProblem(args[1].at, f"duplicate variable name: {first}")
    return first, second


def _predicate(loop: Loop) -> Maker:
    def make(id: int, at: int, target: Node, args: tuple[Node, ...]) -> Node:
        return Comprehension(id, at, loop, target, _name(args[0]), where=args[1])

    return make


def _predicate_of_two(loop: Loop) -> Maker:
    def make(id: int, at: int, target: Node, args: tuple[Node, ...]) -> Node:
        first, second = _two_names(args)
        return Comprehension(id, at, loop, target, first, second, where=args[2])

    return make


def _map(id: int, at: int, target: Node, args: tuple[Node, ...]) -> Node:
    where = args[1] if len(args) == 3 else None
    return Comprehension(id, at, Loop.MAP, target, _name(args[0]), where=where, yields=args[-1])


def _transform(loop: Loop) -> Maker:
    def make(id: int, at: int, target: Node, args: tuple[Node, ...]) -> Node:
        first, second = _two_names(args)
        where = args[2] if len(args) == 4 else None
        return Comprehension(id, at, loop, target, first, second, where, args[-1])

    return make


def _sort_by(id: int, at: int, target: Node, args: tuple[Node, ...]) -> Node:
    if not isinstance(target, ListNode | Select | Ident | Comprehension | Call | Bind):
        raise ParseProblem(target.at, "sortBy can only be applied to a list")
    return Comprehension(id, at, Loop.SORT_BY, target, _name(args[0]), yields=args[1])


def _opt_map(flat: bool) -> Maker:
    def make(id: int, at: int, target: Node, args: tuple[Node, ...]) -> Node:
        return OptMap(id, at, target, _name(args[0]), args[1], flat)

    return make


_MAKERS: Final[dict[tuple[str, int], Maker]] = {
    ("all", 2): _predicate(Loop.ALL),
    ("exists", 2): _predicate(Loop.EXISTS),
    ("exists_one", 2): _predicate(Loop.EXISTS_ONE),
    ("filter", 2): _predicate(Loop.FILTER),
    ("map", 2): _map,
    ("map", 3): _map,
    ("all", 3): _predicate_of_two(Loop.ALL),
    ("exists", 3): _predicate_of_two(Loop.EXISTS),
    ("exists_one", 3): _predicate_of_two(Loop.EXISTS_ONE),
    ("existsOne", 3): _predicate_of_two(Loop.EXISTS_ONE),
    ("transformList", 3): _transform(Loop.TRANSFORM_LIST),
    ("transformList", 4): _transform(Loop.TRANSFORM_LIST),
    ("transformMap", 3): _transform(Loop.TRANSFORM_MAP),
    ("transformMap", 4): _transform(Loop.TRANSFORM_MAP),
    ("transformMapEntry", 3): _transform(Loop.TRANSFORM_ENTRY),
    ("transformMapEntry", 4): _transform(Loop.TRANSFORM_ENTRY),
    ("sortBy", 2): _sort_by,
    ("optMap", 2): _opt_map(flat=False),
    ("optFlatMap", 2): _opt_map(flat=True),
}
