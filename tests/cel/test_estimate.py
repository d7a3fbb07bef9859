"""What selectors cost at worst. The numbers are the API's: admission depends on them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.cel import Features, compile_selector
from allot.cel.span import MOST, Span

BASE = 'device.attributes["dra.example.com"]'
LISTS = Features(list_attributes=True)


def cost(expression, features=LISTS):
    return compile_selector(expression, features, cost_limit=None).cost


@pytest.mark.parametrize(
    ("expression", "wanted", "why"),
    [
        ('device.driver == "x.y"', 2 + 1, "two look-ups, four characters compared"),
        (f"{BASE}.a == 1", 4 + 1, "four look-ups and a comparison"),
        (f"{BASE}.a.b == 1", 4 + 1, "a field of an unknown value is not charged"),
        ("device.attributes.all(d, d != device.driver)", 2 + 32 * (3 + 10) + 1, "domains have 63 characters"),
        (f"has({BASE}.a)", 3, "asking is free, getting there is not"),
        (f"{BASE}.a == {BASE}.b", 8 + 7, "two values of at most 64 characters"),
        (f"{BASE}.a in ['x', 'y']", 4 + 10 + 2, "a list is made and read"),
        (f"{BASE}.a.startsWith('abc')", 4 + 1, "the prefix is read"),
        (f"{BASE}.a.contains('abc')", 4 + 7 * 1, "the product of both"),
        (f"{BASE}.a.matches('a.*b')", 4 + 7 * 1, "65 characters times the pattern"),
        (f"{BASE}.a.lowerAscii() == 'x'", 4 + 7 + 1, "read once, compared once"),
        (f"{BASE}.a + 'b' == 'c'", 4 + 7 + 1, "joining reads both sides"),
        (f"{BASE}.a ? {BASE}.b : true", 4 + 4, "the dearer branch"),
        (f"{BASE}.?a.orValue(1) == 1", 3 + 1 + 1 + 1, "each step of an optional costs one"),
        (f"{BASE}.all(x, x != '')", 3 + 32 * (2 + 1 + 1) + 1, "32 names of up to 32 characters"),
        (f"{BASE}.map(x, x) == []", 3 + 10 + 32 * 13 + 1 + 10, "a list grows by one, 32 times"),
        (f"{BASE}.filter(x, x == 'a').size() == 1", 3 + 10 + 32 * (2 + 13) + 1 + 1 + 1, "at worst all pass"),
        (f"{BASE}.exists_one(x, x == 'a')", 3 + 32 * (2 + 2) + 2, "counted, then compared"),
        (f"{BASE}.all(k, v, v == 1)", 3 + 32 * (2 + 1 + 2) + 1, "two variables cost what one does"),
        (f"{BASE}.transformMap(k, v, v) == {{}}", 3 + 30 + 32 * 4 + 1 + 30, "a map grows instead"),
        ("cel.bind(x, 1, x + x) == 2", 10 + 0 + 3 + 1, "a binding costs a list"),
        ("[3, 1].sort() == [1, 3]", 10 + 8 + 11 + 10 + 1, "sorting is quadratic"),
        ("sets.contains([1, 2], [1])", 10 + 10 + 2 + 1, "every pair"),
        ("lists.range(5).size() == 5", 5 + 11 + 1 + 1, "the list and its making"),
        ("'a,b'.split(',').size() == 2", 1 + 1 + 1, "read and written"),
        ("[1, 2].sum() == 3", 10 + 2 + 1, "every element once"),
        ("ip('1.2.3.4').isLoopback()", 1 + 1, "parsing a constant is one call"),
        ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", 1 + 4 + 1, "16 bytes twice, and the text"),
        ("quantity('1') == quantity('2')", 1 + 1 + 1, "quantities compare in one step"),
        (f"{BASE}.a.includes(1)", 4 + 64, "as many values as there can be"),
        (f"cel.bind(x, {BASE}.a, x.includes(1))", 10 + 4 + 1 + 64, "a name for it changes nothing"),
        ("['a', 'b'].includes('a')", 10 + 2, "as many as are written"),
        (f"isSemver({BASE}.a)", 4 + 7, "the text is read"),
        ("semver('1.2.3-alpha.beta.gamma').major() == 1", 3 + 1 + 1, "also where it is written"),
        ("ip.isCanonical('1.2.3.4')", 2, "read, and compared"),
        ("cidr('10.0.0.0/8').ip().family() == 4", 1 + 1 + 1 + 1, "a part of what was read"),
        (f"{BASE}.a == quantity('1')", 4 + 1 + 1, "quantities compare in one step with anything"),
        (f"device.allowMultipleAllocations == {BASE}.a", 2 + 4 + 1, "a bool has the size of one"),
        ("[3, 1].sortBy(x, x).exists(y, y == 1)", 10 + 10 + 1 + (2 * 13 + 12) + 8 + 11 + 24 + 1, "squared"),
        ("[1, 2, 3].slice(0, -1).size() == 0", 10 + 11 + 1 + 1, "nothing"),
        ("lists.range(-1).size() == 0", 11 + 1 + 1, "nothing either"),
        (f"strings.quote({BASE}.?a.orValue('')) == 'x'", 5 + int(MOST * 0.1) + 0, "twice the unknown wraps"),
        ("optional.of(1).optMap(x, x + 1).hasValue()", 2 + (10 + 2 + 2 + 1) + 1, "a look, then a binding"),
    ],
)  # fmt: skip
def test_costs(expression, wanted, why):
    assert cost(expression) == wanted, why


@pytest.mark.parametrize(
    "expression",
    [
        f"isSemver({BASE}.?s.orValue('q'))",  # nothing is known of what an optional holds
        f"quantity({BASE}.?s.orValue('q')) == quantity('1')",
        f"isIP({BASE}.?s.orValue('q'))",
        "[1, 2, 3].slice(1, -1).size() == 0",  # a negative number counts as none, and less than that wraps
        "['a', 'b'].isSorted()",  # the letters of a literal list are not counted
        f"{BASE}.map(x, x).join('') == ''",
        "device.capacity['d'].m != quantity('1')",
    ],
)
def test_some_costs_have_no_bound(expression):
    assert cost(expression) > 10**17


def test_costs_saturate_instead_of_growing():
    unbounded = "lists.range(9223372036854775807)"
    nested = f"{unbounded}.all(x, {unbounded}.all(y, {unbounded}.all(z, true)))"
    assert cost(nested) == MOST


spans = st.builds(lambda a, b: Span(min(a, b), max(a, b)), *[st.integers(0, MOST)] * 2)


@given(spans, spans, st.floats(0, 10))
def test_span_arithmetic_stays_within_bounds_and_order(left, right, factor):
    for span in (left.plus(right), left.times(right), left.either(right), left.scaled(factor)):
        assert 0 <= span.low <= span.high <= MOST
