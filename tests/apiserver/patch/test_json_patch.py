"""RFC 6902: the appendix, an independent implementation, and hostile patches."""

import copy
import time

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api.errors import ApiError, BadRequest, Invalid, TooLarge
from allot.apiserver.patch import OPERATIONS_MAX, json_patch

APPENDIX = [  # RFC 6902, appendix A; (document, patch, result)
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    ({"foo": list("abcd")}, [{"op": "move", "from": "/foo/1", "path": "/foo/3"}], {"foo": list("acdb")}),
    ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "qux"}], {"baz": "qux"}),
    ({"foo": "bar"}, [{"op": "add", "path": "/c", "value": {"g": {}}}], {"foo": "bar", "c": {"g": {}}}),
    (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
        {"foo": "bar", "baz": "qux"},
    ),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["a"]}], {"foo": ["bar", ["a"]]}),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
    ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
]


@pytest.mark.parametrize("document, patch, result", APPENDIX)
def test_the_examples_of_the_rfc(document, patch, result):
    before = copy.deepcopy(document)
    assert json_patch(document, patch) == result
    assert document == before


@pytest.mark.parametrize(
    "operation, error",
    [
        ({"op": "add", "path": "/baz/bat", "value": 1}, Invalid),
        ({"op": "remove", "path": "/nothing"}, Invalid),
        ({"op": "replace", "path": "/nothing", "value": 1}, Invalid),
        ({"op": "add", "path": "/list/9", "value": 1}, Invalid),
        ({"op": "add", "path": "/list/01", "value": 1}, Invalid),
        ({"op": "add", "path": "/list/-1", "value": 1}, Invalid),
        ({"op": "remove", "path": "/list/-"}, Invalid),
        ({"op": "remove", "path": "/list/٣"}, Invalid),
        ({"op": "remove", "path": ""}, Invalid),
        ({"op": "add", "path": "/word/x", "value": 1}, Invalid),
        ({"op": "move", "from": "/object", "path": "/object/inside"}, Invalid),
        ({"op": "test", "path": "/word", "value": "other"}, Invalid),
        ({"op": "test", "path": "/truth", "value": 1}, Invalid),
        ({"op": "test", "path": "/word"}, BadRequest),
        ({"op": "add", "path": "/x"}, BadRequest),
        ({"op": "add", "path": "x", "value": 1}, BadRequest),
        ({"op": "add", "value": 1}, BadRequest),
        ({"op": "merge", "path": "/x"}, BadRequest),
        ({"path": "/x"}, BadRequest),
        ("add", BadRequest),
    ],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(operation, error):
    document = {"list": [1, 2, 3], "word": "w", "object": {"a": 1}, "truth": True}
    before = copy.deepcopy(document)
    with pytest.raises(error):
        json_patch(document, [{"op": "add", "path": "/list/0", "value": 0}, operation])
    assert document == before


def test_a_copy_is_not_the_original():
    patch = [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/x", "value": 1}]
    assert json_patch({"a": {}}, patch) == {"a": {}, "b": {"x": 1}}


def test_a_patch_is_a_list():
    with pytest.raises(BadRequest):
        json_patch({}, {"op": "add"})


@pytest.mark.parametrize(
    "document, patch",
    [
        ({}, [{"op": "test", "path": "", "value": {}}] * (OPERATIONS_MAX + 1)),
        ({"a": "x" * 1000}, [{"op": "copy", "from": "", "path": "/b"}] * 100),
        ({"a": ["x" * 1000]}, [{"op": "copy", "from": "/a", "path": "/a/-"}] * 5000),
        ({"a": [0] * 500_000}, [{"op": "add", "path": "/a/0", "value": 0}] * OPERATIONS_MAX),
    ],
)
def test_growth_is_bounded(document, patch):
    started = time.process_time()
    with pytest.raises(TooLarge):
        json_patch(document, patch)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("operations", [199, 205, 2000])
def test_depth_is_bounded(operations):
    patch = [{"op": "copy", "from": "", "path": "/b"}] * operations
    if operations < 200:
        json_patch({}, patch)
        return
    with pytest.raises(BadRequest, match="deeper"):
        json_patch({}, patch)


def test_untouched_parts_are_shared_and_touched_parts_are_not():
    document = {"a": {"x": [1]}, "b": {"y": [1]}}
    new = json_patch(document, [{"op": "add", "path": "/a/x/-", "value": 2}])
    assert new["b"] is document["b"]
    assert document["a"]["x"] == [1]


# --- against the jsonpatch package ------------------------------------------------------------

keys = st.sampled_from(["a", "b", "~", "/", "0"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "s"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(keys, values, max_size=4)


def pointers(document):
    """Mostly pointers that lead somewhere, or the bare misses."""
    found = [""]

    def visit(value, path):
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, member in items:
            here = path + "/" + str(key).replace("~", "~0").replace("/", "~1")
            found.extend([here, here + "/new", path + "/-"])
            visit(member, here)

    visit(document, "")
    return st.sampled_from(found)


@st.composite
def patched_documents(draw):
    document = draw(documents)
    pointer = pointers(document)
    operations = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]))
        operation = {"op": kind, "path": draw(pointer)}
        if kind in ("move", "copy"):
            operation["from"] = draw(pointer)
        if kind in ("add", "replace", "test"):
            operation["value"] = draw(values)
        operations.append(operation)
    return document, operations


@settings(max_examples=400)
@given(patched_documents())
def test_the_answer_is_that_of_an_independent_implementation(case):
    document, operations = case
    before = copy.deepcopy(case)
    try:
        ours = json_patch(document, operations)
    except ApiError:
        ours = None
    assert case == before
    if any(o["op"] in ("remove", "move") and (o["path"] == "" or o.get("from") == "") for o in operations):
        return  # that package lets the whole document be removed or moved
    try:
        theirs = jsonpatch.apply_patch(copy.deepcopy(document), operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, IndexError, KeyError):
        theirs = None
    if any(o["op"] == "test" for o in operations) and ours is None:
        return  # it takes 1 for true
    assert ours == theirs
