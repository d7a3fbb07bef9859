"""What is wrong with a new CEL expression, in the words of a field error.

The same few expressions come with every claim of a template, so verdicts are
kept: a compile costs more than all the rest of a create.

A claim may carry hundreds of long expressions, which take seconds to compile.
Those are judged in a thread, one at a time, before the rules ask for them: the
others are answered meanwhile, whatever somebody sends.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from allot.api import FieldError, FieldErrorText, Fields, Gates, Path, custom, schema
from allot.cel import CompileError, Features, compile_attribute, compile_selector

from . import rulebook
from .occasion import Judged

_KEPT_MAX = 2048
_AT_ONCE_MAX = 1024
"""Characters of unknown expressions that are judged on the event loop: a few milliseconds' worth."""
_JUDGED_AT_ONCE_MAX = 20_000
"""What the rules of an object may cost to be judged on the event loop: some milliseconds' worth."""
_LENGTH_MAX = 10 * 1024
"""Longer ones are refused by the rules, unread."""


class CelExpressions:
    def __init__(self, gates: Gates) -> None:
        self._features = Features(
            consumable_capacity=gates["DRAConsumableCapacity"], list_attributes=gates["DRAListTypeAttributes"]
        )
        self._verdicts: OrderedDict[str, FieldErrorText | None] = OrderedDict()
        self._turn = asyncio.Lock()
        self._books: WeakKeyDictionary[schema.Schema, rulebook.Page] = WeakKeyDictionary()

    async def study(self, fields: Fields, judged: Judged) -> None:
        """Judge the expressions of a class, a claim, a template or a definition before the rules ask."""
        for openapi, path in rulebook.schemas_with_rules(fields):
            async with self._turn:
                judged.complaints[id(openapi)] = await asyncio.to_thread(self.check_rules, openapi, path)
        unknown = [
            (place, text)
            for place, text in dict.fromkeys(_expressions(fields.get("spec") or {}))
            if len(text) <= _LENGTH_MAX and not (place == "selector" and text in self._verdicts)
        ]
        if sum(len(text) for _, text in unknown) <= _AT_ONCE_MAX:
            return
        for place, text in unknown:
            async with self._turn:
                if place == "selector":
                    verdict = judged.selectors[text] = await asyncio.to_thread(self._judge, text)
                    self._keep(text, verdict)
                else:
                    judged.attributes[text] = await asyncio.to_thread(self.check_attribute, text)

    # -- rules of custom resources

    async def study_rules(self, shape: schema.Schema, new: Fields, old: Fields | None) -> list[FieldError]:
        """In a thread where it may take long."""
        book = self._books.get(shape)
        if book is None:
            async with self._turn:
                book = await asyncio.to_thread(self._book, shape)
        if book.cost <= _JUDGED_AT_ONCE_MAX:
            return rulebook.judge(book, new, old)
        return await asyncio.to_thread(rulebook.judge, book, new, old)

    def check_rules(self, openapi: Mapping[str, Any], path: Path) -> list[FieldError]:
        if custom.check_structural(openapi, path):
            return []  # the definition is refused for that
        return rulebook.read(schema.from_structural(openapi), path)[1]

    def judge(self, shape: schema.Schema, new: Fields, old: Fields | None) -> list[FieldError]:
        return rulebook.judge(self._book(shape), new, old)

    def _book(self, shape: schema.Schema) -> rulebook.Page:
        """Rules that cannot be read any more are left out: their definition was accepted once."""
        found = self._books.get(shape)
        if found is None:
            found = self._books[shape] = rulebook.read(shape, Path())[0]
        return found

    # -- selectors

    def check_selector(self, expression: str) -> FieldErrorText | None:
        if expression in self._verdicts:
            self._verdicts.move_to_end(expression)
            return self._verdicts[expression]
        verdict = self._judge(expression)
        self._keep(expression, verdict)
        return verdict

    def _judge(self, expression: str) -> FieldErrorText | None:
        try:
            compile_selector(expression, self._features)
        except CompileError as wrong:
            return FieldErrorText(wrong.kind, wrong.message)
        return None

    def _keep(self, expression: str, verdict: FieldErrorText | None) -> None:
        self._verdicts[expression] = verdict
        if len(self._verdicts) > _KEPT_MAX:
            self._verdicts.popitem(last=False)

    def check_attribute(self, expression: str) -> FieldErrorText | int:
        try:
            return compile_attribute(expression, self._features).cost
        except CompileError as wrong:
            return FieldErrorText(wrong.kind, wrong.message)


def _expressions(spec: Fields) -> Iterator[tuple[str, str]]:
    """Every expression that the rules will ask about, and what it is for."""
    for asked in _askers(spec):
        for selector in asked.get("selectors") or ():
            yield "selector", (selector.get("cel") or {}).get("expression") or ""
        for attribute in asked.get("derivedAttributes") or ():
            yield "attribute", attribute.get("expression") or ""


def _askers(spec: Fields) -> Iterator[Fields]:
    """What may have expressions: a class itself, each request of a claim, each of its alternatives."""
    yield spec
    claim = spec.get("spec") or spec  # a template has the spec of its claims
    for request in (claim.get("devices") or {}).get("requests") or ():
        if request.get("exactly"):
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()
