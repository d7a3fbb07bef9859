"""Which expressions compile, and what is said about those that do not."""

import pytest

from allot.cel import LENGTH_MAX, CompileError, Features, compile_selector

LISTS = Features(list_attributes=True)


def refusal(expression, features=None, **options):
    with pytest.raises(CompileError) as refused:
        compile_selector(expression, features or Features(), **options)
    return refused.value


def test_points_at_the_mistake():
    assert refusal("device.foo").message == (
        "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo\n | ......^"
    )


def test_reports_every_mistake_in_reading_order():
    message = refusal("device.foo &&\n\tbar == 'é' && 'é' + 1 == 2").message
    assert message.splitlines() == [
        "compilation failed: ERROR: <input>:1:7: undefined field 'foo'",
        " | device.foo &&",
        " | ......^",
        "ERROR: <input>:2:2: undeclared reference to 'bar' (in container '')",
        " |  bar == 'é' && 'é' + 1 == 2",
        " | .^",
        "ERROR: <input>:2:20: found no matching overload for '_+_' applied to '(string, int)'",
        " |  bar == 'é' && 'é' + 1 == 2",
        " | .........．......．..^",
    ]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1 == 1.0", "no matching overload for '_==_' applied to '(int, double)'"),
        ("'a' < 1", "no matching overload for '_<_' applied to '(string, int)'"),
        ("'a'.size(1) == 1", "no matching overload for 'size' applied to 'string.(int)'"),
        ("device.driver.nope()", "undeclared reference to 'nope'"),
        ("sets.nope([1])", "undeclared reference to 'sets'"),
        ("1.5.foo == 1", "type 'double' does not support field selection"),
        ("[1, 'a'] == [1]", "expected type 'int' but found 'string'"),
        ("{'a': 1, 'b': 'c'} == {}", "expected type 'int' but found 'string'"),
        ('[1, device.attributes["d"].a] == [1]', "expected type 'int' but found 'any'"),
        ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
        ("'a'.all(x, true)", "expression of type 'string' cannot be range of a comprehension"),
        ("device.capacity['d'].m > 1", "applied to '(kubernetes.Quantity, int)'"),
        ("device.name == 'x'", "undefined field 'name'"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("duration('1y') == duration('1s')", "invalid duration argument"),
        ("timestamp('now') == timestamp('now')", "invalid timestamp argument"),
        ("'%d'.format(['a']) == ''", "%d cannot take a string"),
        ("'%d %d'.format([1]) == ''", "index 1 out of range"),
        ("'%d'.format([1, 2]) == ''", "too many arguments supplied to string.format (expected 1, got 2)"),
        ("'%q'.format([1]) == ''", "unrecognized formatting clause"),
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("device", "must evaluate to bool or the unknown type, not kubernetes.DRADevice"),
        ("[true]", "must evaluate to bool or the unknown type, not list(bool)"),
        ("optional.of(true)", "not optional_type(bool)"),
        ("math.greatest(1, 2) == 2", "undeclared reference to 'math'"),
        ("base64.encode(b'a') == 'YQ=='", "undeclared reference to 'base64'"),
    ],
)
def test_refuses(expression, message):
    assert message in refusal(expression).message


def test_macros_loop_over_attributes_only_where_they_may_be_lists():
    expression = 'device.attributes["d"].a.exists(x, x == 1)'
    assert "expression of type 'any' cannot be range" in refusal(expression).message
    compile_selector(expression, LISTS)
    compile_selector(expression, stored=True)
    compile_selector('1 in device.attributes["d"].a && device.attributes["d"].a.size() == 1')


def test_the_result_must_be_of_exactly_the_attribute_type():
    compile_selector('device.attributes["d"].a')
    compile_selector("dyn(true)", LISTS)
    compile_selector('true ? device.attributes["d"].a : false')
    compile_selector('true ? false : device.attributes["d"].a')
    assert "not dyn" in refusal("dyn(true)").message


def test_new_expressions_see_only_what_is_switched_on():
    shared, includes = "device.allowMultipleAllocations", 'device.attributes["d"].a.includes(1)'
    off = Features(consumable_capacity=False)
    assert "undefined field 'allowMultipleAllocations'" in refusal(shared, off).message
    assert "undeclared reference to 'includes'" in refusal(includes, off).message
    for expression in (shared, includes):
        compile_selector(expression, off, stored=True)


def test_length_and_cost_are_limits_for_new_expressions_only():
    long = f"device.driver == '{'x' * LENGTH_MAX}'"
    dear = "lists.range(2000000).all(x, x >= 0)"
    assert refusal(long).kind == "too_long"
    assert refusal(dear).kind == "forbidden"
    assert refusal("1").kind == "invalid"
    compile_selector(long, stored=True)
    compile_selector(dear, stored=True)
    compile_selector(dear, cost_limit=None)


def test_the_length_counts_bytes():
    almost = "true || '{}' == ''"
    room = LENGTH_MAX - len(almost) + 2
    compile_selector(almost.format("x" * room))
    assert refusal(almost.format("é" * (room // 2 + 1))).kind == "too_long"


@pytest.mark.parametrize(
    "expression",
    [
        "cel.bind(device, 1, device == 1)",
        "[1].exists(device, device == 1) && .device.driver == ''",
        "type(1) == int && type(device.driver) == string",
        "google.protobuf.Timestamp == type(timestamp('2020-01-01T00:00:00Z'))",
        "[].all(x, x)",
        "[[]] == [[1]]",
        "{} == {'a': 1}",
        "null == dyn(1)",
        "[1, 2].map(x, [x]).all(y, y[0] > 0)",
        "device.attributes.all(domain, device.attributes[domain].size() > 0)",
        "device.attributes.exists(domain, names, names.exists(name, name == 'x'))",
        "1 < 1.5 && 2u > 1 && 1.0 <= 2u",
        '(true ? 1 : device.attributes["d"].a) == "x" && (true ? device.attributes["d"].a : 1) == "x"',
    ],
)
def test_compiles(expression):
    compile_selector(expression, cost_limit=None)
