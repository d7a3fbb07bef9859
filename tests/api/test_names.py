"""How things may be called, and how long ago is written."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api import age, names

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize("name", ["a", "web-0", "0", "a" * 63])
def test_labels(name):
    assert names.label_name(name) == []


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a.b", "a_b", "é", "a\n", "a" * 64])
def test_what_is_no_label(name):
    assert len(names.label_name(name)) == 1


def test_a_long_name_of_the_wrong_shape_is_wrong_twice():
    assert len(names.subdomain("A" * 254)) == 2
    assert names.subdomain("a.b-c.example.com") == []
    assert names.subdomain("a..b") != []


@pytest.mark.parametrize("key", ["a", "A_b.c-1", "example.com/a", "a/" + "b" * 63])
def test_qualified_names(key):
    assert names.qualified(key) == []


@pytest.mark.parametrize("key", ["", "/a", "a/", "a/b/c", "Example.com/a", "a b", "a/" + "b" * 64, "a\n"])
def test_what_is_not_qualified(key):
    assert names.qualified(key) != []


def test_label_values_may_be_empty_and_end_with_a_letter_or_digit():
    assert names.label_value("") == names.label_value("a.B_c-1") == []
    assert names.label_value("a-") != []
    assert names.label_value("a b") != []


def test_names_of_keys_variables_and_ports():
    assert names.config_key("a.txt") == []
    assert [bool(names.config_key(key)) for key in (".", "..", "..a", "a/b", "")] == [True] * 5
    assert names.env_name("anything printable!") == []
    assert [bool(names.env_name(name)) for name in ("", "a=b", "a\n", "é")] == [True] * 4
    assert names.port_name("http-2") == []
    assert [bool(names.port_name(n)) for n in ("", "80", "-a", "a-", "a--b", "A", "a" * 16)] == [True] * 7
    assert names.port_number(65535) == []
    assert names.port_number(0) != []
    assert names.path_segment("system:node") == []
    assert [bool(names.path_segment(n)) for n in (".", "..", "a/b", "a%b")] == [True] * 4


@given(st.text(max_size=80))
def test_every_check_answers_any_text(text):
    for check in (
        names.label_name, names.label_1035, names.subdomain, names.qualified, names.label_value,
        names.config_key, names.env_name, names.c_identifier, names.port_name,
        names.path_segment, names.ip_address,
    ):  # fmt: skip
        assert all(isinstance(wrong, str) for wrong in check(text))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (190, "3m10s"), (599, "9m59s"),
        (600, "10m"), (10799, "179m"), (10800, "3h"), (11000, "3h3m"), (8 * 3600, "8h"), (47 * 3600, "47h"),
        (48 * 3600, "2d"), (49 * 3600, "2d1h"), (8 * 86400, "8d"), (729 * 86400, "729d"), (730 * 86400, "2y"),
        (741 * 86400, "2y11d"), (8 * 365 * 86400, "8y"),
    ],
)  # fmt: skip
def test_durations_grow_coarser(seconds, shown):
    assert age.human_duration(seconds) == shown


def test_timestamps():
    assert age.timestamp(NOW) == "2026-11-15T08:00:00Z"
    assert age.micro_timestamp(NOW) == "2026-11-15T08:00:00.000000Z"
    assert age.moment("2026-11-15T09:00:00+01:00") == NOW
    assert age.moment("") is None
    assert age.moment("yesterday") is None
    assert age.since("2026-11-15T07:58:00Z", NOW) == "2m"
    assert age.since(None, NOW) == "<unknown>"


@given(st.integers(0, 10**9))
def test_a_moment_survives_being_written(seconds):
    moment = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert age.moment(age.timestamp(moment)) == moment
    assert age.moment(age.micro_timestamp(moment)) == moment
