"""What is wrong with a new CEL expression, in the words of a field error.

The same few expressions come with every claim of a template, so verdicts are
kept: a compile costs more than all the rest of a create.

A claim may carry hundreds of long expressions, which take seconds to compile.
Those are judged in a thread, one at a time, before the rules ask for them: the
others are answered meanwhile, whatever somebody sends.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator

from allot.api import FieldErrorText, Fields, Gates
from allot.cel import CompileError, Features, compile_attribute, compile_selector

from .occasion import Judged

_KEPT_MAX = 2048
_AT_ONCE_MAX = 1024
"""Characters of unknown expressions that are judged on the event loop: a few milliseconds' worth."""
_LENGTH_MAX = 10 * 1024
"""Longer ones are refused by the rules, unread."""


class CelExpressions:
    def __init__(self, gates: Gates) -> None:
        self._features = Features(
            consumable_capacity=gates["DRAConsumableCapacity"], list_attributes=gates["DRAListTypeAttributes"]
        )
        self._verdicts: OrderedDict[str, FieldErrorText | None] = OrderedDict()
        self._turn = asyncio.Lock()

    async def study(self, fields: Fields, judged: Judged) -> None:
        """Judge the expressions of a class, a claim or a template, if there is much to read."""
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
