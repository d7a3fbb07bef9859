"""Bodies that clients send, kind and hostile."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.errors import BadRequest
from allot.api.schema import (
    DEPTH_MAX,
    KEY_LENGTH_MAX,
    NOTED_MAX,
    PATH_LENGTH_MAX,
    VALUES_MAX,
    decode,
    decode_value,
    decode_yaml,
)


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
    assert decode(b'{"a":1,"a":2}', find_duplicates=False).duplicates == ()
    assert decode_yaml(b"a: 1\na: 2", find_duplicates=False).duplicates == ()


def test_escaped_quotes_do_not_hide_a_duplicate():
    assert decode(b'{"a":1,"a":"\\u0022\\u0022"}').duplicates == ("a",)
    assert decode(b'{"a":"\\u0022"}')[:2] == ({"a": '"'}, ())


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
    assert decode(body)[:2] == (value, ())


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
    assert decode_yaml(b' {"a": 1, "a": "\\u00e9"}')[:2] == ({"a": "é"}, ("a",))
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


# Work grows with the size of the body, not with what it says: each of these took seconds to minutes.


def seconds(read, body):
    started = time.process_time()
    try:
        read(body)
    except BadRequest as refused:
        assert len(refused.message) < 1000
    return time.process_time() - started


def merges(count):
    """One mapping that merges another `count` times, each of which says something new."""
    anchors = "".join(f"a{i}: &a{i} {{k{i}: 1}}\n" for i in range(count))
    return f"{anchors}all:\n  <<: [{', '.join(f'*a{i}' for i in range(count))}]\n".encode()


LONG = "k" * (KEY_LENGTH_MAX - 1)
HOSTILE = {
    "merges": merges(30_000),
    "merges of one anchor": b"a: &a {x: 1}\nb: {<<: [" + b", ".join([b"*a"] * 90_000) + b"]}\n",
    "a long key over many members": json.dumps({LONG: [{"a": i} for i in range(90_000)]}).encode(),
    "keys given twice below a long key": (
        b'{"%b": [%b]}' % (LONG.encode(), b",".join([b'{"a":1,"a":2}'] * 60_000))
    ),
    "many keys given twice": b"{" + b",".join([b'"a":1'] * 400_000) + b"}",
    "long keys inside each other": (b'{"%b":' % LONG.encode()) * 150 + b'{"a":1,"a":1}' + b"}" * 150,
    "an alias of a long text": (
        b"a: &a " + b"x" * 1_000_000 + b"\nb: [" + b", ".join([b"*a"] * 100_000) + b"]\n"
    ),
    "an alias as a key": b"a: &a "
    + b"x" * 10_000
    + b"\n"
    + b"".join(b"? [*a]\n: 1\n" for _ in range(50_000)),
    "very many values": b'{"a":[' + b"[]," * 900_000 + b"[]]}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_with_the_size_of_the_body(name):
    body = HOSTILE[name]
    assert len(body) <= 3 * 1024 * 1024
    assert seconds(decode_yaml, body) < 8
    if body[:1] == b"{":
        assert seconds(decode, body) < 2


def test_merges_mean_what_they_meant():
    """What a mapping says itself comes before what it merges; of those, the first."""
    body = b"a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], z: 3}\nd: {<<: *b, y: 4}\n"
    fields = decode_yaml(body).fields
    assert fields["c"] == {"x": 1, "y": 1, "z": 3}
    assert fields["d"] == {"y": 4, "z": 2}


def test_a_key_has_a_bound():
    for key, fits in (("k" * KEY_LENGTH_MAX, True), ("k" * (KEY_LENGTH_MAX + 1), False)):
        for read, body in (
            (decode, json.dumps({"a": [{key: 1}]}).encode()),
            (decode_value, json.dumps([{key: 1}]).encode()),
            (decode_yaml, f"a:\n- ? {key}\n  : 1\n".encode()),
        ):
            if fits:
                read(body)
            else:
                with pytest.raises(BadRequest, match=f"a key of {KEY_LENGTH_MAX + 1} characters"):
                    read(body)


def test_values_have_a_bound():
    for count, fits in ((VALUES_MAX - 2, True), (VALUES_MAX - 1, False)):
        body = b'{"a":[' + b",".join([b"1"] * count) + b"]}"
        if fits:
            assert len(decode(body).fields["a"]) == count
        else:
            with pytest.raises(BadRequest, match=f"more than {VALUES_MAX} values"):
                decode(body)


def test_paths_are_cut_and_only_the_first_are_named():
    body = b'{"%b":{%b}}' % (b"x" * 5_000, b",".join(b'"k%d":1,"k%d":1' % (i, i) for i in range(500)))
    duplicates = decode(body).duplicates
    assert len(duplicates) == NOTED_MAX
    assert all(len(path) <= PATH_LENGTH_MAX + 3 for path in duplicates)
    assert len(decode_yaml(b"a: 1\n" * 500).duplicates) == NOTED_MAX
