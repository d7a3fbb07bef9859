"""What a literal stands for: numbers in their bounds, strings without escapes."""

from math import isfinite
from re import compile
from typing import Final

from .errors import SyntaxProblem
from .lexer import Lexeme, Token
from .values import INT_MAX, INT_MIN, UINT_MAX, UInt

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
_ESCAPE = compile(
    r"\\(?:(?P<simple>[abfnrtv\\?\"'`])|[xX](?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<bad>.?))"
)


def value_of(lexeme: Lexeme, negative: bool = False) -> int | float | str | bytes:
    match lexeme.token:
        case Token.INT:
            number = _integer(lexeme.text)
            return _bounded(lexeme, -number if negative else number, INT_MIN, INT_MAX, "int")
        case Token.UINT:
            return UInt(_bounded(lexeme, _integer(lexeme.text[:-1]), 0, UINT_MAX, "uint"))
        case Token.FLOAT:
            return _double(lexeme, negative)
        case Token.STRING:
            return _text(lexeme)
        case _:
            return _bytes(lexeme)


def _integer(digits: str) -> int:
    """Digits to a number, but never more than 64 bits could need: the rest is out of bounds anyway."""
    if digits.startswith("0x"):
        digits = digits[2:].lstrip("0")
        return int(digits or "0", 16) if len(digits) <= 16 else 1 << 64
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= 20 else 1 << 64


def _double(lexeme: Lexeme, negative: bool) -> float:
    number = float(lexeme.text)
    if not isfinite(number):
        raise SyntaxProblem(lexeme.at, "invalid double literal")
    return -number if negative else number


def _bounded(lexeme: Lexeme, number: int, low: int, high: int, kind: str) -> int:
    if low <= number <= high:
        return number
    raise SyntaxProblem(lexeme.at, f"invalid {kind} literal")


def _body(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if text.startswith(('"""', "'''")) else 1
    return text[quotes:-quotes], raw


def _text(lexeme: Lexeme) -> str:
    body, raw = _body(lexeme.text)
    if raw or "\\" not in body:
        return body
    parts: list[str] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts += (body[end : match.start()], _character(lexeme, match.lastgroup, match[match.lastgroup or 0]))
        end = match.end()
    return "".join([*parts, body[end:]])


def _character(lexeme: Lexeme, form: str | None, code: str) -> str:
    if form == "simple":
        return _SIMPLE[code]
    if form == "bad":
        raise SyntaxProblem(lexeme.at, "unable to unescape string")
    point = int(code, 8 if form == "octal" else 16)
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise SyntaxProblem(lexeme.at, "invalid unicode code point")
    return chr(point)


def _bytes(lexeme: Lexeme) -> bytes:
    body, raw = _body(lexeme.text[1:])
    if raw or "\\" not in body:
        return body.encode()
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[end : match.start()].encode())
        form, code = match.lastgroup, match[match.lastgroup or 0]
        if form in ("short", "long"):
            raise SyntaxProblem(lexeme.at, "unicode escapes are not allowed in bytes")
        # In bytes, \x and octal escapes are octets and not characters.
        octet = form in ("hex", "octal")
        parts.append(
            bytes([int(code, 8 if form == "octal" else 16)])
            if octet
            else _character(lexeme, form, code).encode()
        )
        end = match.end()
    return b"".join([*parts, body[end:].encode()])
