"""Selectors and derived attributes, compiled once and remembered per device kind.

An expression is compiled when it is first put to a device, because upstream only
then finds out that it does not compile: a selector behind one that matches
nothing may be as wrong as it likes.
"""

from collections.abc import Callable, Mapping
from typing import Final
from weakref import WeakValueDictionary

from allot import cel

from .features import Features
from .kind import UNKNOWN_VALUE, Kind, Value


class Failure:
    """An expression that could not be evaluated; fatal where the search meets it."""

    __slots__ = ("compiling", "message")

    def __init__(self, message: str, *, compiling: bool) -> None:
        self.message = message
        self.compiling = compiling


class Expression:
    """One text under one set of features. Equal expressions are the same object."""

    __slots__ = ("__weakref__", "_evaluate", "_prepare", "text")

    def __init__(self, text: str, prepare: "Callable[[], Callable[[Kind], object]]") -> None:
        self.text = text
        self._prepare = prepare
        self._evaluate: Callable[[Kind], object] | None = None

    def on(self, kind: Kind) -> object:
        """The value for devices of this kind, or a Failure. Evaluated once per kind."""
        found = kind.remembered.get(self, _UNASKED)
        if found is _UNASKED:
            found = self._ask(kind)
            kind.remember(self, found)
        return found

    def _ask(self, kind: Kind) -> object:
        if self._evaluate is None:
            try:
                self._evaluate = self._prepare()
            except cel.CompileError as error:
                failure = Failure(str(error), compiling=True)
                self._evaluate = lambda _: failure
        try:
            return self._evaluate(kind)
        except cel.EvaluationError as error:
            return Failure(str(error), compiling=False)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


_UNASKED: Final = object()
_known: "WeakValueDictionary[tuple[str, str, bool, bool], Expression]" = WeakValueDictionary()


def selector(text: str, features: Features) -> Expression:
    """`on(kind)` is True, False or a Failure."""

    def prepare() -> Callable[[Kind], object]:
        compiled = cel.compile_selector(text, _language(features), stored=True)
        return lambda kind: compiled.matches(kind.cel)

    return _interned("selector", text, features, prepare)


def derived(text: str, features: Features) -> Expression:
    """`on(kind)` is a Value or a Failure."""

    def prepare() -> Callable[[Kind], object]:
        compiled = cel.compile_attribute(text, _language(features), stored=True)
        lists = features.list_type_attributes
        return lambda kind: _as_value(compiled.value(kind.cel), lists=lists)

    return _interned("derived", text, features, prepare)


def _interned(
    what: str, text: str, features: Features, prepare: Callable[[], Callable[[Kind], object]]
) -> Expression:
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
