"""Whether two JSON values are the same."""

import json

from hypothesis import given
from hypothesis import strategies as st

from allot.api import equal

SCALARS = st.none() | st.booleans() | st.integers(0, 1) | st.text("ab", max_size=1)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner)
)


@given(VALUES, VALUES)
def test_values_are_equal_if_they_are_written_alike(one, other):
    assert equal(one, other) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


def test_a_number_is_the_same_with_and_without_a_fraction_of_nothing():
    assert equal({"x": [1]}, {"x": [1.0]})


def test_values_in_another_order_are_the_same():
    assert equal({"x": {"a": 1, "b": [True]}}, {"x": {"b": [True], "a": 1}})
    assert not equal({"x": {"a": 1, "b": [True]}}, {"x": {"b": [1], "a": 1}})
