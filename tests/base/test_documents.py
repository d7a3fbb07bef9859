"""Documents of files as plain values."""

import pytest

from allot.base import NoDocuments, documents
from allot.base.documents import VALUES_MAX


def test_what_json_has_not_becomes_text():
    found = documents("a: 2026-01-01\n1: b\n---\n---\n[x, null]\n")
    assert found == [{"a": "2026-01-01", "1": "b"}, ["x", None]]


def test_an_alias_is_a_copy():
    (found,) = documents("a: &x {b: [1]}\nc: *x\n")
    found["a"]["b"].append(2)
    assert found["c"] == {"b": [1]}


def test_what_unfolds_without_end_is_refused_at_once():
    """Ten lines that stand for ten thousand million values."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(NoDocuments, match=f"more than {VALUES_MAX} values"):
        documents("\n".join(lines))
    with pytest.raises(NoDocuments):
        documents("&a [*a]")


@pytest.mark.parametrize(
    "text", ["[", "a: b: c", "[" * 100_000, "!!python/object:os.system x", "? {a: b}\n: c", "\x00", "\udce1"]
)
def test_what_cannot_be_read_is_said_in_a_line(text):
    with pytest.raises(NoDocuments) as told:
        documents(text)
    assert "\n" not in str(told.value)
    assert str(told.value)
