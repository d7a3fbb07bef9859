"""What people write after -l and --field-selector."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import errors
from allot.apiserver.requests.selectors import TERMS_MAX, parse_fields, parse_labels

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


keys, values = st.sampled_from("abc"), st.sampled_from(["", "1", "2", "x"])
terms = st.one_of(
    st.builds("{}={}".format, keys, values),
    st.builds("{}!={}".format, keys, values),
    st.builds("{} in ({},{})".format, keys, values, values),
    st.builds("{} notin ({})".format, keys, values),
    st.builds("{}>{}".format, keys, st.integers(0, 3)),
    st.builds("{}<{}".format, keys, st.integers(0, 3)),
    keys,
    st.builds("!{}".format, keys),
)


def accepts(term, labels):
    """What one term says, read anew."""
    for sign in (" notin ", " in ", "!=", "=", ">", "<"):
        key, found, rest = term.partition(sign)
        if not found:
            continue
        value, listed = labels.get(key), rest.strip("()").split(",")
        match sign.strip():
            case "=" | "in":
                return value in listed
            case "!=" | "notin":
                return value not in listed
            case _:
                if value is None or not value.isdigit():
                    return False
                return int(value) > int(rest) if sign == ">" else int(value) < int(rest)
    return term[1:] not in labels if term.startswith("!") else term in labels


@given(st.lists(terms, min_size=1, max_size=8), st.dictionaries(keys, values))
def test_a_selector_accepts_what_each_of_its_terms_accepts(terms, labels):
    assert parse_labels(",".join(terms)).accepts(labels) == all(accepts(term, labels) for term in terms)


@given(
    st.lists(st.tuples(keys, st.booleans(), values), max_size=6),
    st.fixed_dictionaries(dict.fromkeys("abc", values)),
)
def test_a_field_selector_accepts_what_each_of_its_terms_accepts(terms, fields):
    text = ",".join(f"{key}{'=' if equal else '!='}{value}" for key, equal, value in terms)
    expected = all((fields[key] == value) == equal for key, equal, value in terms)
    assert parse_fields(text).accepts(fields.__getitem__) == expected


def test_selectors_are_bounded_in_terms():
    for parse in (parse_labels, parse_fields):
        assert parse(",".join(["a=b"] * TERMS_MAX))
        with pytest.raises(errors.BadRequest, match=r"1001 terms; the limit is 1000"):
            parse(",".join(["a=b"] * (TERMS_MAX + 1)))
    assert parse_labels(f"a in ({','.join(str(n) for n in range(8000))})").accepts({"a": "7999"})


class Counting(dict):
    """Labels that count how often somebody looks."""

    looks = 0

    def get(self, *key):
        Counting.looks += 1
        return super().get(*key)

    def __contains__(self, key):
        Counting.looks += 1
        return super().__contains__(key)


@pytest.mark.parametrize("form", ["k{}", "!k{}", "k{}!=x", "k{} notin (x)", "k{}>1", "k!=v{}", "k=v{}"])
def test_asking_does_not_cost_the_terms(form):
    """A list asks once for each object: the terms, times the objects, are too many."""
    selector = parse_labels(",".join(form.format(number) for number in range(1000)))
    Counting.looks = 0
    for _ in range(100):
        selector.accepts(Counting({"k": "v", "k1": "2", "k2": "3"}))
    assert Counting.looks <= 500
