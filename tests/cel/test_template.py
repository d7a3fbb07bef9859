"""Templates: text with placeholders over `object`, to parameters of a model."""

import json
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.cel import CompileError, CostExceeded, EvaluationError, compile_template
from allot.cel.template import EXPANDED_MAX

HEAD = "kind: Parameters\napiVersion: example.com/v1\n"
NASTY = 'x: "1"\n- y: {{object.n}} # \'}} \\ \t'
OBJECT = {
    "apiVersion": "dra.e2e.example.com/v1alpha1",
    "kind": "ClaimParameters",
    "metadata": {"name": "five", "labels": {"a-b": "c"}},
    "spec": {"n": 5, "text": NASTY, "list": [1, {"a": None}], "env": {"A": "B"}, "half": 0.5, "yes": True},
    "n": 7,
}


def expanded(body, thing=OBJECT):
    made = compile_template(HEAD + body).expand(thing)
    return {name: value for name, value in made.items() if name not in ("kind", "apiVersion")}


def value(expression, thing=OBJECT):
    return expanded(f"v: {{{{{expression}}}}}", thing)["v"]


def refusal(text):
    with pytest.raises(CompileError) as caught:
        compile_template(text)
    return caught.value


def failure(body, thing=OBJECT):
    with pytest.raises(EvaluationError) as caught:
        expanded(body, thing)
    return str(caught.value)


# -- what a template is


def test_the_printed_template_gives_typed_parameters():
    """4381-TPL-01, 4381-TPL-05: the specification's template, byte for byte."""
    text = (
        "kind: Parameters\n"
        "apiVersion: counter.dra.config.k8s.io/v1alpha1\n"
        "Required: {{object.spec.numberOfFrobnicators}}\n"
    )
    assert compile_template(text).expand({"spec": {"numberOfFrobnicators": 3}}) == {
        "kind": "Parameters",
        "apiVersion": "counter.dra.config.k8s.io/v1alpha1",
        "Required": 3,
    }


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("object.metadata.name", "five"),
        ("object.metadata.labels['a-b']", "c"),
        ("object.kind", "ClaimParameters"),
        ("object.n", 7),
        ("object.spec.env", {"A": "B"}),
    ],
)
def test_object_is_the_whole_parameter_object(expression, found):
    """4381-TPL-02"""
    assert value(expression) == found


@pytest.mark.parametrize(
    "expression",
    ["self", "oldObject", "params", "request", "device.driver", "now()", "random()", "authorizer"],
)
def test_nothing_else_can_be_named(expression):
    """4381-TPL-03: no other variable, no clock, no chance, no API."""
    wrong = refusal(f"{HEAD}v: {{{{{expression}}}}}")
    assert "undeclared reference" in wrong.message
    assert f"placeholder {{{{{expression}}}}} in line 3" in wrong.message


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("1", 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615u", 2**64 - 1),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ("'5'", "5"),
        ("object.spec.list", [1, {"a": None}]),
        ("{'a': [1u]}", {"a": [1]}),
    ],
)
def test_a_whole_value_keeps_its_type(expression, found):
    """4381-TPL-06"""
    got = value(expression)
    assert (type(got), got) == (type(found), found)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('v: "{{object.n}}"', "7"),
        ("v: '{{object.n}}'", "7"),
        ("v: a{{object.n}}", "a7"),
        ("v: 1{{object.n}}", "17"),
        ("v: {{object.n}}{{object.n}}", "77"),
        ("v: {{object.n}} {{object.spec.half}} {{true}} {{null}}", "7 0.5 true null"),
        ("v: |-\n  {{object.n}}", "7"),
        ("v: >\n  a\n  {{object.n}}\n", "a 7\n"),
        ("v: !!str {{object.n}}", "7"),
        ("v: is {{object.spec.list}}", 'is [1,{"a":null}]'),
    ],
)
def test_in_quotes_or_a_longer_text_a_value_becomes_text(body, found):
    """4381-TPL-07"""
    assert expanded(body)["v"] == found


@pytest.mark.parametrize(
    "body", ["v: {{object.spec.text}}", 'v: "{{object.spec.text}}"', "v: '{{object.spec.text}}'"]
)
def test_values_stay_data(body):
    """4381-TPL-08, 4381-SEC-07: quotes, line breaks, braces, colons and hashes of a user change nothing."""
    assert expanded(f"{body}\nw: 1") == {"v": NASTY, "w": 1}


