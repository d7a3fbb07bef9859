"""What is known before anything runs, and fails before anything runs.

Upstream's planner converts literals and compiles written patterns while it makes a
program. What fails there is no expression at all: `bool("x")` is refused even behind
`false &&`, where it would never be evaluated. Constants are literals and conversions of
constants; nothing else is worked out in advance.
"""

from typing import Any, Final

from .checker import Checked
from .errors import EvaluationError, Issue
from .library import patterns
from .overloads import dispatcher
from .tree import Call, Literal, Node, walk

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_PATTERNS: Final = frozenset({"matches", "find", "findAll"})
_UNKNOWN: Final = object()


def failing(checked: Checked) -> Issue | None:
    """The first constant part that cannot be worked out, inner ones first."""
    known: dict[int, Any] = {}
    for node in reversed(list(walk(checked.root))):  # whatever a node holds comes before it
        try:
            value = _value(checked, node, known)
        except EvaluationError as problem:
            return Issue(node.at, str(problem))
        if value is not _UNKNOWN:
            known[node.id] = value
    return None


def _value(checked: Checked, node: Node, known: dict[int, Any]) -> Any:
    """The node's value, `_UNKNOWN` where it depends on the device; raises where it fails."""
    match node:
        case Literal():
            return node.value
        case Call(function=function, target=None, args=(arg,)) if function in _CONVERSIONS:
            given = known.get(arg.id, _UNKNOWN)
            return _UNKNOWN if given is _UNKNOWN else dispatcher(checked.overloads[node.id])(given)
        case Call(function=function, args=args) if function in _PATTERNS:
            at = 1 if node.target is None else 0  # behind the text, whichever way it is called
            written = known.get(args[at].id) if len(args) > at else None
            if isinstance(written, str):
                patterns.pattern(written)
    return _UNKNOWN
