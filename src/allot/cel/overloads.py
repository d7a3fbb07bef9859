"""What can be called: declarations, and finding the right one when it runs.

A function is a name with overloads. The checker keeps the overloads that may
apply; when the types are known only at run time, `dispatcher` tries those in
order against the values themselves.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .types import Kind, Type
from .values import Optional, no_overload, runtime_type


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """One way to call a function, by the types it takes."""

    id: str
    params: tuple[Type, ...]  # the target first
    result: Type
    run: Callable[..., Any]
    member: bool = False
    guarded: bool = True  # `run` is only called with values that fit `params`
    generic: bool = field(init=False)  # the types depend on each other

    def __post_init__(self) -> None:
        object.__setattr__(self, "generic", any(type.is_open for type in (*self.params, self.result)))

    def takes(self, values: tuple[Any, ...]) -> bool:
        return not self.guarded or all(accepts(t, v) for t, v in zip(self.params, values, strict=True))


@dataclass(frozen=True, slots=True)
class Declaration:
    function: str
    overload: Overload


Functions = Mapping[str, tuple[Overload, ...]]


def function(
    name: str, id: str, params: tuple[Type, ...], result: Type, run: Callable[..., Any]
) -> Declaration:
    return Declaration(name, Overload(id, params, result, run))


def judging(
    name: str, id: str, params: tuple[Type, ...], result: Type, run: Callable[..., Any]
) -> Declaration:
    """A function that looks at the kinds of its arguments itself."""
    return Declaration(name, Overload(id, params, result, run, guarded=False))


def method(
    name: str, id: str, params: tuple[Type, ...], result: Type, run: Callable[..., Any]
) -> Declaration:
    return Declaration(name, Overload(id, params, result, run, member=True))


def table(declarations: Iterable[Declaration]) -> Functions:
    found: dict[str, tuple[Overload, ...]] = {}
    for declaration in declarations:
        found[declaration.function] = (*found.get(declaration.function, ()), declaration.overload)
    return found


def accepts(type: Type, value: Any) -> bool:
    """Whether a value may stand for a parameter; of a container the first element speaks for all."""
    if type.is_dynamic or type.kind is Kind.PARAM:
        return True
    found = runtime_type(value)
    if found.kind is not type.kind or found.name != type.name:
        return False
    if type.kind is Kind.LIST:
        return not value or accepts(type.params[0], value[0])
    if type.kind is Kind.OPAQUE and isinstance(value, Optional):
        return not value.present or accepts(type.params[0], value.value)
    return True


def dispatcher(overloads: tuple[Overload, ...]) -> Callable[..., Any]:
    """One callable for several overloads, choosing by the values it is given."""

    def call(*args: Any) -> Any:
        for overload in overloads:
            if overload.takes(args):
                return overload.run(*args)
        raise no_overload(*args)

    return call
