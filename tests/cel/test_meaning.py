"""What selectors mean, against an oracle that shares no code with the engine."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings

from allot.cel import CompileError, CostExceeded, EvaluationError, Features, clauses, compile_selector
from allot.cel.interpret import evaluate
from allot.cel.meter import Meter
from cel.world import DEVICE, FAILED, conditions

LISTS = Features(list_attributes=True)


def outcome(run):
    try:
        found = run()
    except EvaluationError:
        return FAILED
    return found if isinstance(found, bool) else FAILED


def compiled(text):
    """A condition may be of a type no selector may have; then it is made dynamic, which changes nothing."""
    try:
        return compile_selector(text, LISTS, stored=True)
    except CompileError as problem:
        raise AssertionError(f"{text}\n{problem}") from None


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conditions())
def test_fast_and_careful_runs_agree_with_the_oracle(expression):
    """GEN1 and EVAL1: three ways to the same answer, errors and their absorption included."""
    wanted = expression.value({})
    wanted = wanted if isinstance(wanted, bool) else FAILED
    selector = compiled(expression.text)

    assert outcome(lambda: selector.matches(DEVICE)) is wanted
    careful = outcome(lambda: evaluate(selector.program.checked, DEVICE, Meter(10**9)))
    assert careful is wanted


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conditions())
def test_no_run_costs_more_than_was_foreseen(expression):
    """The estimate is a promise: whoever stays below the limit there needs no counting here."""
    selector = compiled(expression.text)
    with suppress(EvaluationError):
        try:
            evaluate(selector.program.checked, DEVICE, Meter(selector.cost))
        except CostExceeded:
            pytest.fail(f"costs more than {selector.cost}: {expression.text}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conditions(depth=2), conditions(depth=2))
def test_a_selector_holds_exactly_when_all_its_clauses_do(left, right):
    selector = compiled(f"({left.text}) && ({right.text})")
    parts = clauses(selector)
    answers = [outcome(lambda part=part: part.matches(DEVICE)) for part in parts]
    whole = outcome(lambda: selector.matches(DEVICE))
    assert len(parts) >= 2
    assert whole is (False if False in answers else FAILED if FAILED in answers else True)


def test_a_bound_value_is_computed_at_most_once():
    """EVAL3: thirty doublings would otherwise be a billion evaluations of the first one."""
    text = "b30 == 1073741824"
    for number in reversed(range(30)):
        text = f"cel.bind(b{number + 1}, b{number} + b{number}, {text})"
    selector = compiled(f"cel.bind(b0, 1, {text})")

    assert selector.matches(DEVICE)
    assert evaluate(selector.program.checked, DEVICE, Meter(1000)) is True


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("true || 1 / 0 == 1", True),
        ("1 / 0 == 1 || true", True),
        ("1 / 0 == 1 && false", False),
        ("false || 1 / 0 == 1", FAILED),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[1, 0].all(x, 1 / x == 2)", False),
        ("[0, 2].exists(x, 1 / x == 1)", FAILED),
        ("[0, 1].exists_one(x, 1 / x == 1)", FAILED),
        ("cel.bind(x, 1 / 0, true)", True),
        ("cel.bind(x, 1 / 0, x == 1 || true)", True),
        ("optional.of(1).orValue(1 / 0) == 1", True),
        ("true ? true : 1 / 0 == 1", True),
        ('device.attributes["gpu.example.com"].word && false', False),
        ('device.attributes["gpu.example.com"].word || false', FAILED),
        ('device.attributes["gpu.example.com"].yes > 0', FAILED),
        ('device.attributes["gpu.example.com"].yes == 1', False),
        ('device.attributes["gpu.example.com"].small == true', False),
        ('device.attributes["gpu.example.com"].yes in [1, 2]', False),
        # A version refuses other types, from the left: from the right it is only different.
        ('device.attributes["gpu.example.com"].firmware == "1.2.3"', FAILED),
        ('"1.2.3" == device.attributes["gpu.example.com"].firmware', False),
        ('device.attributes["gpu.example.com"].firmware != "1.2.3"', True),
        ('device.attributes["gpu.example.com"].firmware == true', FAILED),
        ('device.attributes["gpu.example.com"].firmware == null', False),
        ('device.attributes["gpu.example.com"].firmware == semver("1.2.3")', True),
        ('device.attributes["gpu.example.com"].firmware == quantity("1")', FAILED),
        ('device.attributes["gpu.example.com"].firmware in ["1.2.3"]', False),
        ('[device.attributes["gpu.example.com"].firmware].indexOf("1.2.3") == -1', True),
        ('quantity("1") == dyn(1)', FAILED),
        ('ip("10.0.0.1") == dyn("10.0.0.1")', FAILED),
        ('ip("10.0.0.1") == ip("::1")', False),
        # The first element speaks for the list, and those after it may be anything.
        ("([1] + dyn(['a'])).sum() == 1", FAILED),
        ("([1] + dyn([true])).sum() == 2", FAILED),
        ("([1] + dyn([1.0])).sum() == 2", FAILED),
        ("(['a'] + dyn([1])).join('') == 'a1'", FAILED),
        ("(['a'] + dyn([1])).isSorted()", FAILED),
        ("18446744073709551615u / 1u == 18446744073709551615u", True),
        # The checker calls these numbers, and they are not: `dyn` can stand for anything.
        ('(device.allowMultipleAllocations ? 1 : device.attributes["gpu.example.com"].yes) > 0', FAILED),
        ("([1] + dyn([true]))[1] > 0", FAILED),
        ("([1] + dyn([true])).exists(x, x > 1)", FAILED),
        ("optional.of(1).or(dyn(optional.of(true))).orValue(2) == 1", True),
    ],
)
def test_errors_are_absorbed_where_cel_says_so(expression, wanted):
    assert outcome(lambda: compiled(expression).matches(DEVICE)) is wanted
