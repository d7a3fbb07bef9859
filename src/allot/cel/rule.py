"""Rules: expressions over named values, such as `self.replicas <= self.limit`.

The same language and the same stages as selectors (`selector`), with other variables: what they are is
declared by whoever compiles. A rule runs counted, always: what it meets is as large as the API allows.

    rule = compile_rule("self.replicas <= 3", Declared({"self": INT}))
    rule.run({"self": 2}, Meter())
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .checker import Checked, Environment, check
from .constants import failing
from .errors import CompileError, EvaluationError, Issue, ParseProblem, render
from .estimate import SizeAt, estimate
from .interpret import evaluate_in
from .library import FUNCTIONS, LIST_ATTRIBUTE_FUNCTIONS
from .meter import Meter
from .parser import parse
from .tree import Ident, walk
from .types import Type
from .validate import validate
from .values import NONE, Optional

RULE_LENGTH_MAX: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Declared:
    """What a rule may name: variables, the fields of their types, and how large they can be."""

    variables: Mapping[str, Type]
    fields: Mapping[Type, Mapping[str, Type]] = field(default_factory=dict)
    size_at: SizeAt = lambda path: None


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    expression: str
    checked: Checked
    cost: int  # the most that it can cost

    @property
    def type(self) -> Type:
        return self.checked.type

    def uses(self, variable: str) -> bool:
        return any(isinstance(node, Ident) and node.name == variable for node in walk(self.checked.root))

    def run(self, values: Mapping[str, Any], meter: Meter) -> Any:
        """Raises EvaluationError."""
        try:
            return evaluate_in(self.checked, dict(values), meter)
        except RecursionError:
            raise EvaluationError("the expression is too deeply nested") from None


def optional(value: Any, is_present: bool) -> Optional:
    """A value that may be absent, as a rule sees it."""
    return Optional(value) if is_present else NONE


class _Later(dict[str, Any]):
    """Members that are worked out when an expression first asks for them."""

    def __init__(self, names: Iterable[str], make: Callable[[str], Any]) -> None:
        super().__init__()
        self._names = frozenset(names)
        self._make = make

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __missing__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        found = self[name] = self._make(name)
        return found


def later(names: Iterable[str], make: Callable[[str], Any]) -> dict[str, Any]:
    """A value whose members are made by `make` when they are first asked for."""
    return _Later(names, make)


def compile_rule(expression: str, declared: Declared) -> Rule:
    """Raises CompileError."""
    if len(expression) > RULE_LENGTH_MAX:
        raise CompileError(f"may not be more than {RULE_LENGTH_MAX} bytes", "too_long")
    functions = {**FUNCTIONS, **LIST_ATTRIBUTE_FUNCTIONS}
    try:
        checked, issues = check(
            parse(expression), Environment(functions, declared.variables, declared.fields)
        )
        issues = issues or validate(checked)
    except ParseProblem as problem:
        issues = [problem.issue]
    except RecursionError:
        issues = [Issue(0, "expression is too deeply nested")]
    if issues:
        raise CompileError(f"compilation failed: {render(expression, issues)}")
    failed = failing(checked)
    if failed is not None:
        raise CompileError(f"compilation failed: {render(expression, [failed])}")
    return Rule(expression, checked, estimate(checked, declared.size_at).high)
