"""Label and field selectors: parsed once, asked many times.

Grammar of label selectors, comma separated, all must hold:
    key   !key   key=v   key==v   key!=v   key in (a,b)   key notin (a,b)   key>1   key<1
Field selectors know only `=`, `==` and `!=`; a backslash escapes a comma, an
equals sign or a backslash in a value.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from allot.api import errors

_NAME = re.compile(
    r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]{0,251}[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SELECTOR_LENGTH_MAX = 64 * 1024


class Requirement(NamedTuple):
    key: str
    operator: str  # in, notin, exists, absent, gt, lt
    values: frozenset[str] = frozenset()

    def accepts(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        try:
            left, right = int(value), int(next(iter(self.values)))
        except ValueError:
            return False
        return left > right if self.operator == "gt" else left < right


class LabelSelector(NamedTuple):
    requirements: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def accepts(self, labels: Mapping[str, str] | None) -> bool:
        return all(requirement.accepts(labels or {}) for requirement in self.requirements)


def parse_labels(text: str) -> LabelSelector:
    if not text.strip():
        return LabelSelector()
    if len(text) > _SELECTOR_LENGTH_MAX:
        raise errors.BadRequest("unable to parse requirement: the label selector is too long")
    return LabelSelector(tuple(_requirement(part.strip(), text) for part in _split_outside_parentheses(text)))


def _split_outside_parentheses(text: str) -> list[str]:
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


class FieldSelector(NamedTuple):
    requirements: tuple[FieldRequirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def accepts(self, read: Callable[[str], str]) -> bool:
        """`read` gives the object's value of a field."""
        return all((read(need.field) == need.value) == need.equal for need in self.requirements)

    def wanted(self, field: str) -> str | None:
        """The one value that `field` must have, if the selector says so."""
        for need in self.requirements:
            if need.field == field and need.equal:
                return need.value
        return None


def parse_fields(text: str) -> FieldSelector:
    if len(text) > _SELECTOR_LENGTH_MAX:
        raise errors.BadRequest("the field selector is too long")
    return FieldSelector(tuple(_field_requirement(term) for term in _terms(text) if term))


def _terms(text: str) -> list[str]:
    terms, current, escaped = [], "", False
    for letter in text:
        if letter == "," and not escaped:
            terms.append(current)
            current = ""
        else:
            current += letter
        escaped = letter == "\\" and not escaped
    return [*terms, current]


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
