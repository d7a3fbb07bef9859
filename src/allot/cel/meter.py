"""Counting what an evaluation really costs, with the estimator's own price list.

Selectors whose worst case is within the limit never meet a meter. The others
run counted and stop when they have spent what any selector may.
"""

from typing import Any, Final

from .callcost import Operand, call_cost
from .errors import CostExceeded
from .span import Span, fixed
from .tree import Literal
from .values import Optional, runtime_type

COST_LIMIT: Final = 1_000_000


class Meter:
    __slots__ = ("_left",)

    def __init__(self, limit: int = COST_LIMIT) -> None:
        self._left = limit

    def charge(self, cost: int) -> None:
        self._left -= cost
        if self._left < 0:
            raise CostExceeded

    def charge_call(self, function: str, id: str, member: bool, values: tuple[Any, ...]) -> None:
        """Before the call is made, so that a huge one is never begun."""
        operands = [self._operand(value) for value in values]
        if id == "matches":  # priced as a method, which the estimate forgets to do
            id, member = "matches_string", True
        target = operands.pop(0) if member else None
        self.charge(call_cost(function, id, target, operands).cost.high)

    def _operand(self, value: Any) -> Operand:
        self._charge_nested(value)
        size = fixed(_size(value))
        element = Span(0, max(map(_size, value), default=0)) if isinstance(value, list | tuple) else None
        kind = runtime_type(value)
        return Operand(Literal(-1, 0, value), kind, size, size, element)

    def _charge_nested(self, value: Any) -> None:
        """Containers of containers can hold more than they are long; whoever touches them pays for all."""
        waiting = [value]
        while waiting:
            inner = _nested(waiting.pop())
            if inner:
                self.charge(10 * len(inner))  # as much as making each of them
                waiting.extend(inner)


class Free(Meter):
    """For expressions that cannot cost too much."""

    __slots__ = ()

    def charge(self, cost: int) -> None:
        pass

    def charge_call(self, function: str, id: str, member: bool, values: tuple[Any, ...]) -> None:
        pass


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 1


def _nested(value: Any) -> list[Any]:
    if isinstance(value, Optional):
        return [value.value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [item for item in items if isinstance(item, list | tuple | dict | Optional)]
