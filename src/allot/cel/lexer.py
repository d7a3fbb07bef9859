"""Text to tokens.

One regular expression finds the next token; strings and numbers are read by
`literals` afterwards. The expression is linear in the text: no alternative can
be entered twice at one place.
"""

from dataclasses import dataclass
from enum import Enum, auto
from re import compile
from typing import Final

from .errors import SyntaxProblem

RESERVED: Final = frozenset(
    ["as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
     "namespace", "return", "var", "void", "while"]
)  # fmt: skip
KEYWORDS: Final = frozenset({"in", "true", "false", "null"})


class Token(Enum):
    INT = auto()
    UINT = auto()
    FLOAT = auto()
    STRING = auto()
    BYTES = auto()
    IDENT = auto()
    KEYWORD = auto()
    SIGN = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Lexeme:
    token: Token
    text: str
    at: int

    def shown(self) -> str:
        return "<EOF>" if self.token is Token.END else f"'{self.text[:40]}'"


_QUOTED = (
    r'"""(?:[^\\"]|\\.|"(?!""))*"""'
    r"|'''(?:[^\\']|\\.|'(?!''))*'''"
    r'|"(?:[^\\"\n\r]|\\.)*"'
    r"|'(?:[^\\'\n\r]|\\.)*'"
)
_RAW = (
    r'"""(?:[^"]|"(?!""))*"""'
    r"|'''(?:[^']|'(?!''))*'''"
    r'|"[^"\n\r]*"'
    r"|'[^'\n\r]*'"
)
_NEXT = compile(
    rf"""(?sx)
      (?P<SPACE>  [\ \t\n\f\r]+ | //[^\n]* )
    | (?P<BYTES>  [bB](?: [rR](?:{_RAW}) | (?:{_QUOTED}) ) )
    | (?P<STRING> [rR](?:{_RAW}) | (?:{_QUOTED}) )
    | (?P<FLOAT>  [0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | \.[0-9]+(?:[eE][+-]?[0-9]+)? )
    | (?P<UINT>   (?:0x[0-9a-fA-F]+|[0-9]+)[uU] )
    | (?P<INT>    0x[0-9a-fA-F]+|[0-9]+ )
    | (?P<IDENT>  [_a-zA-Z][_a-zA-Z0-9]* )
    | (?P<SIGN>   ==|!=|<=|>=|&&|\|\||[-<>\[\]{{}}().,!?:+*/%] )
    """
)


def tokenize(source: str) -> list[Lexeme]:
    lexemes: list[Lexeme] = []
    at = 0
    while at < len(source):
        found, at = next_lexeme(source, at)
        if found is not None:
            lexemes.append(found)
    lexemes.append(Lexeme(Token.END, "", len(source)))
    return lexemes


def next_lexeme(source: str, at: int) -> tuple[Lexeme | None, int]:
    """What begins here, None for space, and where it ends."""
    match = _NEXT.match(source, at)
    if match is None:
        raise SyntaxProblem(at, f"token recognition error at: {source[at : at + 10]!r}")
    name = match.lastgroup or ""
    text = match[0]
    if name == "SPACE":
        return None, match.end()
    return Lexeme(Token.KEYWORD if text in KEYWORDS else Token[name], text, at), match.end()
