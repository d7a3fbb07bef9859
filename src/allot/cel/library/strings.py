"""Functions on strings. Positions count characters, not bytes."""

from collections.abc import Callable
from typing import Any, Final

from ..errors import EvaluationError
from ..overloads import Declaration, function, method
from ..types import DYN, INT, STRING, list_of
from .formatting import OUTPUT_MAX, format_string

_SPACES: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_ESCAPES: Final = str.maketrans(
    {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
     "\\": "\\\\", '"': '\\"'}
)  # fmt: skip


def _within(text: str, at: int) -> None:
    if not 0 <= at <= len(text):
        raise EvaluationError(f"index out of range: {at}")


def char_at(text: str, at: int) -> str:
    _within(text, at)
    return text[at : at + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    """Nothing is found wherever it is looked for, and something nowhere past the end."""
    if not part:
        return start
    _not_before(start)
    return text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not part:
        return start
    _not_before(start)
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _not_before(start: int) -> None:
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")


def substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    _within(text, start)
    _within(text, stop)
    if start > stop:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if limit == 1:
        return [text]
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """The estimate prices the reading only, so the writing is bounded here."""
    times = text.count(old) if limit < 0 else min(limit, text.count(old))
    if len(text) + times * (len(new) - len(old)) > OUTPUT_MAX:
        raise EvaluationError("string too large")
    return text.replace(old, new, limit)


def join(texts: Any, separator: str = "") -> str:
    return separator.join(texts)


def _methods(
    name: str, result: Any, run: Callable[..., Any], *signatures: tuple[Any, ...]
) -> list[Declaration]:
    return [
        method(
            name, "_".join(["string", _snake(name), *(str(t) for t in extra)]), (STRING, *extra), result, run
        )
        for extra in signatures
    ]


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


_TEXTS = list_of(STRING)

DECLARATIONS: Final = (
    *_methods("charAt", STRING, char_at, (INT,)),
    *_methods("indexOf", INT, index_of, (STRING,), (STRING, INT)),
    *_methods("lastIndexOf", INT, last_index_of, (STRING,), (STRING, INT)),
    *_methods("lowerAscii", STRING, lambda text: text.translate(_LOWER), ()),
    *_methods("upperAscii", STRING, lambda text: text.translate(_UPPER), ()),
    *_methods("replace", STRING, replace, (STRING, STRING), (STRING, STRING, INT)),
    *_methods("split", _TEXTS, split, (STRING,), (STRING, INT)),
    *_methods("substring", STRING, substring, (INT,), (INT, INT)),
    *_methods("trim", STRING, lambda text: text.strip(_SPACES), ()),
    method("join", "list_join", (_TEXTS,), STRING, join),
    method("join", "list_join_string", (_TEXTS, STRING), STRING, join),
    method("format", "string_format", (STRING, list_of(DYN)), STRING, format_string),
    function(
        "strings.quote", "strings_quote", (STRING,), STRING, lambda text: f'"{text.translate(_ESCAPES)}"'
    ),
)
