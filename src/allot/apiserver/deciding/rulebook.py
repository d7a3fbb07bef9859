"""The rules that a custom resource definition writes into its schema (`x-kubernetes-validations`).

`read` makes a book of a schema, and says what is wrong with its rules: those that cannot be read, or may cost
too much, are refused when the definition is written. `judge` holds an object against the book. What a rule
costs is counted: one that is too dear ends the judging, and the object is refused.

What counts as unchanged
    A rule that looks at `oldSelf` is asked when there is an old value at its place: properties by name,
    entries of maps by key, elements of lists by their map keys. A rule that does not is not asked about a
    value that is just as it was: what was stored once can be stored again.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from allot import cel
from allot.api import FieldError, Path, schema
from allot.api import field as wrong

RULES: Final = "x-kubernetes-validations"
COST_OF_ONE_MAX: Final = 10_000_000
COST_OF_ALL_MAX: Final = 100_000_000
"""Of a definition: the most that its rules may cost an object, as estimated."""
BUDGET: Final = 10_000_000
BUDGET_OF_ONE: Final = 1_000_000
"""Of an object: what its rules may really cost."""
ERRORS_MAX: Final = 64

_REASONS: Final[dict[str, Callable[[Path, Any, str], FieldError]]] = {
    "": wrong.invalid,
    "FieldValueInvalid": wrong.invalid,
    "FieldValueForbidden": lambda path, value, text: wrong.forbidden(path, text),
    "FieldValueRequired": lambda path, value, text: wrong.required(path, text),
    "FieldValueDuplicate": lambda path, value, text: FieldError(wrong.Wrong.DUPLICATE, path, text, value),
}

_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and"
    " strings are declared)"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule, read."""

    rule: cel.Rule
    text: str
    message: str
    message_rule: cel.Rule | None
    reason: str
    field_path: str
    wants_old: bool
    old_is_optional: bool

    def applies(self, has_old: bool, unchanged: bool) -> bool:
        if self.wants_old:
            return has_old or self.old_is_optional
        return not unchanged


@dataclass(slots=True)
class Page:
    """The rules of one place of a schema, and of the places below it."""

    shape: schema.Schema
    entries: list[Entry] = field(default_factory=list)
    below: dict[str, "Page"] = field(default_factory=dict)  # of an object
    element: "Page | None" = None  # of a list or map
    cost: int = 0  # of the whole book, on its first page: the most that an object can cost, as estimated

    @property
    def is_empty(self) -> bool:
        return not (self.entries or self.below or self.element)


@dataclass(slots=True)
class _Reading:
    complaints: list[FieldError]
    cost: int = 0

    def count(self, what: str, rule: cel.Rule, times: int, path: Path) -> None:
        """Add what an expression may cost an object in which its place occurs so often."""
        cost = min(rule.cost * times, 2**63)
        self.cost = min(self.cost + cost, 2**63)
        if cost > COST_OF_ONE_MAX:
            factor = _factor(cost, COST_OF_ONE_MAX)
            why = f"estimated {what} cost exceeds budget by factor of {factor} {_ADVICE}"
            self.complaints.append(wrong.forbidden(path, why))


def has_rules(openapi: Any) -> bool:
    if isinstance(openapi, Mapping):
        return RULES in openapi or any(map(has_rules, openapi.values()))
    return isinstance(openapi, list) and any(map(has_rules, openapi))


def read(shape: schema.Schema, path: Path) -> tuple[Page, list[FieldError]]:
    """The book of a schema, and what is wrong with its rules."""
    reading = _Reading([])
    page = _page(shape, path, reading, times=1, is_correlated=True, root=True)
    if reading.cost > COST_OF_ALL_MAX:
        text = (
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget"
            f" by factor of {_factor(reading.cost, COST_OF_ALL_MAX)} {_ADVICE}"
        )
        reading.complaints.append(wrong.forbidden(path, text))
    page.cost = reading.cost
    return page, reading.complaints


