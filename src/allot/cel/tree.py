"""What the parser makes: an expression as a tree of values.

Every node has a number, unique in its tree, under which the checker files what
it learns (types, overloads), and a place in the source. Macros are nodes of
their own and not loops over an accumulator: the estimator knows what each would
cost upstream, and the generator can turn each into the Python that fits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any


@dataclass(frozen=True, slots=True)
class Literal:
    id: int
    at: int
    value: Any


@dataclass(frozen=True, slots=True)
class Ident:
    id: int
    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or `has(operand.field)` when `test` is set."""

    id: int
    at: int
    operand: "Node"
    field: str
    test: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method (`target` set) or an operator (`_+_`)."""

    id: int
    at: int
    function: str
    target: "Node | None"
    args: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class ListNode:
    id: int
    at: int
    elements: tuple["Node", ...]
    optional: frozenset[int] = frozenset()  # indices written `?x`


@dataclass(frozen=True, slots=True)
class Entry:
    at: int
    key: "Node"
    value: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MapNode:
    id: int
    at: int
    entries: tuple[Entry, ...]


class Loop(Enum):
    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    MAP = "map"
    FILTER = "filter"
    TRANSFORM_LIST = "transformList"
    TRANSFORM_MAP = "transformMap"
    TRANSFORM_ENTRY = "transformMapEntry"
    SORT_BY = "sortBy"


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A macro that loops over `range`, keeping what passes `where` and making `yields` of it."""

    id: int
    at: int
    loop: Loop
    range: "Node"
    var: str
    var2: str | None = None
    where: "Node | None" = None
    yields: "Node | None" = None


@dataclass(frozen=True, slots=True)
class Bind:
    """`cel.bind(name, value, body)`: evaluated when first used, at most once."""

    id: int
    at: int
    name: str
    value: "Node"
    body: "Node"


@dataclass(frozen=True, slots=True)
class OptMap:
    """`target.optMap(name, body)`; flat when `body` is an optional itself."""

    id: int
    at: int
    target: "Node"
    name: str
    body: "Node"
    flat: bool


Node = Literal | Ident | Select | Call | ListNode | MapNode | Comprehension | Bind | OptMap


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Literal() | Ident():
            return ()
        case Select(operand=operand):
            return (operand,)
        case Call(target=target, args=args):
            return args if target is None else (target, *args)
        case ListNode(elements=elements):
            return elements
        case MapNode(entries=entries):
            return tuple(part for entry in entries for part in (entry.key, entry.value))
        case Comprehension(range=range_, where=where, yields=yields):
            return tuple(part for part in (range_, where, yields) if part is not None)
        case Bind(value=value, body=body):
            return (value, body)
        case OptMap(target=target, body=body):
            return (target, body)


def is_empty_list(node: Node) -> bool:
    """`[]`, in which nothing is, so that nobody need look for it."""
    return isinstance(node, ListNode) and not node.elements


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, parents first; without recursion, whatever the depth."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))
