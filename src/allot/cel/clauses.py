"""A selector taken apart at its top-level `&&`, so that a failure can be named.

Each clause is compiled on its own from its own text, which makes it a selector
like any other: the explanation asks which clause a device fails and shows what
the device had instead. Computed only for explanations, never on the way to a
successful match.
"""

from dataclasses import dataclass
from typing import Any, Literal

from .device import CelDevice
from .lexer import Lexeme, Token, tokenize
from .lookups import Lookup, lookups, value_at
from .selector import Selector, compile_program
from .tree import Call, Node
from .tree import Literal as Constant

Wanted = Literal["more", "less", "equal"]

_WANTS: dict[str, Wanted] = {
    "_>_": "more",
    "_>=_": "more",
    "isGreaterThan": "more",
    "_<_": "less",
    "_<=_": "less",
    "isLessThan": "less",
    "_==_": "equal",
}
_TURNED: dict[Wanted, Wanted] = {"more": "less", "less": "more", "equal": "equal"}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a device had where a clause looked; `value` is None when it had nothing."""

    lookup: Lookup
    value: Any
    present: bool


@dataclass(frozen=True, slots=True, eq=False)
class Clause(Selector):
    """One conjunct, with its source text as `expression`."""

    def seen(self, device: CelDevice) -> tuple[Seen, ...]:
        distinct = dict.fromkeys(found.lookup for found in lookups(self.program.checked.root))
        return tuple(
            Seen(lookup, found.value, found.present)
            for lookup in distinct
            for found in (value_at(lookup, device),)
        )

    @property
    def wants(self) -> Wanted | None:
        """Whether a larger or smaller value would please this clause, if that is all it asks."""
        return _wants(self.program.checked.root)


def clauses(selector: Selector) -> tuple[Clause, ...]:
    program = selector.program
    texts = _conjuncts(program.expression)
    if len(texts) == 1:
        return (Clause(program),)
    return tuple(Clause(compile_program(text, program.features, stored=True)) for text in texts)


def _wants(node: Node) -> Wanted | None:
    if not isinstance(node, Call):
        return None
    if node.function in _WANTS:
        left, right = node.args if node.target is None else (node.target, node.args[0])
        wanted = _WANTS[node.function]
        if isinstance(left, Call) and left.function == "compareTo" and isinstance(right, Constant):
            return wanted if right.value == 0 else None
        sides = [any(lookups(side)) for side in (left, right)]
        if sides == [True, False]:
            return wanted
        if sides == [False, True]:
            return _TURNED[wanted]
    return None


def _conjuncts(source: str) -> list[str]:
    """The texts between the `&&` that bind the whole; brackets around the whole do not count."""
    lexemes = [lexeme for lexeme in tokenize(source) if lexeme.token is not Token.END]
    while _is_bracketed(lexemes):
        lexemes = lexemes[1:-1]
    cuts = _top_level_cuts(lexemes)
    if not cuts:
        return [_text(source, lexemes)]
    pieces: list[str] = []
    for start, end in zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(lexemes)], strict=True):
        pieces += _conjuncts(_text(source, lexemes[start:end]))
    return pieces


def _text(source: str, lexemes: list[Lexeme]) -> str:
    last = lexemes[-1]
    return source[lexemes[0].at : last.at + len(last.text)]


def _depths(lexemes: list[Lexeme]) -> list[int]:
    """How many brackets are open after each token."""
    depth, found = 0, []
    for lexeme in lexemes:
        if lexeme.token is Token.SIGN:
            depth += (lexeme.text in "([{") - (lexeme.text in ")]}")
        found.append(depth)
    return found


def _is_bracketed(lexemes: list[Lexeme]) -> bool:
    return len(lexemes) > 2 and lexemes[0].text == "(" and _depths(lexemes).index(0) == len(lexemes) - 1


def _top_level_cuts(lexemes: list[Lexeme]) -> list[int]:
    top = [
        (index, lexeme.text)
        for index, (lexeme, depth) in enumerate(zip(lexemes, _depths(lexemes), strict=True))
        if depth == 0 and lexeme.token is Token.SIGN
    ]
    if any(text in ("||", "?") and not _is_optional_sign(lexemes, index) for index, text in top):
        return []  # these bind less tightly, so no `&&` binds the whole
    return [index for index, text in top if text == "&&"]


def _is_optional_sign(lexemes: list[Lexeme], index: int) -> bool:
    """`a.?b` is no conditional."""
    return lexemes[index].text == "?" and index > 0 and lexemes[index - 1].text == "."
