"""What is wrong with a new CEL expression, in the words of a field error.

The same few expressions come with every claim of a template, so verdicts are
kept: a compile costs more than all the rest of a create.
"""

from collections import OrderedDict

from allot.api import FieldErrorText, Gates
from allot.cel import CompileError, Features, compile_attribute, compile_selector

_KEPT_MAX = 2048


class CelExpressions:
    def __init__(self, gates: Gates) -> None:
        self._features = Features(
            consumable_capacity=gates["DRAConsumableCapacity"], list_attributes=gates["DRAListTypeAttributes"]
        )
        self._verdicts: OrderedDict[str, FieldErrorText | None] = OrderedDict()

    def check_selector(self, expression: str) -> FieldErrorText | None:
        if expression in self._verdicts:
            self._verdicts.move_to_end(expression)
            return self._verdicts[expression]
        verdict = None
        try:
            compile_selector(expression, self._features)
        except CompileError as wrong:
            verdict = FieldErrorText(wrong.kind, wrong.message)
        self._verdicts[expression] = verdict
        if len(self._verdicts) > _KEPT_MAX:
            self._verdicts.popitem(last=False)
        return verdict

    def check_attribute(self, expression: str) -> FieldErrorText | int:
        try:
            return compile_attribute(expression, self._features).cost
        except CompileError as wrong:
            return FieldErrorText(wrong.kind, wrong.message)
