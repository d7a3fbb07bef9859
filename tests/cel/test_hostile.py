"""Text written to hurt: it is refused or it fails, soon, and never with a traceback."""

from contextlib import suppress
from time import perf_counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api import Quantity
from allot.cel import CelDevice, CompileError, CostExceeded, EvaluationError, Features, compile_selector
from allot.cel.lexer import RESERVED

LISTS = Features(list_attributes=True)
DEVICE = CelDevice.of(
    "d", {"n": {"int": 4}, "s": {"string": "a"}, "l": {"ints": [1, 2]}}, {"m": Quantity.parse("1Gi")}
)
SOON_S = 3.0  # generous: the machine may be busy; each takes well under a second alone


def tower(floors, ground, floor, top):
    """Bindings stacked so that each floor mentions the one below twice."""
    text = top
    for number in reversed(range(floors)):
        text = f"cel.bind(b{number + 1}, {floor.replace('B', f'b{number}')}, {text})"
    return f"cel.bind(b0, {ground}, {text})"


def conditional_tower(floors):
    text = "quantity('1')"
    for _ in range(floors):
        text = f"({text}.compareTo(quantity('2')) >= 0 ? quantity('1') : quantity('2'))"
    return f"{text}.sign() == 1"


HOSTILE = {
    "brackets": "(" * 5000 + "true" + ")" * 5000,
    "lists": "[" * 10_000,
    "signs": "!" * 10_000 + "true",
    "sum": "1" + "+1" * 4000 + " == 1",
    "path": "device" + ".a" * 4000,
    "conditions": "true?" * 1000 + "true" + ":true" * 1000,
    "chain": "true" + "&&true" * 1700,
    "huge int": "9" * 10_000 + " == 1",
    "huge float": "1e" + "9" * 5000 + " > 1.0",
    "huge quantity": "quantity('1e3000000').sign() == 1",
    "huge version": f"semver('{'9' * 5000}.0.0').major() == 1",
    "huge duration": f"duration('{'9' * 5000}h') == duration('1s')",
    "backtracking": "('a' + 'a'.replace('a', '" + "a" * 3000 + "')).matches('(a*)*(a*)*(a|aa)*$b')",
    "pattern": "'a'.matches('" + "(a?){500}" * 30 + "')",
    "nested repeats": "'a'.matches('((a{100}){100}){100}')",
    "range": "lists.range(10000000).size() == 1",
    "loops": "lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, x > y)))",
    "failing loop": "lists.range(5000).exists(x, 1 / 0 == x)",
    "pattern as function": "lists.range(100000).all(x, matches('" + "a" * 4000 + "', 'b$') || true)",
    "doubling list": tower(60, "[1]", "B + B", "b60.size() == 1"),
    "doubling nest": tower(60, "[1]", "[B, B]", "b60 == [b59, b59]"),
    "hidden nest": tower(40, "[dyn(1)]", "[dyn(B), dyn(B)]", "b40 == [dyn(b39)]"),
    "doubling string": tower(60, "'x'", "B + B", "b60.size() == 1"),
    "squaring string": tower(3, f"'{'x' * 90}'", "B.replace('', B)", "b3.size() == 1"),
    "doubling format": tower(40, "['x']", "['%s%s'.format([B, B])]", "b40.size() == 1"),
    "flattening": tower(30, "[[1, 1]]", "[B.flatten() + B.flatten()]", "b30.size() == 1"),
    "doubling optional": "optional.of(1)" + ".optMap(x, x)" * 90 + ".hasValue()",
    "doubling sort": "[1]" + ".sortBy(x, x)" * 90 + " == [1]",
    "doubling comparison": conditional_tower(60),
    "control characters": "\x00\x01",
    "lone surrogate": "'\ud800' == ''",
    "open string": "'" * 9999,
}


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_is_answered_soon(name, stored):
    """SELECT1 and SELECT3."""
    started = perf_counter()
    with suppress(CompileError, EvaluationError):
        compile_selector(HOSTILE[name], LISTS, stored=stored).matches(DEVICE)
    assert perf_counter() - started < SOON_S


def test_what_was_stored_runs_counted_and_stops_at_the_limit():
    """SELECT2."""
    selector = compile_selector("lists.range(900000).all(x, x >= 0)", stored=True)
    assert selector.cost > 1_000_000
    with pytest.raises(CostExceeded):
        selector.matches(DEVICE)
    cheap_in_fact = compile_selector(
        "size(device.attributes) > 5 && lists.range(900000).all(x, x >= 0)", stored=True
    )
    assert cheap_in_fact.matches(DEVICE) is False


@pytest.mark.parametrize(
    ("expression", "counted"),
    [
        ("matches('a', 'b')", True),
        ("'a'.matches('b')", False),
        ("[[1]] == [[1]]", True),
        ("[1].map(x, [x]) == []", True),
        ('[dyn(device.attributes["d"].l)] == []', True),
        ('[device.attributes["d"].n] == []', False),
        ('device.attributes["d"].n in [1, 2]', False),
    ],
)
def test_work_the_estimate_does_not_see_is_counted(expression, counted):
    """SELECT2: patterns called as a function are priced at one, and lists of lists by their length."""
    assert compile_selector(expression, LISTS, stored=True).program.counted is counted


def test_nothing_absorbs_the_limit():
    """EVAL2: otherwise `|| true` would buy unlimited time."""
    selector = compile_selector("lists.range(900000).all(x, x >= 0) || true", stored=True)
    with pytest.raises(CostExceeded):
        selector.matches(DEVICE)


def test_a_device_larger_than_the_api_allows_is_judged_counted():
    """SELECT2: estimates rest on sizes that only validation guarantees."""
    expression = 'device.attributes["d"].all(x, device.attributes["d"].all(y, x.contains(y)))'
    selector = compile_selector(expression)
    large = CelDevice.of("d", {f"{'n' * 20}{i}": {"int": i} for i in range(2000)})
    assert not large.plain
    with pytest.raises(EvaluationError):
        compile_selector(expression.replace("x.contains(y)", "x.contains(y) || true")).matches(large)
    assert selector.matches(DEVICE) is False


WORDS = [
    *[
        "device",
        ".driver",
        ".attributes",
        '["d"]',
        ".n",
        ".?s",
        "[?0]",
        "x",
        "1",
        "2u",
        "1.5",
        "'a'",
        "b'a'",
        "null",
        "true",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        ".",
        "+",
        "-",
        "*",
        "/",
        "%",
        "!",
        "&&",
        "||",
        "==",
        "!=",
        "<",
        ">=",
        "has(",
        ".all(x,",
        ".map(x,",
        ".exists(x,y,",
        "cel.bind(x,",
        ".orValue(",
        "quantity(",
        ".matches(",
        "dyn(",
        "size(",
        ".format(",
        "optional.of(",
        ".optMap(x,",
        "int",
        ".sortBy(x,",
        "//",
    ],
    " in ",
    "\n",
    *sorted(RESERVED)[:2],
]


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join) | st.text(max_size=30), st.booleans())
def test_any_text_is_a_selector_or_a_refusal(text, stored):
    """SELECT1 and SELECT3: no other exception leaves, whatever the words."""
    try:
        selector = compile_selector(text, LISTS, stored=stored)
    except CompileError as problem:
        assert problem.message
        return
    with suppress(EvaluationError):
        assert selector.matches(DEVICE) in (True, False)
