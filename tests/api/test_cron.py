"""Schedules, against a calendar that is looked through minute by minute."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from allot.api import cron

START = datetime(2026, 3, 27, 10, 30, 20, tzinfo=UTC)


def due(text: str, count: int = 3, start: datetime = START, zone: str = "UTC") -> list[str]:
    schedule = cron.parse(text, cron.time_zone(zone))
    found: list[str] = []
    at: datetime | None = start
    while at is not None and len(found) < count:
        at = schedule.next_after(at)
        if at is not None:
            found.append(at.isoformat()[:16])
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("*/15 * * * *", ["2026-03-27T10:45", "2026-03-27T11:00", "2026-03-27T11:15"]),
        ("5/20 10 * * *", ["2026-03-27T10:45", "2026-03-28T10:05", "2026-03-28T10:25"]),
        ("0 9-17/4 * * mon-fri", ["2026-03-27T13:00", "2026-03-27T17:00", "2026-03-30T09:00"]),
        ("0 0 1,15 * *", ["2026-04-01T00:00", "2026-04-15T00:00", "2026-05-01T00:00"]),
        ("0 0 13 * FRI", ["2026-04-03T00:00", "2026-04-10T00:00", "2026-04-13T00:00"]),
        ("0 0 13 * ?", ["2026-04-13T00:00", "2026-05-13T00:00", "2026-06-13T00:00"]),
        ("0 0 29 feb *", ["2028-02-29T00:00"]),
        ("0 0 31 2 *", []),
        ("@yearly", ["2027-01-01T00:00", "2028-01-01T00:00", "2029-01-01T00:00"]),
        ("@weekly", ["2026-03-29T00:00", "2026-04-05T00:00", "2026-04-12T00:00"]),
        ("@every 1h30m", ["2026-03-27T12:00", "2026-03-27T13:30", "2026-03-27T15:00"]),
    ],
)
def test_a_schedule_is_due_when_it_says(text, wanted):
    assert due(text, max(len(wanted), 1)) == wanted


def test_an_hour_that_the_clock_skips_never_comes_and_one_that_it_shows_twice_comes_twice():
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert due("30 2 * * *", 2, spring, "Europe/Berlin") == ["2026-03-30T00:30", "2026-03-31T00:30"]
    autumn = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert due("30 2 * * *", 2, autumn, "Europe/Berlin") == ["2026-10-25T00:30", "2026-10-25T01:30"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("* * * *", "expected 5 fields, found 4"),
        ("60 * * * *", "minute '60': 60 is not between 0 and 59"),
        ("* * * * 7", "day of week '7'"),
        ("* * 0 * *", "day of month '0'"),
        ("*/0 * * * *", "a step is at least 1"),
        ("5-3 * * * *", "begins after it ends"),
        ("a * * * *", "'a' is not a number"),
        ("* * * * ,", "'' is not a number"),
        ("@often", "none of"),
        ("@every soon", "not a duration"),
        ("@every 99999999999h", "too long"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_part_that_is_wrong(text, part):
    with pytest.raises(cron.BadSchedule, match=part.replace("(", r"\(").replace("*", r"\*")):
        cron.parse(text)


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "", "/etc/localtime"])
def test_an_unknown_zone_is_refused(name):
    with pytest.raises(cron.UnknownZone):
        cron.time_zone(name)


def _part(least: int, most: int) -> st.SearchStrategy[str]:
    number = st.integers(least, most)
    spans = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    steps = st.tuples(spans | st.just("*") | number.map(str), st.integers(1, 7)).map(
        lambda two: f"{two[0]}/{two[1]}"
    )
    one = st.just("*") | number.map(str) | spans | steps
    return st.lists(one, min_size=1, max_size=2).map(",".join)


SCHEDULES = st.tuples(_part(0, 59), _part(0, 23), _part(1, 31), _part(1, 12), _part(0, 6)).map(" ".join)
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu"]
)


def asks_for(field: str, value: int, least: int, most: int) -> bool:
    """What one field says of one value, read anew."""
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        low = least if first == "*" else int(first)
        high = int(last) if dash else most if first == "*" or step else low
        if low <= value <= high and (value - low) % int(step or 1) == 0:
            return True
    return False


def is_due(text: str, at: datetime, zone: str) -> bool:
    shown = at.astimezone(UTC if zone == "UTC" else ZoneInfo(zone))
    minute, hour, day, month, weekday = text.split()
    if not (asks_for(minute, shown.minute, 0, 59) and asks_for(hour, shown.hour, 0, 23)):
        return False
    if not asks_for(month, shown.month, 1, 12):
        return False
    on_day, on_weekday = asks_for(day, shown.day, 1, 31), asks_for(weekday, shown.isoweekday() % 7, 0, 6)
    open_days = [any(one in ("*", "*/1") for one in part.split(",")) for part in (day, weekday)]
    return on_day and on_weekday if any(open_days) else on_day or on_weekday


@given(SCHEDULES, ZONES, st.integers(0, 525_600))
@example("30 2 * * *", "Europe/Berlin", 126_000)
@example("0 0 * * *", "America/Sao_Paulo", 440_000)
def test_no_minute_is_missed_and_none_invented(text, zone, minutes):
    """Two days, minute by minute."""
    start = datetime(2018, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    schedule = cron.parse(text, cron.time_zone(zone))
    wanted = [at for n in range(1, 2 * 1440) if is_due(text, at := start + timedelta(minutes=n), zone)]
    found, at = [], schedule.next_after(start)
    while at is not None and at < start + timedelta(days=2):
        found.append(at)
        at = schedule.next_after(at)
    assert found == wanted
    end = start + timedelta(days=2) - timedelta(minutes=1)
    assert schedule.last_until(end, start) == (wanted[-1] if wanted else None)
