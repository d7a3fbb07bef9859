"""What is wrong with a new CEL expression, in the words of a field error.

The same few expressions come with every claim of a template, so verdicts are
kept: a compile costs more than all the rest of a create.

A claim may carry hundreds of long expressions, which take seconds to compile, and a definition as many
rules. The rules of a kind ask about each where they meet it, and only they know where that is. So they
are asked as if what is unknown and long were right; what they asked about is judged aside (`aside`), one
after the other; then they are asked again.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import msgspec

from allot.api import FieldError, FieldErrorText, Fields, Gates, Path, custom, schema
from allot.cel import CompileError, Features, compile_attribute, compile_selector, compile_template

from ..requests.aside import SMALL_BYTES, Seat
from . import rulebook

V = TypeVar("V")
_Key = tuple[str, Hashable]  # what is asked, and of what
_BROKEN = "broken"

_KEPT_MAX = 2048
_AT_ONCE_MAX = 1024
"""Characters of unknown expressions that are judged where they are met: a few milliseconds' worth."""
_JUDGED_AT_ONCE_MAX = 20_000
"""What the rules of an object may cost to be judged where it is: some milliseconds' worth."""


class CelExpressions:
    """Verdicts, for all who write; asked by several threads."""

    def __init__(self, gates: Gates) -> None:
        self._features = Features(
            consumable_capacity=gates["DRAConsumableCapacity"], list_attributes=gates["DRAListTypeAttributes"]
        )
        self._verdicts: OrderedDict[str, FieldErrorText | None] = OrderedDict()
        self._books: WeakKeyDictionary[schema.Schema, rulebook.Page] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def knows(self, selector: str) -> bool:
        return selector in self._verdicts

    def selector(self, expression: str) -> FieldErrorText | None:
        with self._lock:
            if expression in self._verdicts:
                self._verdicts.move_to_end(expression)
                return self._verdicts[expression]
        try:
            compile_selector(expression, self._features)
            verdict = None
        except CompileError as wrong:
            verdict = FieldErrorText(wrong.kind, wrong.message)
        with self._lock:
            self._verdicts[expression] = verdict
            if len(self._verdicts) > _KEPT_MAX:
                self._verdicts.popitem(last=False)
        return verdict

    def attribute(self, expression: str) -> FieldErrorText | int:
        try:
            return compile_attribute(expression, self._features).cost
        except CompileError as wrong:
            return FieldErrorText(wrong.kind, wrong.message)

    def template(self, text: str) -> FieldErrorText | None:
        try:
            compile_template(text)
        except CompileError as wrong:
            return FieldErrorText(wrong.kind, wrong.message)
        return None

    # -- rules of custom resources

    def rules(self, openapi: Mapping[str, Any], path: Path) -> list[FieldError]:
        """What is wrong with the rules in the schema of a definition."""
        if custom.check_structural(openapi, path):
            return []  # the definition is refused for that
        return rulebook.read(schema.from_structural(openapi), path)[1]

    def broken(self, shape: schema.Schema, new: Fields, old: Fields | None) -> list[FieldError]:
        """Which rules of its schema an object breaks."""
        return rulebook.judge(self._book(shape), new, old)

    def is_cheap(self, shape: schema.Schema) -> bool:
        """Whether that is known to be done in a moment."""
        with self._lock:
            book = self._books.get(shape)
        return book is not None and book.cost <= _JUDGED_AT_ONCE_MAX

    def _book(self, shape: schema.Schema) -> rulebook.Page:
        """Rules that cannot be read any more are left out: their definition was accepted once."""
        with self._lock:
            found = self._books.get(shape)
        if found is None:
            found = rulebook.read(shape, Path())[0]
            with self._lock:
                self._books[shape] = found
        return found


class Judging(msgspec.Struct):
    """The expressions of one write."""

    _expressions: CelExpressions
    _room: int = _AT_ONCE_MAX
    _found: dict[_Key, Any] = {}  # each its own: structs copy empty defaults
    _waiting: dict[_Key, Callable[[], Any]] = {}

    @property
    def is_complete(self) -> bool:
        """Whether every answer was a verdict, and not a guess."""
        return not self._waiting

    def selector(self, text: str) -> FieldErrorText | None:
        now = self._expressions.knows(text) or self._has_time_for(text)
        return self._asked(("selector", text), lambda: self._expressions.selector(text), None, now=now)

    def attribute(self, text: str) -> FieldErrorText | int:
        now, guess = self._has_time_for(text), cast("FieldErrorText | int", 0)
        return self._asked(("attribute", text), lambda: self._expressions.attribute(text), guess, now=now)

    def template(self, text: str) -> FieldErrorText | None:
        now = self._has_time_for(text)
        return self._asked(("template", text), lambda: self._expressions.template(text), None, now=now)

    def rules(self, openapi: Mapping[str, Any], path: Path) -> list[FieldError]:
        return self._asked(
            ("rules", id(openapi)), lambda: self._expressions.rules(openapi, path), [], now=False
        )

    def broken(self, shape: schema.Schema, new: Fields, old: Fields | None) -> list[FieldError]:
        now = self._expressions.is_cheap(shape)
        return self._asked((_BROKEN, id(new)), lambda: self._expressions.broken(shape, new, old), [], now=now)

    async def judge(self, seat: Seat) -> None:
        """Find out what was guessed. A text is compiled in a moment; rules over an object may take long."""
        await seat.settle(SMALL_BYTES + 1)
        for key, judge in list(self._waiting.items()):
            self._found[key] = await (seat.judged if key[0] == _BROKEN else seat.do)(judge)
            del self._waiting[key]

    def _asked(self, key: _Key, judge: Callable[[], V], guess: V, *, now: bool) -> V:
        if key in self._found:
            return self._found[key]  # type: ignore[no-any-return]
        if now:
            return judge()
        self._waiting[key] = judge
        return guess

    def _has_time_for(self, text: str) -> bool:
        self._room -= len(text)
        return self._room >= 0
