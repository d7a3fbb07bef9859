"""Clauses, look-ups, the linter, derived attributes and the cache."""

import pytest

from allot.api import Quantity
from allot.cel import (
    CelDevice,
    CompileError,
    EvaluationError,
    Features,
    InventoryNames,
    clauses,
    compile_attribute,
    compile_selector,
    lint,
)

LISTS = Features(list_attributes=True)
GPU = CelDevice.of(
    "gpu.example.com",
    {"memory": {"int": 40}, "model": {"string": "a100"}, "numa.io/node": {"int": 1}},
    {"hbm": Quantity.parse("40Gi")},
)
BASE = 'device.attributes["gpu.example.com"]'


def texts(expression):
    return [clause.expression for clause in clauses(compile_selector(expression))]


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("true", ["true"]),
        ("true && false", ["true", "false"]),
        ("true &&\n  (false && !true) && true", ["true", "false", "!true", "true"]),
        ("((true && false))", ["true", "false"]),
        ("true || false && true", ["true || false && true"]),
        ("(true || false) && true", ["true || false", "true"]),
        ("true ? false && true : true", ["true ? false && true : true"]),
        ("[true].all(x, x && true) && ' && ' == ''", ["[true].all(x, x && true)", "' && ' == ''"]),
        (f"{BASE}.?a.orValue(true) && true", [f"{BASE}.?a.orValue(true)", "true"]),
        ("cel.bind(x, true, x && true)", ["cel.bind(x, true, x && true)"]),
    ],
)
def test_a_selector_comes_apart_where_and_binds_the_whole(expression, parts):
    assert texts(expression) == parts


def test_the_failing_clause_shows_what_the_device_had():
    large = 'device.capacity["gpu.example.com"].hbm.isGreaterThan(quantity("80Gi"))'
    expression = f'{BASE}.model == "a100" && {large}'
    failed = [clause for clause in clauses(compile_selector(expression)) if not clause.matches(GPU)]
    assert [clause.expression for clause in failed] == [large]
    (seen,) = failed[0].seen(GPU)
    assert str(seen.lookup) == 'device.capacity["gpu.example.com"].hbm'
    assert (seen.value, seen.present) == (Quantity.parse("40Gi"), True)
    assert failed[0].wants == "more"


@pytest.mark.parametrize(
    ("expression", "wants"),
    [
        (f"{BASE}.memory >= 80", "more"),
        (f"80 <= {BASE}.memory", "more"),
        (f"{BASE}.memory < 80", "less"),
        (f'{BASE}.model == "h100"', "equal"),
        ('device.capacity["d"].m.compareTo(quantity("1")) >= 0', "more"),
        ('device.capacity["d"].m.isLessThan(quantity("1"))', "less"),
        (f"{BASE}.memory > {BASE}.model", None),
        (f"!{BASE}.model", None),
    ],
)
def test_a_clause_says_in_which_direction_it_would_be_pleased(expression, wants):
    (clause,) = clauses(compile_selector(expression))
    assert clause.wants == wants


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (f"{BASE}.memory > 1", ["gpu.example.com/memory"]),
        (
            f'{BASE}["memory"] > 1 && {BASE}.?nope.orValue(1) == 1',
            ["gpu.example.com/memory", "gpu.example.com/nope"],
        ),
        (
            f"cel.bind(a, {BASE}, a.memory > 1 && a.model == 'x')",
            ["gpu.example.com/memory", "gpu.example.com/model"],
        ),
        (f'"memory" in {BASE}', ["gpu.example.com/memory"]),
        (f"{BASE}.exists(device, device == 'x')", ["gpu.example.com/None"]),
    ],
)
def test_look_ups_are_found_however_they_are_written(expression, found):
    selector = compile_selector(expression)
    (seen,) = [
        [
            f"{seen.lookup.domain}/{seen.lookup.name}"
            for clause in clauses(selector)
            for seen in clause.seen(GPU)
        ]
    ]
    assert seen == found


INVENTORY = InventoryNames.of([GPU])


@pytest.mark.parametrize(
    ("expression", "suggestion"),
    [
        (f"{BASE}.memroy > 1", f"{BASE}.memory"),
        (f"{BASE}.Memory > 1", f"{BASE}.memory"),
        ('device.attributes["gpu.exmaple.com"].memory > 1', f"{BASE}.memory"),
        (f'{BASE}.hbm == quantity("1")', 'device.capacity["gpu.example.com"].hbm'),
        (f"{BASE}.node == 1", 'device.attributes["numa.io"].node'),
        (f"cel.bind(a, {BASE}, a.modle == 'x')", f"{BASE}.model"),
        (f"has({BASE}.modl)", f"{BASE}.model"),
        ('device.driver == "gpu.example.org"', "gpu.example.com"),
        (f"{BASE}.entirely_different > 1", None),
    ],
)
def test_the_linter_finds_names_nobody_publishes(expression, suggestion):
    (suspicion,) = lint(expression, INVENTORY)
    assert suspicion.suggestion == suggestion
    assert str(suspicion).startswith("no device")


@pytest.mark.parametrize(
    "expression",
    [
        f"{BASE}.memory > 1",
        'device.driver == "gpu.example.com"',
        'device.capacity["gpu.example.com"].hbm.sign() == 1',
        "device.attributes.exists(d, d == 'x')",
        "this is no expression",
    ],
)
def test_the_linter_is_silent_otherwise(expression):
    assert lint(expression, INVENTORY) == []


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"{BASE}.memory", {"int": 40}),
        (f"{BASE}.memory > 10", {"bool": True}),
        (f"{BASE}.model + '-x'", {"string": "a100-x"}),
        ("semver('1.2.3')", {"version": "1.2.3"}),
        (f"[{BASE}.model]", {"strings": ["a100"]}),
    ],
)
def test_a_derived_attribute_looks_like_a_published_one(expression, value):
    attribute = compile_attribute(expression, LISTS)
    assert attribute.value(GPU) == value
    assert attribute.cost > 0


def test_a_derived_attribute_is_of_a_type_attributes_can_have():
    for expression in ("1.5", "quantity('1')", "{'a': 1}", "[[1]]", "optional.of(1)"):
        with pytest.raises(CompileError, match="must evaluate to"):
            compile_attribute(expression, LISTS)
    with pytest.raises(CompileError, match="must evaluate to"):
        compile_attribute("[1]")
    with pytest.raises(CompileError, match="too complex"):
        compile_attribute("lists.range(9999999).size()")
    with pytest.raises(EvaluationError, match="cannot be an attribute"):
        compile_attribute("dyn(1.5)").value(GPU)
    with pytest.raises(EvaluationError, match="all of one kind"):
        compile_attribute("dyn([1]) + dyn(['a'])", LISTS).value(GPU)


def test_a_derived_list_is_said_whether_or_not_attributes_may_be_lists():
    """What a constraint makes of it is for the allocator to say, as it is for published lists."""
    assert compile_attribute("[]", LISTS).value(GPU) == {}
    assert compile_attribute("['a', 'b']", stored=True).value(GPU) == {"strings": ["a", "b"]}
