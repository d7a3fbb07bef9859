"""Times as objects carry them."""

from datetime import UTC, datetime, timedelta, timezone

from allot.api import age

NOON = datetime(2026, 5, 17, 12, 0, 0, tzinfo=UTC)


def test_the_last_microsecond_of_a_second_belongs_to_it_and_the_next_to_the_next():
    last = NOON + timedelta(microseconds=999_999)
    assert age.timestamp(NOON) == age.timestamp(last) == "2026-05-17T12:00:00Z"
    assert age.timestamp(last + timedelta(microseconds=1)) == "2026-05-17T12:00:01Z"


def test_a_second_that_was_written_last_answers_for_no_other():
    """Clocks go back, and the deadline of a deletion lies ahead of the time of its request."""
    moments = [NOON + timedelta(milliseconds=350 * step) for step in (0, 9, 1, 8, 2, 7, 0, 3000, 0)]
    assert [age.timestamp(one) for one in moments] == [one.strftime("%Y-%m-%dT%H:%M:%SZ") for one in moments]


def test_a_time_of_another_zone_is_written_in_utc():
    there = datetime(2026, 5, 17, 14, 0, 0, tzinfo=timezone(timedelta(hours=2)))
    assert age.timestamp(NOON) == age.timestamp(there) == "2026-05-17T12:00:00Z"
    late = datetime(2026, 5, 17, 12, 0, 0, tzinfo=timezone(timedelta(hours=2)))
    assert age.timestamp(late) == "2026-05-17T10:00:00Z"


def test_the_first_and_the_last_moment_can_be_written():
    for moment, text in ((datetime.min, "0001-01-01T00:00:00Z"), (datetime.max, "9999-12-31T23:59:59Z")):
        assert age.timestamp(moment.replace(tzinfo=UTC)) == text
