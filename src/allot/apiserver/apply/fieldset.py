"""Sets of fields, in the very form that `managedFields` shows them.

A set is a trie of plain dictionaries, FieldsV1 as it stands:

    {"f:spec": {"f:replicas": {}, "f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}}}}}

An edge is a field (`f:`), a list element known by its keys (`k:`) or by its value
(`v:`). A node is a member of the set when it is empty or has the edge `.`; the
root alone is never a member, so `{}` at the root is the empty set.

What it promises
    FIELDS1  No function changes its arguments; results may share parts with them. Whoever
             holds a set treats it as frozen.
    FIELDS2  Results are in normal form: nothing empty hangs in the trie, `{".": {}}` is `{}`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

FieldSet = Mapping[str, Any]

MEMBER: Final[dict[str, Any]] = {}
"""A node that is a member and has no members below. Shared by all tries, never changed."""

EMPTY: Final[FieldSet] = {}


def is_member(node: FieldSet) -> bool:
    return not node or "." in node


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one:
        return other
    return _joined(one, other) if other else one


def _joined(one: FieldSet, other: FieldSet) -> dict[str, Any]:
    """Two nodes with members below, or two sets that are not empty."""
    out = dict(one)
    for edge, below in other.items():
        mine = out.get(edge)
        out[edge] = below if mine is None else _node_union(mine, below)
    return out


def _node_union(one: FieldSet, other: FieldSet) -> FieldSet:
    if one is other:
        return one
    if not one:
        return other if is_member(other) else {".": MEMBER, **other}
    if not other:
        return one if is_member(one) else {".": MEMBER, **one}
    return _joined(one, other)


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of `one` that are not members of `other`. Members below them stay.

    It is `one` itself when nothing goes, so that whoever asks can tell without comparing.
    """
    return _below_minus(one, other) if one and other else one


def _below_minus(one: FieldSet, other: FieldSet) -> FieldSet:
    """`one` with less below its edges; work follows the size of `other`."""
    out: dict[str, Any] | None = None
    for edge, theirs in other.items():
        below = one.get(edge)
        if below is None or edge == ".":
            continue
        left = _node_minus(below, theirs)
        if left is below:
            continue
        if out is None:
            out = dict(one)
        if left is None:
            del out[edge]
        else:
            out[edge] = left
    return one if out is None else out


def _node_minus(one: FieldSet, other: FieldSet) -> FieldSet | None:
    left = _below_minus(one, other) if one and other else one
    if not is_member(one):
        return left or None
    if not is_member(other):
        return MEMBER if left.keys() == {"."} else left
    return {edge: below for edge, below in left.items() if edge != "."} or None


def without_subtrees(one: FieldSet, roots: FieldSet) -> FieldSet:
    """`one` less every member of `roots` and all that is below those."""
    out = dict(one)
    for edge, theirs in roots.items():
        below = out.get(edge)
        if not theirs or "." in theirs:
            out.pop(edge, None)
        elif below:
            left = without_subtrees(below, theirs)
            if not left:
                del out[edge]
            else:
                out[edge] = MEMBER if left.keys() == {"."} else left
    return out


def only_subtrees(one: FieldSet, edges: frozenset[str]) -> FieldSet:
    """What of `one` is below these edges of the root."""
    return {edge: below for edge, below in one.items() if edge in edges}


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    out: dict[str, Any] = {}
    for edge, below in one.items():
        theirs = other.get(edge)
        if theirs is None or edge == ".":
            continue
        both = _node_both(below, theirs)
        if both is not None:
            out[edge] = both
    return out


def _node_both(one: FieldSet, other: FieldSet) -> FieldSet | None:
    below = intersection(one, other)
    if is_member(one) and is_member(other):
        return {".": MEMBER, **below} if below else MEMBER
    return below or None


def includes(one: FieldSet, other: FieldSet) -> bool:
    """Whether every member of `other` is one of `one`."""
    return not difference(other, one)


def paths(fields: FieldSet) -> Iterator[str]:
    """Every member as people read it: .spec.containers[name="a"].image"""
    for edge, below in fields.items():
        if edge != ".":
            yield from _paths_below(below, shown(edge))


def _paths_below(node: FieldSet, path: str) -> Iterator[str]:
    if is_member(node):
        yield path
    for edge, below in node.items():
        if edge != ".":
            yield from _paths_below(below, path + shown(edge))


def shown(edge: str) -> str:
    kind, rest = edge[:2], edge[2:]
    if kind == "k:":
        keys = ",".join(f"{key}={_text(value)}" for key, value in json.loads(rest).items())
        return f"[{keys}]"
    return f"[={rest}]" if kind == "v:" else f".{rest}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def is_field_set(value: Any) -> bool:
    """Whether JSON from a client is a set in normal form, as deep as objects can be."""
    return type(value) is dict and "." not in value and all(_is_node(*edge) for edge in value.items())


def _is_node(edge: str, node: Any) -> bool:
    if type(node) is not dict:
        return False
    if edge == ".":
        return not node
    if edge[:2] == "k:":
        if not _is_key(edge[2:]):
            return False
    elif edge[:2] not in ("f:", "v:"):
        return False
    return node.keys() != {"."} and all(_is_node(*inner) for inner in node.items())


def _is_key(text: str) -> bool:
    try:
        return type(json.loads(text)) is dict
    except ValueError:
        return False
