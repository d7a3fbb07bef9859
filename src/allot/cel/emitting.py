"""Building Python code from nodes, and the objects that code refers to."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .types import DYN, Type

_UNKNOWN: Final = object()


@dataclass(frozen=True, slots=True)
class Emitted:
    """Code for a part of an expression, with what is certain about its value."""

    code: ast.expr
    type: Type = DYN  # trusted: `dyn` unless nothing else is possible
    value: Any = _UNKNOWN  # where it is known while compiling

    @property
    def is_constant(self) -> bool:
        return self.value is not _UNKNOWN


def name(id: str) -> ast.Name:
    return ast.Name(id, ast.Load())


def constant(value: Any) -> ast.expr:
    return ast.Constant(value)


def call(function: ast.expr, *args: ast.expr) -> ast.expr:
    return ast.Call(function, list(args), [])


def attribute(operand: ast.expr, field: str) -> ast.expr:
    return ast.Attribute(operand, field, ast.Load())


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    return ast.Compare(left, [operator], [right])


class Pool:
    """The globals of one generated function: helpers and constants under numbered names."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._globals: dict[str, Any] = {"__builtins__": {}}
        self._variables = 0

    def add(self, value: Any) -> ast.expr:
        known = self._names.get(id(value))
        if known is None:
            known = f"k{len(self._names)}"
            self._names[id(value)] = known
            self._globals[known] = value  # kept alive, so that its id stays its own
        return name(known)

    def fresh(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def lambda_(self, params: Sequence[str], body: ast.expr) -> ast.expr:
        args = ast.arguments([], [ast.arg(param) for param in params], None, [], [], None, [])
        return ast.Lambda(args, body)

    def function(self, param: str, body: ast.expr) -> Callable[[Any], Any]:
        tree = ast.Expression(self.lambda_([param], body))
        for node in ast.walk(tree):  # every node needs a place; a loop, because trees can be deep
            if isinstance(node, ast.expr | ast.arg):
                node.lineno = node.end_lineno = 1
                node.col_offset = node.end_col_offset = 0
        made: Callable[[Any], Any] = eval(compile(tree, "<selector>", "eval"), self._globals)
        return made
