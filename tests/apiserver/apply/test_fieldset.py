"""Tries of fields, against plain Python sets of paths."""

from hypothesis import given
from hypothesis import strategies as st

from allot.apiserver.apply.fieldset import (
    MEMBER,
    difference,
    includes,
    intersection,
    is_field_set,
    paths,
    union,
    without_subtrees,
)

edges = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
all_paths = st.frozensets(st.lists(edges, min_size=1, max_size=4).map(tuple), max_size=8)


def trie(members):
    """The trie of a set of paths, the slow and plain way."""
    root = {}
    for path in members:
        node = root
        for edge in path:
            node = node.setdefault(edge, {})
        node["."] = {}
    return _normal(root)


def _normal(node):
    out = {edge: {} if edge == "." else _normal(below) for edge, below in node.items()}
    return {} if out.keys() == {"."} else out


def members(node, path=()):
    found = {path} if path and (not node or "." in node) else set()
    for edge, below in node.items():
        if edge != ".":
            found |= members(below, (*path, edge))
    return found


@given(all_paths, all_paths)
def test_tries_are_sets(one, other):
    """FIELDS1, FIELDS2."""
    a, b = trie(one), trie(other)
    assert members(union(a, b)) == one | other
    assert members(difference(a, b)) == one - other
    assert members(intersection(a, b)) == one & other
    assert includes(a, b) == (one >= other)
    assert (a, b) == (trie(one), trie(other))
    for made in (union(a, b), difference(a, b), intersection(a, b)):
        assert made == trie(members(made))
        assert is_field_set(made)
    assert MEMBER == {}


@given(all_paths, all_paths)
def test_subtrees_leave_as_a_whole(one, roots):
    left = {p for p in one if not any(p[:i] in roots for i in range(1, len(p) + 1))}
    assert members(without_subtrees(trie(one), trie(roots))) == left


def test_paths_are_readable():
    ports = 'k:{"containerPort":80,"protocol":"TCP"}'
    fields = {
        "f:metadata": {"f:finalizers": {'v:"a/b"': {}}},
        "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:ports": {ports: {}}}}},
    }
    assert list(paths(fields)) == [
        '.metadata.finalizers[="a/b"]',
        '.spec.containers[name="c"]',
        '.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"]',
    ]


def test_nonsense_is_no_field_set():
    for odd in (
        None,
        [],
        {"x": {}},
        {"f:a": None},
        {"f:a": {".": {}}},
        {".": {}},
        {"f:a": {".": {"f:b": {}}}},
        {"k:[": {}},
    ):
        assert not is_field_set(odd), odd
