"""What a template is made of once its placeholders are taken out: a tree of mappings, lists, texts and holes.

An alias stands for the very member that it names, so the tree is small whatever it unfolds to; filling it
counts every value that it makes and stops in time.
"""

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import yaml

from allot.api import errors as api_errors
from allot.api import schema

from .errors import CompileError, EvaluationError
from .holes import Cut, Hole
from .library import times
from .library.standard import double_to_string
from .values import INT_MIN, UINT_MAX, BoolKey, Duration, Timestamp, UInt, type_name

_DEPTH_MAX: Final = 100


class TooLarge(Exception):
    """There is more than may be made."""


@dataclass(slots=True)
class Filling:
    """The values of one expansion, and how much may still be made."""

    values: Sequence[Any]
    holes: Sequence[Hole]
    left: int

    def count(self, characters: int = 0) -> None:
        self.left -= 1 + characters
        if self.left < 0:
            raise TooLarge

    def at(self, hole: int) -> Any:
        """The value as JSON has it."""
        try:
            return _plain(self.values[hole], self, 0)
        except EvaluationError as wrong:
            raise EvaluationError(f"{self.holes[hole]}: {wrong}") from None


@dataclass(frozen=True, slots=True)
class Known:
    value: Any

    def filled(self, filling: Filling) -> Any:
        filling.count(len(self.value) if isinstance(self.value, str) else 0)
        return self.value


@dataclass(frozen=True, slots=True)
class Whole:
    """A hole that is all of a value."""

    hole: int

    def filled(self, filling: Filling) -> Any:
        return filling.at(self.hole)


@dataclass(frozen=True, slots=True)
class Text:
    parts: tuple[str | int, ...]  # texts, and holes by number

    def filled(self, filling: Filling) -> str:
        made = [part if isinstance(part, str) else _text(filling.at(part)) for part in self.parts]
        filling.count(sum(map(len, made)))
        return "".join(made)


@dataclass(frozen=True, slots=True)
class Elements:
    members: list["Member"] = field(default_factory=list)

    def filled(self, filling: Filling) -> list[Any]:
        filling.count()
        return [one.filled(filling) for one in self.members]


@dataclass(frozen=True, slots=True)
class Named:
    members: dict[str, "Member"] = field(default_factory=dict)

    def filled(self, filling: Filling) -> dict[str, Any]:
        filling.count(sum(map(len, self.members)))
        return {name: one.filled(filling) for name, one in self.members.items()}


Member = Known | Whole | Text | Elements | Named


# -- reading ----------------------------------------------------------------------------------------