def test_a_value_is_put_in_encoded_whatever_yaml_would_make_of_it():
    """4381-TPL-09: `no`, `1e3` and `~` are texts if the user wrote texts."""
    for text in ("no", "1e3", "~", "", "- a", "{a: b}", "&x", "*x", "!!int 3", "0x1f", "---", "<<"):
        assert value("object.spec.x", {"spec": {"x": text}}) == text


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("'}}'", "}}"),
        ('"a}}b"', "a}}b"),
        ("r'\\}}'", "\\}}"),
        ("'''}}'''", "}}"),
        ("{'a': {'b': 1}}", {"a": {"b": 1}}),
        (" {'a': {'b': '}}'}} ", {"a": {"b": "}}"}}),
        ("1 // }}\n", 1),
        ("'{{'", "{{"),
    ],
)
def test_the_language_says_where_a_placeholder_ends(expression, found):
    """4381-TPL-10"""
    assert expanded(f"v: {{{{{expression}}}}}\nw: 1") == {"v": found, "w": 1}


def test_space_in_the_braces_does_not_matter():
    """4381-TPL-11"""
    assert value("\n   object\n  .n \t\n") == value("object.n") == 7


def test_any_number_of_placeholders():
    """4381-TPL-12"""
    assert expanded("v: 3") == {"v": 3}
    many = "\n".join(f"v{i}: {{{{object.n + {i}}}}}" for i in range(300))
    assert expanded(many) == {f"v{i}": 7 + i for i in range(300)}


def test_a_missing_field_is_an_error_unless_guarded():
    """4381-TPL-13, 4381-TPL-14: the error names line, placeholder and what is missing."""
    said = failure("v: 1\nw: {{ object.spec.absent }}")
    assert said == "placeholder {{object.spec.absent}} in line 4: no such key: absent"
    assert value("has(object.spec.absent) ? object.spec.absent : 2") == 2
    assert value("object.spec.?absent.orValue(3)") == 3


@pytest.mark.parametrize(
    ("placeholder", "said"),
    [
        ("{{object.}}", "Syntax error"),
        ("{{}}", "Syntax error"),
        ("{{1 +}}", "Syntax error"),
        ("{{object", "'}}' is missing"),
        ("{{'a}}", "token recognition error"),
        ("{{a}b}}", "single '}'"),
        ("{{1 + 'a'}}", "no matching overload"),
    ],
)
def test_a_bad_placeholder_is_refused_with_its_line(placeholder, said):
    """4381-TPL-15"""
    wrong = refusal(f"{HEAD}w: 1\nv: {placeholder}\n")
    assert wrong.kind == "invalid"
    assert "in line 4" in wrong.message
    assert said in wrong.message


def test_the_type_that_is_named_plays_no_part():
    """4381-TPL-16, 4381-TPL-22: and it may be computed."""
    text = "kind: {{object.kind}}\napiVersion: nobody/{{'v1'}}"
    assert compile_template(text).expand({"kind": "Nothing"}) == {
        "kind": "Nothing",
        "apiVersion": "nobody/v1",
    }


def test_a_template_that_may_cost_too_much_is_refused_and_a_stored_one_stops():
    """4381-TPL-17, 4381-SEC-06: loops in loops; the placeholders pay together."""
    dear = HEAD + "v: {{object.spec.list.all(x, object.spec.list.all(y, x == y))}}"
    wrong = refusal(dear)
    assert wrong.kind == "forbidden"
    assert "in line 3" in wrong.message
    with pytest.raises(EvaluationError, match=str(CostExceeded())):
        compile_template(dear, stored=True).expand({"spec": {"list": [1] * 2000}})
    one = "{{object.spec.list.map(x, x)}}"
    compile_template(f"{HEAD}v: {one}")
    assert refusal(HEAD + "\n".join(f"v{i}: {one}" for i in range(9))).kind == "forbidden"


def test_whoever_cannot_wait_says_how_much_it_may_cost():
    """TEMPLATE4: what would cost more is told apart from what no template may cost, and from a mistake."""
    template = compile_template(HEAD + "v: {{object.spec.list.all(x, x > 0)}}")
    long = {"spec": {"list": [1] * 2000}}
    with pytest.raises(CostExceeded):
        template.expand(long, most=1000)
    assert template.expand(long, most=100_000) == template.expand(long)
    with pytest.raises(EvaluationError, match="no such key") as wrong:
        template.expand({"spec": {}}, most=1000)
    assert not isinstance(wrong.value, CostExceeded)


