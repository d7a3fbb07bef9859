"""What people write after -l and --field-selector."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import errors
from allot.apiserver.selectors import parse_fields, parse_labels

LABELS = {"app": "web", "tier": "front", "size": "10"}


@pytest.mark.parametrize(
    "selector, accepts",
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("app=db", False),
        ("app", True),
        ("!app", False),
        ("!gone", True),
        ("gone!=x", True),
        ("app in (web, db)", True),
        ("app notin (web,db)", False),
        ("gone notin (a)", True),
        ("size>9", True),
        ("size>10", False),
        ("size<11", True),
        ("app>1", False),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("app in (web,db),!gone", True),
        ("example.com/name=", False),
    ],
)
def test_a_label_selector_accepts_what_it_says(selector, accepts):
    assert parse_labels(selector).accepts(LABELS) is accepts


@pytest.mark.parametrize(
    "selector", ["=x", "a=b=c", "a in (", "a in b", "a>x", "-bad=x", "a=" + "x" * 64, "a b"]
)
def test_a_selector_that_cannot_be_read_is_a_bad_request(selector):
    with pytest.raises(errors.BadRequest):
        parse_labels(selector)


def test_a_field_selector_knows_equality_only():
    selector = parse_fields("metadata.name=a,status.phase!=Running")
    assert selector.accepts({"metadata.name": "a", "status.phase": "Pending"}.__getitem__)
    assert not selector.accepts({"metadata.name": "a", "status.phase": "Running"}.__getitem__)
    assert selector.wanted("metadata.name") == "a"
    with pytest.raises(errors.BadRequest):
        parse_fields("metadata.name")


def test_a_backslash_lets_a_comma_be_part_of_a_value():
    selector = parse_fields(r"a=x\,y\=z\\,b=1")
    assert [(need.field, need.value) for need in selector.requirements] == [("a", "x,y=z\\"), ("b", "1")]


@given(st.text(max_size=40))
def test_no_text_breaks_a_parser(text):
    for parse in (parse_labels, parse_fields):
        try:
            parse(text)
        except errors.BadRequest as refused:
            assert refused.message
