"""Mistakes a type checker cannot see, found before anything runs.

Literals that can never be read (a pattern, a time, a duration) and aggregates
whose elements are of different types.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from .checker import Checked
from .errors import EvaluationError, Issue
from .library import formatting, patterns, times
from .tree import Call, Comprehension, ListNode, Literal, MapNode, Node, Select, children, walk
from .types import Kind, Type, is_optional

_READERS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "duration": ("duration", times.parse_duration),
    "timestamp": ("timestamp", times.parse_time),
    "matches": ("matches", patterns.pattern),
}


_UNPRINTABLE: Final = frozenset({Kind.STRUCT, Kind.OPAQUE})  # quantities, versions, addresses, optionals


def validate(checked: Checked) -> list[Issue]:
    return [*_literals(checked.root), *_aggregates(checked), *_formats(checked)]


def _literals(root: Node) -> Iterator[Issue]:
    for node in walk(root):
        if isinstance(node, Call) and node.function in _READERS and node.args:
            word, read = _READERS[node.function]
            written = node.args[-1]
            if isinstance(written, Literal) and isinstance(written.value, str):
                try:
                    read(written.value)
                except EvaluationError:
                    yield Issue(written.at, f"invalid {word} argument")


def _formats(checked: Checked) -> Iterator[Issue]:
    """Patterns that are written out, against arguments that are."""
    for node in walk(checked.root):
        match node:
            case Call(
                function="format", target=Literal(value=str() as pattern), args=(ListNode(elements=given),)
            ):
                yield from _format_issues(checked, node, pattern, given)


def _format_issues(checked: Checked, node: Call, pattern: str, given: tuple[Node, ...]) -> Iterator[Issue]:
    try:
        verbs = formatting.clauses_in(pattern)
    except EvaluationError as problem:
        yield Issue(node.at, str(problem))
        return
    if len(verbs) > len(given):
        yield Issue(node.at, f"index {len(given)} out of range")
    elif len(verbs) < len(given):
        counts = f"(expected {len(verbs)}, got {len(given)})"
        yield Issue(node.at, f"too many arguments supplied to string.format {counts}")
    for verb, argument in zip(verbs, given, strict=False):
        found, takes = checked.types[argument.id], formatting.TAKES.get(verb)
        is_printable = found.kind not in _UNPRINTABLE if takes is None else found in takes
        if not is_printable and not found.is_dynamic:
            yield Issue(argument.at, f"error during formatting: %{verb} cannot take a {found}")


def _aggregates(checked: Checked) -> Iterator[Issue]:
    waiting: list[Node] = [checked.root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.function == "format":
            continue  # its arguments are meant to differ
        waiting.extend(children(node))
        if isinstance(node, ListNode):
            yield from _alike(checked, [(e, i in node.optional) for i, e in enumerate(node.elements)])
        elif isinstance(node, MapNode):
            yield from _alike(checked, [(entry.key, False) for entry in node.entries])
            yield from _alike(checked, [(entry.value, entry.optional) for entry in node.entries])


def _alike(checked: Checked, elements: list[tuple[Node, bool]]) -> Iterator[Issue]:
    first: Type | None = None
    for node, optional in elements:
        found = checked.types[node.id]
        if optional and is_optional(found):
            found = found.params[0]
        if first is None:
            first = found
        elif found != first:
            yield Issue(node.at, f"expected type '{first}' but found '{found}'")


def is_underpriced(checked: Checked) -> bool:
    """Whether the estimate may miss real work: what holds containers, and patterns called as a function."""
    return any(
        any(_may_hold(checked, part) for part in _elements(node))
        or any(overload.id == "matches" for overload in checked.overloads.get(node.id, ()))
        for node in walk(checked.root)
    )


def _elements(node: Node) -> tuple[Node, ...]:
    """What a node puts into a container it makes."""
    match node:
        case ListNode(elements=elements):
            return elements
        case MapNode(entries=entries):
            return tuple(entry.value for entry in entries)
        case Comprehension(yields=yields) if yields is not None:
            return (yields,)
    return ()


def _may_hold(checked: Checked, node: Node) -> bool:
    """Containers hold; so may the unknown, unless it was just looked up in a map of the device."""
    found = checked.types[node.id]
    if found.is_dynamic:
        looked_up_in = children(node)[0] if isinstance(node, Select) or _is_index(node) else None
        return looked_up_in is None or checked.types[looked_up_in.id].kind is not Kind.MAP
    return bool(found.params)


def _is_index(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "_[_]"
