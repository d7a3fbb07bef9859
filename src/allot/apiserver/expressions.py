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
        """Judge the expressions of an object, if there is much to read."""
        unknown = [
            (place, text)
            for place, text in dict.fromkeys(_expressions(fields.get("spec"), ""))
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


_PLACES = {"cel": "selector", "derivedAttributes": "attribute"}


def _expressions(value: object, place: str) -> Iterator[tuple[str, str]]:
    """Every expression below `value`, and what it is for. Driver parameters are not ours to read."""
    if isinstance(value, dict):
        for name, below in value.items():
            if name == "expression" and place and isinstance(below, str):
                yield place, below
            elif name != "opaque":
                yield from _expressions(below, _PLACES.get(name, ""))
    elif isinstance(value, list):
        for one in value:
            yield from _expressions(one, place)
