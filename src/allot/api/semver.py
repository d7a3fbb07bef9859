"""Semantic versions, 2.0.0, read strictly.

A version is its precedence and its text. Precedence ignores build metadata, so
`1.0.0+a == 1.0.0+b`; the text keeps it. Nothing is forgiven while reading (no
leading `v`, no missing parts, no leading zeros): `normalized` is for callers
who want to be kind first. Numbers are bounded to 64 bits before they are read.
"""

from dataclasses import dataclass
from functools import total_ordering
from re import ASCII, compile
from typing import Final

LENGTH_MAX: Final = 10_240
NUMBER_MAX: Final = 2**64 - 1

_NUMBER = r"(0|[1-9][0-9]{0,19})"
_PART = r"(?:0|[1-9][0-9]{0,19}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_TEXT = compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-({_PART}(?:\.{_PART})*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    ASCII,
)

# A numeric part sorts before every word, and a shorter list before its extension.
Part = tuple[int, int, str]
Precedence = tuple[int, int, int, bool, tuple[Part, ...]]


@total_ordering
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Semver:
    precedence: Precedence
    text: str

    @classmethod
    def parse(cls, text: str) -> "Semver":
        """Read a strict version. Raises ValueError."""
        match = _TEXT.fullmatch(text) if len(text) <= LENGTH_MAX else None
        if match is None:
            shown = repr(text) if len(text) <= 64 else f"{text[:61]!r}... ({len(text)} characters)"
            raise ValueError(f"not a semantic version: {shown}")
        major, minor, patch = (_bounded(match[i]) for i in (1, 2, 3))
        parts = tuple(_part(part) for part in match[4].split(".")) if match[4] else ()
        return cls((major, minor, patch, not parts, parts), text)

    @property
    def major(self) -> int:
        return self.precedence[0]

    @property
    def minor(self) -> int:
        return self.precedence[1]

    @property
    def patch(self) -> int:
        return self.precedence[2]

    def compare(self, other: "Semver") -> int:
        """-1, 0 or 1."""
        return (self.precedence > other.precedence) - (self.precedence < other.precedence)

    def __eq__(self, other: object) -> bool:
        return self.precedence == other.precedence if isinstance(other, Semver) else NotImplemented

    def __lt__(self, other: "Semver") -> bool:
        return self.precedence < other.precedence

    def __hash__(self) -> int:
        return hash(self.precedence)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Semver({self.text!r})"


def normalized(text: str) -> str:
    """What people write, made strict: no leading `v`, all three numbers, no leading zeros."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            shorter = part.lstrip("0")
            parts[index] = shorter if shorter[:1].isdigit() else "0" + shorter
    if len(parts) < 3:
        if any(sign in parts[-1] for sign in "+-"):
            raise ValueError("a short version cannot have a prerelease or build metadata")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _bounded(digits: str) -> int:
    number = int(digits)
    if number > NUMBER_MAX:
        raise ValueError(f"not a semantic version: {digits} needs more than 64 bits")
    return number


def _part(text: str) -> Part:
    return (0, _bounded(text), "") if text.isdigit() else (1, 0, text)
