"""Selectors and derived attributes, compiled once and remembered per device kind.

An expression is compiled when it is first put to a device, because upstream only
then finds out that it does not compile: a selector behind one that matches
nothing may be as wrong as it likes.
"""

from collections.abc import Callable, Mapping
from typing import Final
from weakref import WeakValueDictionary

from allot import cel

from .budget import Budget
from .features import Features
from .kind import UNKNOWN_VALUE, Kind, Value

COMPILING_WORK: Final = 32
EVALUATING_WORK: Final = 10
"""Units of work that a character takes to be compiled, and any evaluation. A unit of CEL's cost is one."""

UNLIMITED_COST: Final = 1_000
"""Charged for an expression whose cost has no bound; it is stopped when it has spent COST_LIMIT."""

Prepare = Callable[[], tuple[Callable[[Kind], object], int]]
"""Compiles: what evaluates it, and what that costs at most. Raises CompileError."""


class Failure:
    """An expression that could not be evaluated; fatal where the search meets it."""

    __slots__ = ("compiling", "message")

    def __init__(self, message: str, *, compiling: bool) -> None:
        self.message = message
        self.compiling = compiling


class Expression:
    """One text under one set of features. Equal expressions are the same object."""

    __slots__ = ("__weakref__", "_cost", "_evaluate", "_prepare", "text")

    def __init__(self, text: str, prepare: "Prepare") -> None:
        self.text = text
        self._prepare = prepare
        self._evaluate: Callable[[Kind], object] | None = None
        self._cost = 0  # at most, in CEL's units

    def on(self, kind: Kind) -> object:
        """The value for devices of this kind, or a Failure. Evaluated once per kind."""
        found = kind.remembered.get(self, _UNASKED)
        if found is _UNASKED:
            found = self._evaluated(self._evaluate or self._compiled(), kind)
        return found

    def paid_on(self, kind: Kind, budget: Budget) -> object:
        """The same, each part of the work paid for before it is done: compiling by the text, then evaluating
        by what that may cost. Raises BudgetSpent; who asks again does not compile again."""
        found = kind.remembered.get(self, _UNASKED)
        if found is _UNASKED:
            evaluate = self._evaluate
            if evaluate is None:
                budget.work(COMPILING_WORK * len(self.text))
                evaluate = self._compiled()
            budget.work(EVALUATING_WORK + self._cost)
            found = self._evaluated(evaluate, kind)
        return found

    def _compiled(self) -> Callable[[Kind], object]:
        try:
            evaluate, cost = self._prepare()
        except cel.CompileError as error:
            failure = Failure(str(error), compiling=True)
            evaluate, cost = (lambda _: failure), 0
        # What may cost more is no stranger's: the API takes no such expression.
        self._cost = cost if cost <= cel.COST_LIMIT else UNLIMITED_COST
        self._evaluate = evaluate
        return evaluate

    def _evaluated(self, evaluate: Callable[[Kind], object], kind: Kind) -> object:
        try:
            found = evaluate(kind)
        except cel.EvaluationError as error:
            found = Failure(str(error), compiling=False)
        kind.remember(self, found)
        return found

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


_UNASKED: Final = object()
_known: "WeakValueDictionary[tuple[str, str, bool, bool], Expression]" = WeakValueDictionary()


def selector(text: str, features: Features) -> Expression:
    """`on(kind)` is True, False or a Failure."""

    def prepare() -> tuple[Callable[[Kind], object], int]:
        compiled = cel.compile_selector(text, _language(features), stored=True)
        return lambda kind: compiled.matches(kind.cel), compiled.cost

    return _interned("selector", text, features, prepare)


def derived(text: str, features: Features) -> Expression:
    """`on(kind)` is a Value or a Failure."""

    def prepare() -> tuple[Callable[[Kind], object], int]:
        compiled = cel.compile_attribute(text, _language(features), stored=True)
        lists = features.list_type_attributes
        return lambda kind: _as_value(compiled.value(kind.cel), lists=lists), compiled.cost

    return _interned("derived", text, features, prepare)


def _interned(what: str, text: str, features: Features, prepare: Prepare) -> Expression:
    key = (what, text, features.consumable_capacity, features.list_type_attributes)
    expression = _known.get(key)
    if expression is None:
        expression = _known[key] = Expression(text, prepare)
    return expression


def _language(features: Features) -> cel.Features:
    return cel.Features(
        consumable_capacity=features.consumable_capacity, list_attributes=features.list_type_attributes
    )


def _as_value(published: Mapping[str, object], *, lists: bool) -> Value:
    """From the form an attribute is published in: {"int": 4}, {"ints": [4, 5]} or {}."""
    for tag, value in published.items():
        if not isinstance(value, list | tuple):
            return frozenset(((tag, value),))
        if lists:
            return frozenset((tag.removesuffix("s"), one) for one in value)
    return UNKNOWN_VALUE
