"""Label and field selectors: parsed once, asked many times.

Grammar of label selectors, comma separated, all must hold:
    key   !key   key=v   key==v   key!=v   key in (a,b)   key notin (a,b)   key>1   key<1
Field selectors know only `=`, `==` and `!=`; a backslash escapes a comma, an
equals sign or a backslash in a value.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from allot.api import errors

_NAME = re.compile(
    r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]{0,251}[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SELECTOR_LENGTH_MAX = 64 * 1024
TERMS_MAX = 1000
"""Of one selector. A list after `in` is one term, however long."""


class Requirement(NamedTuple):
    key: str
    operator: str  # in, notin, exists, absent, gt, lt
    values: frozenset[str] = frozenset()


class _Need:
    """All that a selector says about one key."""

    __slots__ = ("_above", "_absent", "_allowed", "_below", "_refused", "exists")

    def __init__(self) -> None:
        self._allowed: frozenset[str] | None = None  # None: any
        self._refused: set[str] = set()
        self.exists = False
        self._absent = False
        self._above: int | None = None
        self._below: int | None = None

    def add(self, need: Requirement) -> None:
        self.exists = self.exists or need.operator not in ("notin", "absent")
        match need.operator:
            case "in":
                self._allowed = need.values if self._allowed is None else self._allowed & need.values
            case "notin":
                self._refused |= need.values
            case "absent":
                self._absent = True
            case "gt":
                bound = int(next(iter(need.values)))
                self._above = bound if self._above is None else max(self._above, bound)
            case "lt":
                bound = int(next(iter(need.values)))
                self._below = bound if self._below is None else min(self._below, bound)

    def accepts(self, value: str) -> bool:
        """A value that is there."""
        if self._absent or value in self._refused:
            return False
        if self._allowed is not None and value not in self._allowed:
            return False
        return (self._above is None and self._below is None) or self._compares(value)

    def _compares(self, value: str) -> bool:
        try:
            number = int(value)
        except ValueError:
            return False
        return (self._above is None or number > self._above) and (self._below is None or number < self._below)


class LabelSelector:
    """Asking costs the keys that an object and the selector both have, however many terms there are."""

    __slots__ = ("_needs", "_wanted", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self.requirements = tuple(requirements)
        self._needs: dict[str, _Need] = {}
        for need in self.requirements:
            self._needs.setdefault(need.key, _Need()).add(need)
        self._wanted = [key for key, need in self._needs.items() if need.exists]

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelSelector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)

    def accepts(self, labels: Mapping[str, str] | None) -> bool:
        labels = labels or {}
        if len(self._wanted) > len(labels) or not all(key in labels for key in self._wanted):
            return False
        if len(labels) < len(self._needs):
            return all(need.accepts(value) for key, value in labels.items() if (need := self._needs.get(key)))
        return all(
            need.accepts(value) for key, need in self._needs.items() if (value := labels.get(key)) is not None
        )


def parse_labels(text: str) -> LabelSelector:
    if not text.strip():
        return LabelSelector()
    if len(text) > _SELECTOR_LENGTH_MAX:
        raise errors.BadRequest("unable to parse requirement: the label selector is too long")
    parts = _split_outside_parentheses(text)
    _require_few(len(parts))
    return LabelSelector([_requirement(part.strip(), text) for part in parts])


def _require_few(terms: int) -> None:
    if terms > TERMS_MAX:
        raise errors.BadRequest(f"the selector has {terms} terms; the limit is {TERMS_MAX}")


def _split_outside_parentheses(text: str) -> list[str]:
    if "(" not in text and ")" not in text:
        return text.split(",")
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


_SET = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^()]*)\)$")


def _requirement(part: str, whole: str) -> Requirement:
    if match := _SET.match(part):
        key, operator, listed = match.groups()
        values = frozenset(value.strip() for value in listed.split(","))
        return Requirement(_key(key, whole), operator, frozenset(_value(v, whole) for v in values))
    for sign, operator in (("!=", "notin"), ("==", "in"), ("=", "in"), (">", "gt"), ("<", "lt")):
        if sign in part:
            key, _, value = part.partition(sign)
            checked = _value(value.strip(), whole)
            if operator in ("gt", "lt") and not re.fullmatch(r"[-+]?\d{1,19}", checked):
                raise _unparsable(whole, f"{checked!r} is not an integer")
            return Requirement(_key(key.strip(), whole), operator, frozenset([checked]))
    if part.startswith("!"):
        return Requirement(_key(part[1:].strip(), whole), "absent")
    return Requirement(_key(part, whole), "exists")


def _key(key: str, whole: str) -> str:
    if not _NAME.fullmatch(key):
        raise _unparsable(whole, f"{key!r} is not a label key")
    return key


def _value(value: str, whole: str) -> str:
    if not _VALUE.fullmatch(value):
        raise _unparsable(whole, f"{value!r} is not a label value")
    return value


def _unparsable(selector: str, why: str) -> errors.BadRequest:
    return errors.BadRequest(f"unable to parse requirement: {why} (label selector {selector[:200]!r})")


class FieldRequirement(NamedTuple):
    field: str
    equal: bool
    value: str


class FieldSelector:
    """Asking costs the fields that it names, however often it names them."""

    __slots__ = ("_needs", "requirements")

    def __init__(self, requirements: Iterable[FieldRequirement] = ()) -> None:
        self.requirements = tuple(requirements)
        self._needs: dict[str, tuple[set[str], set[str]]] = {}  # what each is to be, and not to be
        for need in self.requirements:
            self._needs.setdefault(need.field, (set(), set()))[0 if need.equal else 1].add(need.value)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def accepts(self, read: Callable[[str], str]) -> bool:
        """`read` gives the object's value of a field."""
        return all(
            (value := read(field)) not in unwanted and (not wanted or wanted == {value})
            for field, (wanted, unwanted) in self._needs.items()
        )

    @property
    def fields(self) -> Iterable[str]:
        return self._needs

    def wanted(self, field: str) -> str | None:
        """The one value that `field` must have, if the selector says so."""
        for need in self.requirements:
            if need.field == field and need.equal:
                return need.value
        return None


def parse_fields(text: str) -> FieldSelector:
    if len(text) > _SELECTOR_LENGTH_MAX:
        raise errors.BadRequest("the field selector is too long")
    terms = _terms(text)
    _require_few(len(terms))
    return FieldSelector([_field_requirement(term) for term in terms if term])


def _terms(text: str) -> list[str]:
    terms, start, escaped = [], 0, False
    for at, letter in enumerate(text):
        if letter == "," and not escaped:
            terms.append(text[start:at])
            start = at + 1
        escaped = letter == "\\" and not escaped
    return [*terms, text[start:]]


def _field_requirement(term: str) -> FieldRequirement:
    escaped = False
    for at, letter in enumerate(term):
        if not escaped and letter in "=!":
            for sign, equal in (("!=", False), ("==", True), ("=", True)):
                if term.startswith(sign, at):
                    return FieldRequirement(term[:at].strip(), equal, _unescaped(term[at + len(sign) :]))
            break
        escaped = letter == "\\" and not escaped
    raise errors.BadRequest(f"invalid selector: {term[:200]!r}; can't understand it")


def _unescaped(value: str) -> str:
    if "\\" not in value:
        return value
    if re.search(r"(?<!\\)(?:\\\\)*\\(?![\\,=])", value):
        raise errors.BadRequest(f"invalid escape sequence in field selector value {value[:200]!r}")
    return re.sub(r"\\([\\,=])", r"\1", value)
