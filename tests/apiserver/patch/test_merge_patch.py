"""RFC 7386, its appendix and its algorithm."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.apiserver.patch import merge_patch

APPENDIX = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize("document, patch, result", APPENDIX)
def test_the_examples_of_the_rfc(document, patch, result):
    assert merge_patch(document, patch) == result


values = st.recursive(
    st.none() | st.integers(0, 2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@given(objects, objects)
def test_merging_twice_is_merging_once_and_changes_neither(document, patch):
    before = copy.deepcopy((document, patch))
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once
    assert (document, patch) == before
