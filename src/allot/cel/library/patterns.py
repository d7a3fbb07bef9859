"""Regular expressions, in RE2's syntax and in RE2's time.

RE2 needs time linear in the text whatever the pattern, which is why a stranger
may write one. Patterns are compiled once and kept.
"""

import re
from functools import lru_cache
from typing import Any, Final

import re2

from ..errors import EvaluationError
from ..overloads import function, method
from ..types import BOOL, INT, STRING, list_of

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 8 << 20


# RE2 has one escape that Go's own syntax does not: `\\C`, any single byte. What `\\Q` quotes is text.
_ESCAPES = re.compile(r"\\Q(?:(?!\\E).)*(?:\\E)?|\\.", re.DOTALL)


@lru_cache(maxsize=1024)
def pattern(text: str) -> Any:
    if "\\C" in text and "\\C" in _ESCAPES.findall(text):
        raise EvaluationError("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        return re2.compile(text, _OPTIONS)
    except re2.error as problem:
        detail = problem.args[0] if problem.args else ""
        shown = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
        raise EvaluationError(f"error parsing regexp: {shown}") from None


def matches(text: str, expression: str) -> bool:
    return pattern(expression).search(text) is not None


def find(text: str, expression: str) -> str:
    found = pattern(expression).search(text)
    return found[0] if found is not None else ""


def find_all(text: str, expression: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    if limit == 0:
        return found
    end = -1
    for match in pattern(expression).finditer(text):
        if match.end() == match.start() == end:
            continue  # nothing, right behind a match, is no match of its own
        end = match.end()
        found.append(match[0])
        if len(found) == limit:
            break
    return found


_TWO, _TEXTS = (STRING, STRING), list_of(STRING)

DECLARATIONS: Final = (
    function("matches", "matches", _TWO, BOOL, matches),
    method("matches", "matches_string", _TWO, BOOL, matches),
    method("find", "string_find_string", _TWO, STRING, find),
    method("findAll", "string_find_all_string", _TWO, _TEXTS, find_all),
    method("findAll", "string_find_all_string_int", (STRING, STRING, INT), _TEXTS, find_all),
)
