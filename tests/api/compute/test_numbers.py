"""Numbers with units: exact, and never converted."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.compute import numbers
from allot.api.compute.numbers import Measured


@pytest.mark.parametrize(
    ("text", "value"),
    [("40", 40), ("0.1", Fraction(1, 10)), ("-1.5", Fraction(-3, 2)), ("+2", 2), (".5", Fraction(1, 2))],
)
def test_plain_decimals(text, value):
    """14-UNIT-01"""
    assert numbers.parse(text) == Measured(Fraction(value), "")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1m", Fraction(1, 1000)), ("2k", 2000), ("15G", 15 * 10**9), ("1E", 10**18)]
    + [(f"1{prefix}i", 1024**power) for power, prefix in enumerate("KMGTPE", 1)],
)
def test_suffixes_of_quantities_scale(text, value):
    """14-UNIT-02"""
    assert numbers.parse(text) == Measured(Fraction(value), "")


def test_more_than_a_thousand_is_told_from_a_thousand():
    """14-UNIT-02: 15Gi is more than 15G."""
    assert numbers.parse("15Gi").compare(numbers.parse("15G")) == 1


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("40GBPS", 40 * 10**9, "BPS"),
        ("16GB", 16 * 10**9, "B"),
        ("16GiB", 16 * 2**30, "B"),
        ("300W", 300, "W"),
        ("5mW", Fraction(5, 1000), "W"),
        ("2.5GHz", Fraction(5, 2) * 10**9, "Hz"),
        ("12cores", 12, "cores"),
        ("7Gcores", 7, "Gcores"),  # not of the list, so nothing scales
        ("3KB", 3, "KB"),  # K is no prefix
    ],
)
def test_a_word_names_the_unit(text, value, unit):
    """14-UNIT-03"""
    assert numbers.parse(text) == Measured(Fraction(value), unit)


@pytest.mark.parametrize("text", ["", "G", "fast", "1 G", "1..2", "1e3", "--1", "٣", "1" * 300, "1G5"])
def test_what_is_no_number(text):
    assert numbers.parse(text) is None


def test_units_that_compare():
    """14-UNIT-04, 14-UNIT-06: a missing word fits any; bits are not bytes; nothing is converted."""

    def compared(left, right):
        return numbers.parse(left).compare(numbers.parse(right))

    assert compared("16GB", "15G") == 1
    assert compared("15G", "16GB") == -1
    assert compared("16GHz", "15GB") is None
    assert compared("8Gb", "1GB") is None
    assert compared("100Gbps", "12GBps") is None
    assert compared("1000MB", "1GB") == 0


_DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15)
_SUFFIXES = st.sampled_from(["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Gi", "Ei"])
_SCALES = {"": 1, "m": Fraction(1, 1000), "Ki": 2**10, "Gi": 2**30, "Ei": 2**60}
_SCALES |= {prefix: 1000**power for power, prefix in enumerate("kMGTPE", 1)}


@given(_DECIMALS, _SUFFIXES, _DECIMALS, _SUFFIXES)
def test_comparing_is_exact(left, left_suffix, right, right_suffix):
    """14-UNIT-05: as fractions compare, however many digits there are."""
    texts = [f"{one:f}{suffix}" for one, suffix in ((left, left_suffix), (right, right_suffix))]
    first = Fraction(Decimal(left)) * _SCALES[left_suffix]
    second = Fraction(Decimal(right)) * _SCALES[right_suffix]
    assert numbers.parse(texts[0]).compare(numbers.parse(texts[1])) == (first > second) - (first < second)
