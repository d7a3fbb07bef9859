"""Semantic versions: strict reading and the precedence of the specification."""

from itertools import pairwise
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Semver, normalized_semver

numbers = st.integers(0, 2**64 - 1) | st.integers(0, 3)
words = st.from_regex(r"[0-9]{0,2}[A-Za-z-][0-9A-Za-z-]{0,2}", fullmatch=True)
parts = st.lists(st.integers(0, 20).map(str) | words, max_size=3).map(".".join)
versions = st.builds(
    lambda a, b, c, pre, build: f"{a}.{b}.{c}" + (f"-{pre}" if pre else "") + (f"+{build}" if build else ""),
    numbers, numbers, numbers, parts, parts,
)  # fmt: skip


def test_orders_the_examples_of_the_specification():
    """Section 11 of semver.org 2.0.0."""
    ordered = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
               "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "2.0.0", "2.1.0", "2.1.1", "10.0.0"]  # fmt: skip
    read = [Semver.parse(text) for text in ordered]
    assert all(earlier < later for earlier, later in pairwise(read))
    assert len(set(read)) == len(read)


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "v1.2.3", "1.2.3.4", "01.2.3", "1.2.03", "1.2.3-01", "1.2.3-", "1.2.3+",
             "1.2.3-a..b", "1.2.3+a_b", " 1.2.3", "1.2.3\n",
             "18446744073709551616.0.0", "1.2.3-18446744073709551616", "1.2.٣"]
)  # fmt: skip
def test_refuses_what_is_not_a_strict_version(text):
    with pytest.raises(ValueError, match="not a semantic version"):
        Semver.parse(text)


@pytest.mark.parametrize(
    ("written", "strict"),
    [("v1.0.0", "1.0.0"), ("1", "1.0.0"), ("1.2", "1.2.0"), ("01.02.03", "1.2.3"), ("v001", "1.0.0"),
     ("1.2.003-rc1", "1.2.3-rc1"), ("00.0.0", "0.0.0")],
)  # fmt: skip
def test_normalizing_forgives_what_people_write(written, strict):
    assert normalized_semver(written) == strict


@pytest.mark.parametrize("text", ["1.2-rc1", "1+build"])
def test_normalizing_does_not_guess_the_missing_numbers_of_a_prerelease(text):
    with pytest.raises(ValueError, match="short version"):
        normalized_semver(text)


@given(versions, versions)
def test_the_order_is_total_and_ignores_build_metadata(left, right):
    a, b = Semver.parse(left), Semver.parse(right)
    assert str(a) == left
    assert (a < b) + (a == b) + (a > b) == 1
    assert a.compare(b) == -b.compare(a)
    assert Semver.parse(left.partition("+")[0]) == a
    assert normalized_semver(left) == left
    assert a != b or hash(a) == hash(b)


@pytest.mark.parametrize(
    "text", ["1." * 100_000, "1.0.0-" + "a." * 5000, "9" * 10**6, "1.0.0-" + "0" * 5000 + "_"]
)
def test_hostile_text_is_refused_quickly(text):
    started = perf_counter()
    with pytest.raises(ValueError, match="not a semantic version"):
        Semver.parse(text)
    assert perf_counter() - started < 0.1
