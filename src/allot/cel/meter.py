"""Counting what an evaluation really costs, with the estimator's own price list.

Selectors whose worst case is within the limit never meet a meter. The others
run counted and stop when they have spent what any selector may.
"""

from math import ceil
from typing import Any, Final

from .callcost import PER_CHARACTER, PER_PATTERN_CHARACTER, Operand, call_cost
from .device import Domains
from .errors import CostExceeded
from .span import Span, fixed
from .tree import Literal
from .values import Optional, runtime_type

COST_LIMIT: Final = 1_000_000


class Meter:
    __slots__ = ("_left",)

    def __init__(self, limit: int = COST_LIMIT) -> None:
        self._left = limit

    @property
    def left(self) -> int:
        """What may still be spent; less than 0 when it was too much."""
        return self._left

    def charge(self, cost: int) -> None:
        self._left -= cost
        if self._left < 0:
            raise CostExceeded

    def charge_call(self, function: str, id: str, member: bool, values: tuple[Any, ...]) -> None:
        """Before the call is made, so that a huge one is never begun."""
        if function not in _UNTOUCHED:
            for value in values:
                self._charge_nested(value)
        operands = [_operand(value) for value in values]
        if function in _READ_FIRST or function in _TRAVERSED or id == "matches":
            self.charge(_text_cost(function, values))
            return
        target = operands.pop(0) if member else None
        self.charge(call_cost(function, id, target, operands).cost.high)

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


# These leave alone what is inside their arguments.
_UNTOUCHED: Final = frozenset({"_[_]", "_[?_]", "size", "_+_", "dyn", "type"})

# Where running is priced otherwise than foreseeing: by the text that is really read.
_READ_FIRST: Final = frozenset(
    {"quantity", "isQuantity", "semver", "isSemver", "url", "cidr", "isIP", "isCIDR"}
)
_TRAVERSED: Final = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})


def _text_cost(function: str, values: tuple[Any, ...]) -> int:
    if function in _READ_FIRST:
        return ceil(_size(values[0]) * PER_CHARACTER)
    if function in _TRAVERSED:
        items = values[0] if isinstance(values[0], list | tuple) else values[:1]
        return sum(int(len(i) * PER_CHARACTER) if isinstance(i, str | bytes) else 1 for i in items)
    text, pattern = map(_size, values)
    return ceil((1 + text) * PER_CHARACTER) * ceil(pattern * PER_PATTERN_CHARACTER)


def _operand(value: Any) -> Operand:
    size = fixed(_size(value))
    element = Span(0, max(map(_size, value), default=0)) if isinstance(value, list | tuple) else None
    return Operand(Literal(-1, 0, value), runtime_type(value), size, element)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 1


def _nested(value: Any) -> list[Any]:
    """The containers in a container, as far as the expression made them: the device's own are small."""
    if isinstance(value, Domains):
        return []
    if isinstance(value, Optional):
        return [value.value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, list | dict | Optional)]