def test_a_long_template_is_refused():
    """4381-VAL-03"""
    fits = f"{HEAD}v: {'a' * (10 * 1024 - len(HEAD) - 3)}"
    compile_template(fits)
    assert refusal(fits + "a").kind == "too_long"
    compile_template(fits + "a", stored=True)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("quantity('1Gi').asInteger()", 2**30),
        ("semver('1.2.3').major()", 1),
        ("object.spec.list.size()", 2),
        ("object.spec.text.find('[0-9]+')", "1"),
        ("object.kind.lowerAscii()", "claimparameters"),
        ("'%d of %s'.format([object.n, object.kind])", "7 of ClaimParameters"),
        ("[object.n, object.spec.n].max()", 7),
        ("url('https://a.example.com/b').getHost()", "a.example.com"),
        ("ip('10.0.0.1').family()", 4),
        ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", True),
        ("format.dns1123Label().validate('no dots').hasValue()", True),
        ("object.spec.env.transformList(k, v, v)", ["B"]),
    ],
)
def test_the_functions_are_those_of_selectors(expression, found):
    """4381-TPL-18: one of each library, on parts whose type nobody declared."""
    assert value(expression) == found


def test_the_result_follows_from_template_and_object_alone():
    """4381-TPL-20: and the object is left as it was, whatever happens to the result."""
    template = compile_template(HEAD + "v: {{object.spec}}")
    before = json.dumps(OBJECT)
    first = template.expand(OBJECT)
    first["v"]["list"].append(3)
    first["v"]["env"]["A"] = "changed"
    assert json.dumps(OBJECT) == before
    assert template.expand(OBJECT)["v"] == OBJECT["spec"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "mapping"),
        ("a", "mapping"),
        ("- a", "mapping"),
        ("kind: a", "must say apiVersion"),
        ("apiVersion: a", "must say kind"),
        (f"{HEAD}---\n{HEAD}", "one YAML document"),
        (f"{HEAD}kind: b", "'kind' twice"),
        (f"{HEAD}a: [", "not valid YAML"),
        (f"{HEAD}v: *a", "alias"),
        (f"{HEAD}v: &a [*a]", "alias"),
        (f"{HEAD}v: .inf", "JSON cannot express"),
        (f"{HEAD}[a]: b", "not a scalar"),
        (f"{HEAD}<<: [a]", "merges"),
        (f"{HEAD}v: \ud800", "not valid YAML"),
    ],
)
def test_what_can_never_expand_is_refused_at_once(text, said):
    """4381-TPL-21"""
    assert said in refusal(text).message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: {{null}}\napiVersion: a", "no kind"),
        ("kind: a\napiVersion: {{''}}", "no apiVersion"),
        ("kind: {{1}}\napiVersion: a", "kind of the expansion is not text"),
        ("{{object.spec.list}}", "not a mapping"),
        ("{{object.spec}}", "no kind"),
    ],
)
def test_what_turns_out_to_be_no_parameters_is_an_error(text, said):
    """4381-TPL-21: where only the values show it."""
    with pytest.raises(EvaluationError, match=said):
        compile_template(text).expand(OBJECT)


@pytest.mark.parametrize(
    "body",
    [
        "{{object.kind}}: 1",
        '"a{{object.kind}}": 1',
        "v: {a: 1, {{object.kind}}: 1}",
        "? {{object.kind}}\n: 1",
        "v: &{{object.kind}} 1",
        "v: !{{object.kind}} 1",
    ],
)
def test_a_placeholder_names_nothing(body):
    """4381-TPL-23"""
    assert "may be a value only, not a key" in refusal(HEAD + body).message


def test_a_value_is_not_merged_into_a_mapping():
    """TEMPLATE3: `<<` would let a user's object say what the class says."""
    assert "merges" in refusal(HEAD + "<<: {{object.spec.env}}").message
    assert expanded("base: &b {x: {{object.n}}}\nv: {<<: *b, y: 1}")["v"] == {"x": 7, "y": 1}