def _page(
    shape: schema.Schema,
    path: Path,
    reading: _Reading,
    *,
    times: int,
    is_correlated: bool,
    root: bool = False,
) -> Page:
    """`times`: how often this place can occur in an object."""
    page = Page(shape)
    rules = shape.validation.get(RULES) or ()
    for at, said in enumerate(rules if isinstance(rules, list) else ()):
        entry = _entry(said, shape, (path / RULES)[at], reading, times, is_correlated)
        if entry is not None:
            page.entries.append(entry)
    if shape.type is schema.Type.OBJECT:
        for name, member in shape.fields.items():
            if name == "metadata" and (root or shape.embedded):
                continue
            inner = _page(
                member, (path / "properties")[name], reading, times=times, is_correlated=is_correlated
            )
            if not inner.is_empty:
                page.below[name] = inner
    elif shape.element is not None:
        most = cel.most_of(shape)
        keyed = shape.type is schema.Type.MAP or shape.list_type == schema.BY_KEY
        step = "additionalProperties" if shape.type is schema.Type.MAP else "items"
        inner = _page(
            shape.element,
            path / step,
            reading,
            times=times * max(1, most or 1),
            is_correlated=is_correlated and keyed,
        )
        if not inner.is_empty:
            page.element = inner
    return page


def _entry(
    said: Mapping[str, Any],
    shape: schema.Schema,
    path: Path,
    reading: _Reading,
    times: int,
    is_correlated: bool,
) -> Entry | None:
    text = str(said.get("rule") or "").strip()
    if not text:
        reading.complaints.append(wrong.required(path / "rule", "rule is not specified"))
        return None
    optional = bool(said.get("optionalOldSelf"))
    declared = _declared(shape, optional)
    try:
        rule = cel.compile_rule(text, declared)
    except cel.CompileError as error:
        reading.complaints.append(wrong.invalid(path / "rule", text, error.message))
        return None
    if str(rule.type) not in ("bool", "dyn"):
        reading.complaints.append(wrong.invalid(path / "rule", text, "must evaluate to a bool"))
        return None
    wants_old = rule.uses("oldSelf")
    if wants_old and not is_correlated:
        why = "oldSelf cannot be used on the uncorrelatable portion of the schema"
        reading.complaints.append(wrong.invalid(path / "rule", text, why))
        return None
    reading.count("rule", rule, times, path / "rule")
    message_rule = _message_rule(said, declared, path, reading)
    if message_rule is not None:
        reading.count("messageExpression", message_rule, times, path / "messageExpression")
    reason = str(said.get("reason") or "")
    if reason not in _REASONS:
        reading.complaints.append(wrong.unsupported(path / "reason", reason, sorted(_REASONS)[1:]))
        reason = ""
    message = str(said.get("message") or "").strip()
    return Entry(
        rule,
        text,
        message,
        message_rule,
        reason,
        str(said.get("fieldPath") or ""),
        wants_old,
        optional,
    )


def _message_rule(
    said: Mapping[str, Any], declared: cel.Declared, path: Path, reading: _Reading
) -> cel.Rule | None:
    text = str(said.get("messageExpression") or "").strip()
    if not text:
        return None
    try:
        rule = cel.compile_rule(text, declared)
    except cel.CompileError as error:
        reading.complaints.append(wrong.invalid(path / "messageExpression", text, error.message))
        return None
    if str(rule.type) not in ("string", "dyn"):
        complaint = wrong.invalid(path / "messageExpression", text, "must evaluate to a string")
        reading.complaints.append(complaint)
        return None
    return rule


def _declared(shape: schema.Schema, old_is_optional: bool) -> cel.Declared:
    type_, fields = cel.declare(shape)
    old = cel.optional_of(type_) if old_is_optional else type_
    return cel.Declared(
        {"self": type_, "oldSelf": old},
        fields,
        lambda path: cel.size_of(shape, path[1:]) if path[:1] in (("self",), ("oldSelf",)) else None,
    )


def _factor(cost: int, most: int) -> str:
    factor = cost / most
    return "more than 100x" if factor > 100 else f"{factor:.1f}x"


# -- judging ----------------------------------------------------------------------------------------

_ABSENT: Final = object()


_NO_MORE: Final = "no further validation rules will be run"


class _TooDear(Exception):
    """The rules of an object cost more than those of any object may. What was found says so."""