def read(pieces: Cut) -> Member:
    """The tree of a text with marks. Raises CompileError."""
    try:
        return _Reader(pieces).document()
    except (yaml.YAMLError, UnicodeError) as error:
        said = " ".join(str(error).split())[:300]
        raise CompileError(f"is not valid YAML: {pieces.mark.sub('{{...}}', said)}") from None


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Reader:
    def __init__(self, pieces: Cut) -> None:
        self._events: Iterator[Any] = iter(list(yaml.parse(pieces.text, Loader=_LOADER)))
        self._pieces = pieces
        self._anchors: dict[str, Member] = {}

    def document(self) -> Member:
        found: list[Member] = []
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                found.append(self._member(next(self._events), 0))
        if len(found) != 1:
            raise CompileError("must be one YAML document" if found else "must be a YAML mapping")
        return found[0]

    def _member(self, event: Any, depth: int) -> Member:
        if depth > _DEPTH_MAX:
            raise CompileError(f"is nested deeper than {_DEPTH_MAX} levels")
        if isinstance(event, yaml.AliasEvent):
            return self._named(str(event.anchor))
        self._refuse_in(event.anchor, event.tag)
        made: Member
        if isinstance(event, yaml.ScalarEvent):
            made = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            made = self._list(depth)
        else:
            made = self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = made
        return made

    def _named(self, anchor: str) -> Member:
        if anchor not in self._anchors:
            raise CompileError(f"uses the YAML alias {anchor[:40]!r} before it is complete")
        return self._anchors[anchor]

    def _scalar(self, event: Any) -> Member:
        parts = self._parts(event.value)
        self._demand_unescaped(event)
        if len(parts) == 1 and isinstance(parts[0], int) and not event.style and event.implicit[0]:
            return Whole(parts[0])
        if any(isinstance(part, int) for part in parts):
            return Text(parts)
        try:
            return Known(schema.yaml_scalar(event))
        except api_errors.BadRequest:
            raise CompileError(f"has a number that JSON cannot express: {event.value[:40]}") from None

    def _parts(self, text: str) -> tuple[str | int, ...]:
        """Texts and holes of a scalar, in order."""
        pieces = self._pieces.mark.split(text)
        both = (int(piece) if at % 2 else piece for at, piece in enumerate(pieces))
        return tuple(part for part in both if part != "")

    def _demand_unescaped(self, event: Any) -> None:
        """Escapes in quotes can spell anything, a mark too; such a text has nothing to do here."""
        written = self._pieces.text[event.start_mark.index : event.end_mark.index]
        if self._pieces.mark.findall(written) != self._pieces.mark.findall(event.value):
            raise CompileError(f"has a text that cannot be told from a placeholder: {event.value[:40]!r}")

    def _list(self, depth: int) -> Elements:
        made = Elements()
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            made.members.append(self._member(event, depth + 1))
        return made

    def _mapping(self, depth: int) -> Named:
        made = Named()
        merged: list[Member] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event)
            value = self._member(next(self._events), depth + 1)
            if key == "<<" and event.implicit[0]:
                merged += value.members if isinstance(value, Elements) else [value]
            elif key in made.members:
                raise CompileError(f"says {key[:80]!r} twice in one mapping")
            else:
                made.members[key] = value
        for source in merged:
            if not isinstance(source, Named):
                raise CompileError("merges (<<) something that is not written as a mapping")
            for key, value in source.members.items():
                made.members.setdefault(key, value)
        return made

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise CompileError("has a mapping whose key is not a scalar")
        self._refuse_in(event.value, event.anchor, event.tag)
        return str(event.value)

    def _refuse_in(self, *places: str | None) -> None:
        """A hole is a value, or in one. It names nothing."""
        for text in places:
            for part in self._parts(text) if text else ():
                if isinstance(part, int):
                    raise CompileError(
                        f"{self._pieces.holes[part]}: may be a value only, not a key, anchor or tag"
                    )


# -- values -----------------------------------------------------------------------------------------


def _plain(value: Any, filling: Filling, depth: int) -> Any:
    """A value of the language as JSON has it."""
    if depth > _DEPTH_MAX:
        raise EvaluationError(f"the value is nested deeper than {_DEPTH_MAX} levels")
    match value:
        case None | bool():
            filling.count()
            return value
        case str():
            filling.count(len(value))
            return value
        case int():
            if not INT_MIN <= value <= UINT_MAX:
                raise EvaluationError("the number has more than 64 bits")
            filling.count()
            return int(value) if isinstance(value, UInt) else value
        case float():
            if not math.isfinite(value):
                raise EvaluationError("the number cannot be expressed in JSON")
            filling.count()
            return value
        case list() | tuple():
            filling.count()
            return [_plain(one, filling, depth + 1) for one in value]
        case dict():
            filling.count()
            return {_name(key, filling): _plain(one, filling, depth + 1) for key, one in value.items()}
        case bytes():
            filling.count(len(value))
            return base64.b64encode(value).decode()
        case Timestamp():
            filling.count()
            return times.print_time(value)
        case Duration():
            filling.count()
            return times.print_duration(value)
    raise EvaluationError(f"a value of type {type_name(value)} is none of JSON's")


def _name(key: Any, filling: Filling) -> str:
    if not isinstance(key, str):
        shown = type_name(key.value if isinstance(key, BoolKey) else key)
        raise EvaluationError(f"a map with keys of type {shown} is none of JSON's")
    filling.count(len(key))
    return key


def _text(value: Any) -> str:
    """How a value stands in a longer text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return double_to_string(value)
    return msgspec.json.encode(value).decode()
