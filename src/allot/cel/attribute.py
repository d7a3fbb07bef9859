"""Derived attributes: an expression whose value stands in for a published one."""

from dataclasses import dataclass
from typing import Any, Final

from allot.api import Semver

from . import types
from .device import CelDevice
from .environment import Features
from .errors import CompileError, EvaluationError
from .meter import COST_LIMIT
from .selector import Program, compile_program, demand_cheap
from .types import Kind, Type
from .values import type_name

_SCALARS: Final = {types.INT: "int", types.BOOL: "bool", types.STRING: "string", types.SEMVER: "version"}
_KEYS: Final = {int: "int", bool: "bool", str: "string", Semver: "version"}
_DEFAULT: Final = Features()


@dataclass(frozen=True, slots=True, eq=False)
class DerivedAttribute:
    program: Program

    @property
    def expression(self) -> str:
        return self.program.expression

    @property
    def cost(self) -> int:
        return self.program.cost

    def value(self, device: CelDevice) -> dict[str, Any]:
        """In the form an attribute is published: `{"int": 4}`. Raises EvaluationError.

        A list is said whether or not attributes may be lists, and an empty one has no type: what
        constraints make of such values is the same for those that are published.
        """
        return _published(self.program.run(device))


def compile_attribute(
    expression: str,
    features: Features = _DEFAULT,
    *,
    stored: bool = False,
    cost_limit: int | None = COST_LIMIT,
) -> DerivedAttribute:
    program = compile_program(expression, features, stored)
    if not _is_attribute(program.checked.type, features.list_attributes or stored):
        raise CompileError(
            f"must evaluate to int, bool, string, version or the unknown type, not {program.checked.type}"
        )
    if not stored:
        demand_cheap(program, cost_limit)
    return DerivedAttribute(program)


def _is_attribute(type: Type, lists: bool) -> bool:
    if type.kind is Kind.LIST and lists:
        return _is_attribute(type.params[0], lists=False)
    return type in _SCALARS or type.is_dynamic


def _published(value: Any) -> dict[str, Any]:
    if isinstance(value, list | tuple):
        kinds = {type(item) for item in value}
        if not kinds:
            return {}
        if len(kinds) == 1 and (key := _KEYS.get(kinds.pop())) is not None:
            return {f"{key}s": [_plain(item) for item in value]}
        raise EvaluationError("a derived list must hold ints, bools, strings or versions, all of one kind")
    key = _KEYS.get(type(value))
    if key is None:
        raise EvaluationError(f"CEL result of type {type_name(value)} cannot be an attribute")
    return {key: _plain(value)}


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, Semver) else value