class _Judging:
    def __init__(self) -> None:
        self._left = BUDGET
        self.found: list[FieldError] = []

    def visit(self, page: Page, value: Any, old: Any, path: Path, root: bool = False) -> None:
        if value is None or len(self.found) >= ERRORS_MAX:
            return
        unchanged = old is not _ABSENT and old == value
        if page.entries:
            self._ask(page, value, old, path, unchanged, root)
        for inner, member, before, where in _members(page, value, old, path):
            self.visit(inner, member, before, where)

    def _ask(self, page: Page, value: Any, old: Any, path: Path, unchanged: bool, root: bool) -> None:
        asked = [one for one in page.entries if one.applies(old is not _ABSENT, unchanged)]
        if not asked:
            return
        try:
            scope = {
                "self": cel.value_of(value, page.shape, root),
                "oldSelf": None if old is _ABSENT else cel.value_of(old, page.shape, root),
            }
        except cel.EvaluationError as error:
            self.found.append(wrong.invalid(path, page.shape.type.value, str(error)))
            return
        for entry in asked:
            mine = scope
            if entry.old_is_optional:
                mine = {**scope, "oldSelf": cel.optional(scope["oldSelf"], old is not _ABSENT)}
            problem = self._problem(entry, mine, page, path)
            if problem is not None:
                self.found.append(problem)

    def _problem(self, entry: Entry, scope: Mapping[str, Any], page: Page, path: Path) -> FieldError | None:
        shown = page.shape.type.value
        try:
            holds = self._run(entry.rule, scope)
        except cel.CostExceeded:
            text = f"{_NO_MORE} due to call cost exceeds limit for rule: {entry.message or entry.text}"
            if self._is_spent:
                text = f"validation failed due to running out of cost budget, {_NO_MORE}"
            self.found.append(wrong.invalid(path, shown, text))
            raise _TooDear from None
        except cel.EvaluationError as error:
            return wrong.invalid(path, shown, f"{error} evaluating rule: {entry.message or entry.text}")
        if holds is True:
            return None
        try:
            message = self._message(entry, scope)
        except cel.CostExceeded:
            text = f"messageExpression evaluation failed due to running out of cost budget, {_NO_MORE}"
            self.found.append(wrong.invalid(path, shown, text))
            raise _TooDear from None
        return _REASONS[entry.reason](_at(path, entry.field_path), shown, message)

    def _message(self, entry: Entry, scope: Mapping[str, Any]) -> str:
        if entry.message_rule is not None:
            try:
                said = self._run(entry.message_rule, scope)
            except cel.CostExceeded:
                raise
            except cel.EvaluationError:
                said = ""
            if isinstance(said, str) and said.strip() and "\n" not in said:
                return said
        return entry.message or f"failed rule: {entry.text}"

    @property
    def _is_spent(self) -> bool:
        """Whether all rules together, and not one of them, cost too much."""
        return self._left <= 0

    def _run(self, rule: cel.Rule, scope: Mapping[str, Any]) -> Any:
        most = min(self._left, BUDGET_OF_ONE)
        meter = cel.Meter(most)
        try:
            return rule.run(scope, meter)
        finally:
            self._left -= most - max(meter.left, 0)


def judge(page: Page, new: Any, old: Any = None) -> list[FieldError]:
    """What is wrong with an object, which replaces another one or (None) is new."""
    if page.is_empty:
        return []
    judging = _Judging()
    with suppress(_TooDear):
        judging.visit(page, new, _ABSENT if old is None else old, Path(), root=True)
    return judging.found


def _members(page: Page, value: Any, old: Any, path: Path) -> Iterator[tuple[Page, Any, Any, Path]]:
    """What lies below a value, with the page of its rules and what was at its place before."""
    if page.below and isinstance(value, dict):
        for name, inner in page.below.items():
            if name in value:
                yield inner, value[name], _member(old, name), path / name
    elif page.element is not None and isinstance(value, dict):
        for name, member in value.items():
            yield page.element, member, _member(old, name), path[name]
    elif page.element is not None and isinstance(value, list):
        known = _by_keys(page.shape, old)
        for at, member in enumerate(value):
            before = known.get(_identity(page.shape, member), _ABSENT)
            yield page.element, member, before, path[at]


def _member(old: Any, name: str) -> Any:
    return old.get(name, _ABSENT) if isinstance(old, dict) else _ABSENT


def _by_keys(shape: schema.Schema, old: Any) -> dict[Any, Any]:
    if shape.list_type != schema.BY_KEY or not isinstance(old, list):
        return {}
    return {_identity(shape, member): member for member in old}


def _identity(shape: schema.Schema, member: Any) -> Any:
    if shape.list_type != schema.BY_KEY or not isinstance(member, dict):
        return None
    return repr([member.get(key) for key in shape.keys])


def _at(path: Path, below: str) -> Path:
    """`below` is a path such as `.spec.replicas`."""
    for name in below.strip(".").split("."):
        if name:
            path = path / name
    return path
