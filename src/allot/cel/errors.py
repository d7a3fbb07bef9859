"""How a selector says no: while it is compiled, and while it runs.

    Exception
    ├── CompileError      the text is no selector; `kind` decides the API's answer
    └── EvaluationError   the selector met a device it cannot judge
        └── CostExceeded  it worked longer than any selector may; nothing absorbs this

`Issue` is one complaint with its place. `render` prints a list of them the way
users of CEL know: message, source line, caret.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

ErrorKind = Literal["invalid", "forbidden", "too_long"]


class CompileError(Exception):
    def __init__(self, message: str, kind: ErrorKind = "invalid") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind


class EvaluationError(Exception):
    """A run-time error. Logical operators may absorb it, as CEL prescribes."""


class CostExceeded(EvaluationError):
    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


@dataclass(frozen=True, slots=True, order=True)
class Issue:
    at: int  # offset in the source, in characters
    message: str


class ParseProblem(Exception):
    """Parsing cannot go on. Carries one issue; never leaves the package."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.issue = Issue(at, message)


class SyntaxProblem(ParseProblem):
    """The text does not follow the grammar."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(at, f"Syntax error: {message}")


ISSUES_SHOWN_MAX = 100


def render(source: str, issues: Iterable[Issue]) -> str:
    ordered = sorted(set(issues))
    shown = [_render_one(source, issue) for issue in ordered[:ISSUES_SHOWN_MAX]]
    if len(ordered) > len(shown):
        shown.append(f"{len(ordered) - len(shown)} more errors were truncated")
    return "\n".join(shown)


def _render_one(source: str, issue: Issue) -> str:
    at = min(issue.at, len(source))
    line_start = source.rfind("\n", 0, at) + 1
    line_end = source.find("\n", at)
    line = source[line_start : line_end if line_end >= 0 else len(source)]
    row, column = source.count("\n", 0, at) + 1, at - line_start
    # Wide characters get wide dots, so that the caret stays below its character.
    dots = "".join("." if ord(char) < 128 else "．" for char in line[:column])
    caret = "^" if column >= len(line) or ord(line[column]) < 128 else "＾"
    shown = line.replace("\t", " ")
    return f"ERROR: <input>:{row}:{column + 1}: {issue.message}\n | {shown}\n | {dots}{caret}"
