"""From the text of a selector to something that judges devices.

    parse -> check -> validate -> constants -> estimate -> generate
                                                   \\-> counted, when the worst case is over the limit

Where it sits
    The API server compiles new expressions to accept or refuse them; allocation
    compiles what is stored and asks `matches` once for each kind of device.

What it promises
    SELECT1  Whatever the text, the answer is a Selector or a CompileError, soon.
    SELECT2  A selector whose estimate exceeds the limit, or that meets a device larger than
             the API allows, runs counted and stops at the limit.
    SELECT3  `matches` answers True or False, or raises EvaluationError; nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from . import types
from .checker import Checked, check
from .constants import failing
from .device import CelDevice
from .environment import Features, attribute_type, environment
from .errors import CompileError, EvaluationError, Issue, ParseProblem, render
from .estimate import estimate
from .generate import generate
from .interpret import evaluate
from .meter import COST_LIMIT, Free, Meter
from .parser import parse
from .validate import is_underpriced, validate
from .values import type_name

LENGTH_MAX: Final = 10_240
_DEFAULT: Final = Features()


class Program:
    """An expression, checked and priced. Code for it is made when it first runs."""

    __slots__ = ("_fast", "checked", "cost", "counted", "expression", "features")

    def __init__(self, expression: str, checked: Checked, features: Features, cost: int) -> None:
        self.expression = expression
        self.checked = checked
        self.features = features
        self.cost = cost
        self.counted = cost > COST_LIMIT or is_underpriced(checked)
        self._fast: Callable[[CelDevice], Any] | None = None if self.counted else self._first

    def run(self, device: CelDevice) -> Any:
        if self._fast is not None and device.plain:
            try:
                return self._fast(device)
            except Exception:  # optimism failed; whatever it was, the careful way knows what it means
                pass
        return self._carefully(device)

    def _first(self, device: CelDevice) -> Any:
        made = generate(self.checked) or self._carefully
        self._fast = made
        return made(device)

    def _carefully(self, device: CelDevice) -> Any:
        if device.problem is not None:
            raise EvaluationError(device.problem)
        meter = Meter() if self.counted or not device.plain else Free()
        try:
            return evaluate(self.checked, device, meter)
        except RecursionError:
            raise EvaluationError("the expression is too deeply nested") from None


@dataclass(frozen=True, slots=True, eq=False)
class Selector:
    """Judges devices. Compile once, ask for each kind of device."""

    program: Program

    @property
    def expression(self) -> str:
        return self.program.expression

    @property
    def cost(self) -> int:
        return self.program.cost

    def matches(self, device: CelDevice) -> bool:
        result = self.program.run(device)
        if result is True or result is False:
            return result
        raise EvaluationError(f"CEL result of type {type_name(result)} could not be converted to bool")


def compile_selector(
    expression: str,
    features: Features = _DEFAULT,
    *,
    stored: bool = False,
    cost_limit: int | None = COST_LIMIT,
) -> Selector:
    """A selector from its text. New text must be short and cheap; what is stored was, once."""
    program = compile_program(expression, features, stored)
    wanted = (types.BOOL, attribute_type(features, stored))
    if program.checked.type not in wanted:
        raise CompileError(f"must evaluate to bool or the unknown type, not {program.checked.type}")
    if not stored:
        demand_cheap(program, cost_limit)
    return Selector(program)


def demand_cheap(program: Program, cost_limit: int | None = COST_LIMIT) -> None:
    if cost_limit is not None and program.cost > cost_limit:
        raise CompileError("too complex, exceeds cost limit", "forbidden")


def compile_program(expression: str, features: Features, stored: bool) -> Program:
    if not stored and len(expression.encode(errors="surrogatepass")) > LENGTH_MAX:
        raise CompileError(f"may not be more than {LENGTH_MAX} bytes", "too_long")
    try:
        return _compiled(expression, features, stored)
    except ParseProblem as problem:
        raise _refusal(expression, [problem.issue]) from None
    except RecursionError:
        raise _refusal(expression, [Issue(0, "expression is too deeply nested")]) from None


def _compiled(expression: str, features: Features, stored: bool) -> Program:
    checked, issues = check(parse(expression), environment(features, stored))
    issues = issues or validate(checked)
    if issues:
        raise _refusal(expression, issues)
    failed = failing(checked)
    if failed is not None:
        raise CompileError(f"program instantiation failed: {render(expression, [failed])}")
    return Program(expression, checked, features, estimate(checked).high)


def _refusal(expression: str, issues: list[Issue]) -> CompileError:
    return CompileError(f"compilation failed: {render(expression, issues)}")
