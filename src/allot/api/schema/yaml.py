"""YAML from a client to plain JSON values, within bounds.

Apply patches are YAML by name, and nearly always JSON in fact, which is YAML too:
bytes that begin like a JSON object take the fast way. The rest is composed from
parser events with scalars resolved as Kubernetes tools resolve them: no dates, no
base-60 numbers, `yes` and `off` are booleans, keys become strings.

The promises of `decode` hold here as well. An alias stands for a copy of what it
names, so each is counted at its full size: a body may not unfold to more than
VALUES_MAX values, nor to more than UNFOLDED_MAX characters, however short it is. A
merge costs what it adds.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from ..errors import BadRequest
from .decode import DEPTH_MAX, KEY_LENGTH_MAX, VALUES_MAX, Decoded, decode, key_too_long, too_deep
from .where import NOTED_MAX, Where, written

UNFOLDED_MAX: Final = 3 * 1024 * 1024
"""As much text as a body can have without aliases: the largest request that is read."""

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {
    spelling: word in ("true", "yes", "on")
    for word in ("true", "false", "yes", "no", "on", "off")
    for spelling in (word, word.capitalize(), word.upper())
}
_INTEGER = re.compile(r"[-+]?(?:0x[0-9a-fA-F_]{1,17}|0b[01_]{1,65}|0o?[0-7_]{1,23}|[0-9][0-9_]{0,30})\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,300}|[0-9]{1,310}(?:\.[0-9]{0,300})?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_A_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")


def decode_yaml(body: bytes, *, find_duplicates: bool = True) -> Decoded:
    """A YAML (or JSON) object, and the paths of the keys that it gives more than once."""
    if body.lstrip()[:1] == b"{":
        try:
            return decode(body, find_duplicates=find_duplicates)
        except BadRequest:
            if body.count(b"{") + body.count(b"[") > DEPTH_MAX:
                raise  # what is too deep or broken for JSON is no better as YAML
    try:
        events = yaml.parse(body.decode(), Loader=_LOADER)
        composer = _Composer(events)
        value = composer.document()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body of the request is not UTF-8: {error}") from None
    except yaml.YAMLError as error:
        raise BadRequest(f"the body of the request is not valid YAML: {_one_line(error)}") from None
    if type(value) is not dict:
        raise BadRequest("the body of the request is not an object")
    return Decoded(value, tuple(composer.duplicates) if find_duplicates else ())


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())[:300]


class _Size(NamedTuple):
    """What a value unfolds to."""

    values: int
    characters: int


class _Composer:
    """Builds one document. Everything it makes goes through `_count`, aliases included."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._values = 0
        self._characters = 0
        self._anchors: dict[str, tuple[Any, _Size]] = {}
        self.duplicates: list[str] = []

    def document(self) -> Any:
        value: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise BadRequest("the body of the request has more than one YAML document")
                value = self._value(next(self._events), None, 0)
        return value

    def _count(self, values: int, characters: int) -> None:
        self._values += values
        self._characters += characters
        if self._values > VALUES_MAX:
            raise BadRequest(f"the body of the request unfolds to more than {VALUES_MAX} YAML values")
        if self._characters > UNFOLDED_MAX:
            raise BadRequest(f"the body of the request unfolds to more than {UNFOLDED_MAX} characters")

    def _value(self, event: Any, path: Where | None, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise too_deep()
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), depth)
        before = self._values, self._characters
        if isinstance(event, yaml.ScalarEvent):
            self._count(1, len(event.value))
            value: Any = yaml_scalar(event)
        else:
            self._count(1, 0)
            is_sequence = isinstance(event, yaml.SequenceStartEvent)
            value = self._sequence(path, depth) if is_sequence else self._mapping(path, depth)
        if event.anchor is not None:
            size = _Size(self._values - before[0], self._characters - before[1])
            self._anchors[event.anchor] = (value, size)
        return value

    def _alias(self, anchor: str, depth: int) -> Any:
        if anchor not in self._anchors:
            raise BadRequest(
                f"the body of the request uses the YAML alias {anchor[:40]!r} before it is complete"
            )
        value, size = self._anchors[anchor]
        self._count(*size)
        return _copied(value, depth)

    def _sequence(self, path: Where | None, depth: int) -> list[Any]:
        members: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            members.append(self._value(event, Where(path, len(members)), depth + 1))
        return members

    def _mapping(self, path: Where | None, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        merged: list[Any] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = _key(self._value(event, path, depth + 1))
            where = Where(path, key)
            value = self._value(next(self._events), where, depth + 1)
            if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                merged.extend(value if type(value) is list else [value])
                continue
            if key in members and len(self.duplicates) < NOTED_MAX:
                self.duplicates.append(written(where))
            members[key] = value
        for source in merged:
            if type(source) is not dict:
                raise BadRequest("the body of the request merges (<<) something that is not a YAML mapping")
            for key, value in source.items():
                members.setdefault(key, value)
        return members


def _copied(value: Any, depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise too_deep()
    if type(value) is dict:
        return {key: _copied(member, depth + 1) for key, member in value.items()}
    if type(value) is list:
        return [_copied(member, depth + 1) for member in value]
    return value


def _key(value: Any) -> str:
    if type(value) is str:
        if len(value) > KEY_LENGTH_MAX:
            raise key_too_long(len(value))
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int or type(value) is float:
        return str(value)
    raise BadRequest("the body of the request has a YAML mapping whose key is not a scalar")


def yaml_scalar(event: Any) -> Any:
    """The value of a scalar event, as Kubernetes' tools read it. Raises BadRequest."""
    text: str = event.value
    if event.tag == "tag:yaml.org,2002:str" or not event.implicit[0]:
        return text
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] in "+-.0123456789":
        return _number(text)
    return text


def _number(text: str) -> Any:
    if _INTEGER.match(text):
        return _integer(text.replace("_", ""))
    if _FLOAT.match(text):
        value = float(text)
        if math.isinf(value):
            raise BadRequest("the body of the request has a number that is out of range")
        return value
    if _NOT_A_NUMBER.match(text):
        raise BadRequest("the body of the request has a number that JSON cannot express")
    return text


def _integer(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    if digits[:2] in ("0x", "0b", "0o"):
        value = int(digits, 0)
    elif digits.startswith("0") and digits.strip("01234567") == "":
        value = int(digits, 8)
    else:
        value = int(digits)
    return sign * value
