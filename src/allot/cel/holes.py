"""Placeholders in a text: where each begins and ends, and the text with a mark in place of each.

A placeholder ends where the language says so: not at a `}}` inside a string, a comment or a nested map.
The mark is a word that does not occur in the text, so that whatever is found again was put there.
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from .errors import CompileError, SyntaxProblem
from .lexer import Token, next_lexeme

_SHOWN_MAX: Final = 80


@dataclass(frozen=True, slots=True)
class Hole:
    expression: str
    line: int

    def __str__(self) -> str:
        shown = " ".join(self.expression.split())
        if len(shown) > _SHOWN_MAX:
            shown = f"{shown[: _SHOWN_MAX - 3]}..."
        return f"placeholder {{{{{shown}}}}} in line {self.line}"


class Cut(NamedTuple):
    text: str  # with marks
    holes: tuple[Hole, ...]
    mark: re.Pattern[str]  # finds marks; its group is the number of the hole


def cut(text: str) -> Cut:
    """Raises CompileError."""
    word = _word_not_in(text)
    holes: list[Hole] = []
    parts: list[str] = []
    at = 0
    while (start := text.find("{{", at)) >= 0:
        end = _end(text, start + 2)
        parts += (text[at:start], f"{word}{len(holes)}z")
        holes.append(Hole(text[start + 2 : end], text.count("\n", 0, start) + 1))
        at = end + 2
    return Cut("".join([*parts, text[at:]]), tuple(holes), re.compile(rf"{word}([0-9]+)z"))


def _word_not_in(text: str) -> str:
    word = "hole"
    while word in text:
        word += "e"
    return word


def _end(text: str, start: int) -> int:
    """Where the `}}` is that ends the placeholder whose expression starts here."""
    open_braces = 0
    at = start
    line = text.count("\n", 0, start) + 1
    while at < len(text):
        if open_braces == 0 and text.startswith("}}", at):
            return at
        try:
            found, at = next_lexeme(text, at)
        except SyntaxProblem as problem:
            raise CompileError(f"placeholder in line {line}: {problem.issue.message}") from None
        if found is not None and found.token is Token.SIGN:
            open_braces += {"{": 1, "}": -1}.get(found.text, 0)
            if open_braces < 0:
                raise CompileError(f"placeholder in line {line}: a single '}}' where '}}}}' ends it")
    raise CompileError(f"placeholder in line {line} has no end: '}}}}' is missing")
