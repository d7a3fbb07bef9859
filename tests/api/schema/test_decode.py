"""Bodies that clients send, kind and hostile."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.errors import BadRequest
from allot.api.schema import DEPTH_MAX, decode, decode_value, decode_yaml


def test_a_body_is_an_object():
    assert decode(b'{"a": [1, 2.5, null]}').fields == {"a": [1, 2.5, None]}
    for other in (b"[]", b"1", b"null", b'"x"'):
        with pytest.raises(BadRequest):
            decode(other)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b'{"a":1}x', b'{"a":NaN}', b'{"a":Infinity}', b'{"a":1e3000000}',
        b'{"a":' + b"9" * 100_000 + b"}", b'{"a":"\xff"}', b'{"a":"\\ud800"}', b"\x00",
        b'{"a":' * 100_000, b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_not_json_is_refused_at_once(body):
    started = time.process_time()
    for read in (decode, decode_value):
        with pytest.raises(BadRequest):
            read(body)
    assert time.process_time() - started < 0.5


def nested(depth, opening=b'{"a":', closing=b"}"):
    return opening * depth + b"1" + closing * depth


def test_depth_is_bounded():
    assert decode(nested(DEPTH_MAX)).fields
    for body in (nested(DEPTH_MAX + 1), b'{"a":' + nested(DEPTH_MAX, b"[", b"]") + b"}"):
        with pytest.raises(BadRequest, match="deeper"):
            decode(body)


def test_many_brackets_side_by_side_are_not_deep():
    assert len(decode(json.dumps({"a": [{}] * 10_000}).encode()).fields["a"]) == 10_000


def test_a_long_integer_in_a_free_field_is_kept_to_the_last_digit():
    assert decode(b'{"a": 99999999999999999999999}').fields == {"a": 99999999999999999999999}


def test_a_key_given_twice_is_named_by_its_path():
    body = b'{"spec":{"a":1,"a":2,"l":[{"b":1},{"b":{},"b":3}]},"spec2":"\\"a\\":","kind":"x","kind":"y"}'
    decoded = decode(body)
    assert decoded.duplicates == ("spec.a", "spec.l[1].b", "kind")
    assert decoded.fields["spec"]["a"] == 2


def test_duplicates_are_not_looked_for_when_nobody_asks():
    assert decode(b'{"a":1,"a":2}', find_duplicates=False) == ({"a": 2}, ())
    assert decode_yaml(b"a: 1\na: 2", find_duplicates=False) == ({"a": 2}, ())


def test_escaped_quotes_do_not_hide_a_duplicate():
    assert decode(b'{"a":1,"a":"\\u0022\\u0022"}').duplicates == ("a",)
    assert decode(b'{"a":"\\u0022"}') == ({"a": '"'}, ())


json_objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.integers(-5, 5) | st.text(max_size=5), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    ),
    max_size=5,
)


@given(json_objects, st.sampled_from([None, 1]), st.booleans())
def test_ordinary_objects_have_no_duplicates(value, indent, ascii_only):
    body = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert decode(body) == (value, ())


@given(json_objects, st.text(max_size=3), st.integers(0, 3))
def test_a_planted_duplicate_is_always_found(value, key, other):
    inner = json.dumps(value)
    body = f'{{"x": {inner}, "list": [{{{json.dumps(key)}: {inner}, {json.dumps(key)}: {other}}}]}}'
    assert decode(body.encode()).duplicates == (f"list[0].{key}",)


# --- YAML -----------------------------------------------------------------------------------


def test_yaml_reads_as_kubernetes_tools_read_it():
    body = b"""
    text: hello        # a comment
    quoted: "1"
    number: 12
    octal: 0644
    hex: 0x1F
    scientific: 1e3
    float: 2.5
    on: yes
    nothing: ~
    date: 2026-01-01
    time: 2026-01-01T00:00:00Z
    base60: 1:30
    1: one
    block: |
      two
      lines
    list: [a, {b: c}]
    """
    assert decode_yaml(body).fields == {
        "text": "hello", "quoted": "1", "number": 12, "octal": 0o644, "hex": 31, "scientific": 1000.0,
        "float": 2.5, "true": True, "nothing": None, "date": "2026-01-01", "time": "2026-01-01T00:00:00Z",
        "base60": "1:30", "1": "one", "block": "two\nlines\n", "list": ["a", {"b": "c"}],
    }  # fmt: skip


def test_json_is_yaml():
    assert decode_yaml(b' {"a": 1, "a": "\\u00e9"}') == ({"a": "é"}, ("a",))
    assert decode_yaml(b"{a: 1}").fields == {"a": 1}


def test_aliases_are_copies_and_merges_fill_in():
    fields = decode_yaml(b"base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: *b\n").fields
    assert fields["one"] == {"x": 1, "y": 3}
    assert fields["two"] == fields["base"]
    assert fields["two"] is not fields["base"]


def test_duplicate_keys_in_yaml_are_named():
    assert decode_yaml(b"a: {b: 1, b: 2}\n").duplicates == ("a.b",)


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (new, new, b",".join([b"*%c" % old] * 10))
    for old, new in zip(b"abcdefgh", b"bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "body",
    [
        BOMB, b"a: &a [*a]", b"a: *nobody", b"a: 1e999999", b"a: .inf", b"a: [", b"\xff\xfe\xff", b"",
        b"a: 1\n---\nb: 2\n", b"- a", b"{[a]: b}", b"[" * 5000, b"{a: " * 5000, b"<<: 3",
        b"a: !!python/object:os.system x\nb: [", b"a: " + b"9" * 1_000_000 + b"e9\nb: [",
    ],
)  # fmt: skip
def test_hostile_yaml_is_refused_at_once(body):
    started = time.process_time()
    with pytest.raises(BadRequest):
        decode_yaml(body)
    assert time.process_time() - started < 2


def test_tags_do_not_run_anything():
    assert decode_yaml(b"a: !!python/object/apply:os.getcwd []\n").fields == {"a": []}


@given(st.binary(max_size=60))
def test_any_bytes_get_an_answer(body):
    for read in (decode, decode_yaml):
        try:
            read(body)
        except BadRequest as error:
            assert error.message
