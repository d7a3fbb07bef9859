"""Quantities: exact, canonical, and never a way to burn a processor."""

from decimal import Decimal
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import Quantity, QuantityFormat

amounts = st.integers(-(10**40), 10**40)
formats = st.sampled_from(QuantityFormat)
quantities = st.builds(Quantity, amounts, formats)
suffixes = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("0", "0"),
        ("0Ki", "0"),
        ("-0", "0"),
        ("1.5", "1500m"),
        ("1500m", "1500m"),
        ("2000m", "2"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1.5Ki", "1536"),
        ("1536Mi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("0.0001Ki", "102400u"),
        ("100Ki", "100Ki"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e2", "1200"),
        ("1E", "1E"),
        ("1e-3", "1e-3"),
        ("+4", "4"),
        (".5", "500m"),
        ("5.", "5"),
        ("007", "7"),
        ("-12.5Gi", "-12800Mi"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1e-300", "1e-9"),
        ("9999Ei", "9223372036854775807"),
        ("1000E", "1000E"),
        (3, "3"),
        (0.25, "250m"),
        (1e22, "10e21"),
    ],
)
def test_prints_the_canonical_form(written, printed):
    assert str(Quantity.parse(written)) == printed


@pytest.mark.parametrize(
    "text", ["", " ", "1 ", " 1", "x", "1x", "1kk", "1ki", "1K", "--1", "1.2.3", ".", "+", "e3", "1e",
             "1e3.5", "1e3k", "١", "1_0", "0x10", "NaN", "inf", "1\n"]
)  # fmt: skip
def test_refuses_what_is_not_a_quantity(text):
    with pytest.raises(ValueError, match="not a quantity"):
        Quantity.parse(text)


@pytest.mark.parametrize("number", [True, float("inf"), float("nan"), None, [1]])
def test_refuses_numbers_that_are_none(number):
    with pytest.raises(ValueError, match="not a quantity"):
        Quantity.parse(number)


@pytest.mark.parametrize(
    "text",
    ["1e3000000", "1e999999999999999999", "9" * 10_000, "0." + "0" * 10**6 + "1", "1e65", 10**5000],
    ids=["exponent", "long exponent", "digits", "fraction", "just too large", "number"],
)
def test_refuses_hostile_numbers_before_computing_with_them(text):
    """QTY4. Python would happily spend minutes on 10**3000000."""
    started = perf_counter()
    with pytest.raises(ValueError, match="quantity"):
        Quantity.parse(text)
    assert perf_counter() - started < 0.1


@given(quantities)
def test_what_is_printed_reads_back(quantity):
    """QTY2."""
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity) or quantity.format is QuantityFormat.BINARY_SI
    assert len(str(quantity)) < 64


@given(st.integers(-(10**12), 10**12), st.integers(0, 6), st.sampled_from(sorted(suffixes)))
def test_agrees_with_decimal_arithmetic(number, places, suffix):
    """QTY1 and QTY3, against the standard library's decimals."""
    text = str(Decimal(number).scaleb(-places))
    if "E" in text:
        return
    exact = Decimal(number).scaleb(9 - places + suffixes[suffix])
    rounded = int(exact.to_integral_value(rounding="ROUND_UP"))
    assert Quantity.parse(text + suffix).nano == rounded


@given(quantities, quantities)
def test_compares_and_adds_by_amount_alone(left, right):
    assert (left < right) == (left.nano < right.nano)
    assert (left == right) == (left.compare(right) == 0)
    assert (left + right) - right == left
    assert left != right or hash(left) == hash(right)
    assert left.compare(right) == -right.compare(left)


@given(quantities)
def test_whole_and_milli_units_round_away_from_zero(quantity):
    units, exact = quantity.as_int(), Decimal(quantity.nano) / 10**9
    assert abs(units) * 10**9 >= abs(quantity.nano) > (abs(units) - 1) * 10**9
    assert quantity.is_integer == (units * 10**9 == quantity.nano)
    assert abs(quantity.milli()) * 10**6 >= abs(quantity.nano) > (abs(quantity.milli()) - 1) * 10**6
    assert quantity.sign == (exact > 0) - (exact < 0)


def test_a_sum_keeps_the_family_of_the_first_amount_that_is_not_zero():
    zero, gib, cpu = Quantity.parse("0"), Quantity.parse("1Gi"), Quantity.parse("2k")
    assert str(zero + gib) == "1Gi"
    assert str(gib + gib) == "2Gi"
    assert str(cpu + gib) == "1073743824"


def test_a_quantity_cannot_be_changed():
    with pytest.raises(AttributeError):
        Quantity.parse("1").nano = 2