def test_json_templates():
    """4381-TPL-24"""
    text = '{"kind": "P", "apiVersion": "a/v1",\n\t"v":'
    text += ' {"w": {{object.n}}, "x": "is {{object.n}}", "y": [{{ {"a": {}} }}]}}'
    assert compile_template(text).expand(OBJECT)["v"] == {"w": 7, "x": "is 7", "y": [{"a": {}}]}


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("b'abc'", "YWJj"),
        ("timestamp('2024-01-02T03:04:05Z')", "2024-01-02T03:04:05Z"),
        ("duration('90m')", "5400s"),
        ("[duration('1s')]", ["1s"]),
    ],
)
def test_values_that_json_has_not_become_text(expression, found):
    """4381-TPL-25"""
    assert value(expression) == found


@pytest.mark.parametrize(
    "expression",
    [
        "quantity('1')",
        "semver('1.0.0')",
        "type(1)",
        "optional.none()",
        "{1: 2}",
        "{true: 2}",
        "1.0 / 0.0",
        "ip('::1')",
    ],
)
def test_other_values_are_errors(expression):
    """4381-TPL-25"""
    assert f"placeholder {{{{{expression}}}}} in line 3" in failure(f"v: {{{{{expression}}}}}")


def test_numbers_beyond_64_bits_are_errors():
    """4381-CNT-11: nothing is rounded."""
    assert value("object.x", {"x": 2**64 - 1}) == 2**64 - 1
    assert "64 bits" in failure("v: {{object.x}}", {"x": 2**64})


def test_an_expansion_is_bounded_however_it_grows():
    """TEMPLATE4: through many placeholders, through aliases, through deep values."""
    large = {"x": "a" * 1000}
    assert "more than" in failure("\n".join(f"v{i}: {{{{object.x}}}}" for i in range(100)), large)
    tower = "".join(f"v{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
    assert str(EXPANDED_MAX) in failure("v0: &a0 [{{object.n}}]\n" + tower)
    deep = None
    for _ in range(150):
        deep = [deep]
    assert "nested deeper" in failure("v: {{object.x}}", {"x": deep})
    assert "nested deeper" in refusal(HEAD + "v: " + "[" * 150 + "]" * 150).message


def test_a_text_that_spells_a_mark_is_no_placeholder():
    """Marks are words that the text has not; with escapes a text can spell any."""
    assert expanded("v: hole0z\nw: {{object.n}}") == {"v": "hole0z", "w": 7}
    assert "cannot be told" in refusal(HEAD + 'v: "\\x68ole0z"\nw: {{object.n}}').message


# -- whatever is written


TEXTS = st.lists(
    st.sampled_from(
        ["{{", "}}", "{", "}", ":", " ", "\n", "\n  ", "-", "'", '"', "#",
         "object", ".", "spec", "n", "a", "1",
         "[", "]",
         ",", "&a", "*a", "|", ">", "!!str ",
         "?", "<<", "//", "\\", "\t", "{{object.n}}", "{{object.spec.text}}",
         "é",
         "kind: a\n", "apiVersion: b\n", "---\n", "\x00", "\ud800"]
    ),
    max_size=24,
).map("".join)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(TEXTS)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_is_a_template_or_is_refused(text):
    """TEMPLATE1, TEMPLATE2: nothing else comes out."""
    for whole in (text, HEAD + text, f"{HEAD}v: {text}"):
        with suppress(CompileError, EvaluationError):
            json.dumps(compile_template(whole).expand(OBJECT))


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_any_value_arrives_as_it_is_and_changes_nothing_else(thing):
    """TEMPLATE3, 4381-TPL-06, 4381-TPL-08: in plain values, and as text in quotes and in blocks."""
    template = compile_template(
        HEAD
        + 'v: {{object.x}}\nq: "<{{object.x}}>"\nb: |\n  <{{object.x}}>\n'
        + "l: [{{object.x}}, {a: {{object.x}}}]\nw: 1"
    )
    made = template.expand({"x": thing})
    assert list(made) == ["kind", "apiVersion", "v", "q", "b", "l", "w"]
    assert (
        json.dumps(made["v"])
        == json.dumps(made["l"][0])
        == json.dumps(made["l"][1]["a"])
        == json.dumps(thing)
    )
    text = made["q"].removeprefix("<").removesuffix(">")
    assert made["b"] == f"<{text}>\n"
    if isinstance(thing, str):
        assert text == thing
    assert made["w"] == 1
