"""A policy, read: its expressions compiled, and asked about one write. Pure.

Expressions see `object`, `oldObject`, `request`, `params`, `namespaceObject` and `variables`; none of them
has a type before it is seen. A variable is worked out when an expression first asks for it. What all of it
costs is counted, for each policy and write.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from allot import cel
from allot.api import FieldError, Path
from allot.api import field as wrong

from .views import PolicySpec, Validation

MATCH_CONDITIONS_MAX: Final = 64
BUDGET: Final = 10_000_000
BUDGET_OF_ONE: Final = 1_000_000
BUDGET_AT_ONCE: Final = 1_000
VALUES_AT_ONCE: Final = 1_000
"""What may be spent where the write is, and on how many values: some milliseconds' worth."""
_NAMES = ("object", "oldObject", "request", "params", "namespaceObject", "variables")
_DECLARED = cel.Declared(dict.fromkeys(_NAMES, cel.DYN))
_SPEC = Path("spec")


@dataclass(frozen=True, slots=True)
class Denied:
    message: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    validation: Validation
    rule: cel.Rule
    message_rule: cel.Rule | None


@dataclass(slots=True)
class Purse:
    """What may be spent on expressions."""

    left: int
    is_short: bool = False  # an expression wanted more than there was


class Policy:
    """One policy, ready to be asked."""

    def __init__(self, name: str, spec: PolicySpec) -> None:
        """Raises CompileError: what is stored was accepted, so that is rare."""
        self.name = name
        self.spec = spec
        self._conditions = [
            (one.name, cel.compile_rule(one.expression, _DECLARED)) for one in spec.match_conditions
        ]
        self._variables = {one.name: cel.compile_rule(one.expression, _DECLARED) for one in spec.variables}
        self._validations = [
            Judged(
                one,
                cel.compile_rule(one.expression, _DECLARED),
                cel.compile_rule(one.message_expression, _DECLARED) if one.message_expression else None,
            )
            for one in spec.validations
        ]

    def judge(self, values: Mapping[str, Any], purse: Purse) -> list[Denied]:
        """Everything that the write breaks. What cannot be worked out counts as broken, unless the policy
        says that failures are ignored."""
        return list(self._denials(_Run(self._variables, values, purse)))

    def _denials(self, run: "_Run") -> Iterator[Denied]:
        for name, rule in self._conditions:
            try:
                if run.value(rule) is not True:
                    return
            except cel.EvaluationError as error:
                if self.spec.failure_policy == "Fail":
                    yield Denied(f"match condition '{name}' resulted in error: {error}")
                return
        for one in self._validations:
            try:
                if run.value(one.rule) is True:
                    continue
            except cel.EvaluationError as error:
                if self.spec.failure_policy == "Fail":
                    yield Denied(f"expression '{one.validation.expression}' resulted in error: {error}")
                continue
            yield Denied(run.message(one), one.validation.reason)


def are_few(values: Any) -> bool:
    """Whether an operation over them is done in a moment: it may read all that it is given."""
    waiting, left = [values], VALUES_AT_ONCE
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            left -= len(one)
            if left < 0:
                return False
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return True


class _Run:
    """One policy and one write: what is spent, and which variables are known."""

    def __init__(self, variables: Mapping[str, cel.Rule], values: Mapping[str, Any], purse: Purse) -> None:
        self._purse = purse
        self._values = {**values, "variables": cel.later(variables.keys(), self._variable)}
        self._variables = variables

    def value(self, rule: cel.Rule) -> Any:
        most = min(self._purse.left, BUDGET_OF_ONE)
        meter = cel.Meter(most)
        try:
            return rule.run(self._values, meter)
        finally:
            self._purse.left -= most - max(meter.left, 0)
            self._purse.is_short |= meter.left < 0

    def _variable(self, name: str) -> Any:
        return self.value(self._variables[name])

    def message(self, one: Judged) -> str:
        if one.message_rule is not None:
            try:
                said = self.value(one.message_rule)
            except cel.EvaluationError:
                said = ""
            if isinstance(said, str) and said.strip() and "\n" not in said:
                return said
        return one.validation.message or f"failed expression: {one.validation.expression.strip()}"


def problems(spec: PolicySpec) -> list[FieldError]:
    """What is wrong with the expressions of a policy, and with the names that some of them have."""
    found = [*_misnamed(spec)]
    for path, text in _expressions(spec):
        try:
            rule = cel.compile_rule(text, _DECLARED)
        except cel.CompileError as error:
            found.append(wrong.invalid(path, text, error.message))
            continue
        wanted = "string" if path_ends(path, ("messageExpression", "valueExpression")) else "bool"
        is_variable = str(path).startswith("spec.variables")
        if not is_variable and str(rule.type) not in (wanted, "dyn"):
            found.append(wrong.invalid(path, text, f"must evaluate to {wanted}"))
    return found


def _misnamed(spec: PolicySpec) -> Iterator[FieldError]:
    conditions = _SPEC / "matchConditions"
    if len(spec.match_conditions) > MATCH_CONDITIONS_MAX:
        yield wrong.too_many(conditions, len(spec.match_conditions), MATCH_CONDITIONS_MAX)
    for path, listed in ((conditions, spec.match_conditions), (_SPEC / "variables", spec.variables)):
        seen: set[str] = set()
        for at, one in enumerate(listed):
            if not one.name:
                yield wrong.required(path[at] / "name")
            elif one.name in seen:
                yield wrong.duplicate(path[at] / "name", one.name)
            seen.add(one.name)


def path_ends(path: Path, names: tuple[str, ...]) -> bool:
    return str(path).endswith(names)


def _expressions(spec: PolicySpec) -> Iterator[tuple[Path, str]]:
    for at, named in enumerate(spec.match_conditions):
        yield (_SPEC / "matchConditions")[at] / "expression", named.expression
    for at, named in enumerate(spec.variables):
        yield (_SPEC / "variables")[at] / "expression", named.expression
    for at, one in enumerate(spec.validations):
        yield (_SPEC / "validations")[at] / "expression", one.expression
        if one.message_expression:
            yield (_SPEC / "validations")[at] / "messageExpression", one.message_expression
    for at, note in enumerate(spec.audit_annotations):
        yield (_SPEC / "auditAnnotations")[at] / "valueExpression", note.value_expression
