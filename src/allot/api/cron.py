"""When a schedule in cron's notation is due.

    minute hour day-of-month month day-of-week      lists, ranges, steps, names of months and days
    @hourly @daily @midnight @weekly @monthly @yearly @annually
    @every 1h30m                                    from wherever the counting begins

A schedule is due at every whole minute at which the clock of its time zone shows what it asks for: a time
that a clock skips in spring never comes, and one that it shows twice in autumn comes twice. Where days of the
month and of the week are both limited, either suffices.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

HORIZON: Final = timedelta(days=5 * 366)
"""What is not due until then never is: there is no 30th of February."""

_MINUTE = timedelta(minutes=1)

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class BadSchedule(ValueError):
    """The text is no schedule; the message says what is wrong with it."""


class UnknownZone(ValueError):
    """No such time zone is known on this machine."""


class Schedule(Protocol):
    def next_after(self, moment: datetime) -> datetime | None:
        """The first time it is due after a moment, in UTC; None if never."""
        ...

    def last_until(self, moment: datetime, after: datetime) -> datetime | None:
        """The last time it is due up to a moment, that moment included, and after another one."""
        ...


def parse(text: str, zone: tzinfo = UTC) -> Schedule:
    """Raises BadSchedule."""
    if text.startswith("@every "):
        return _Every(_duration(text.removeprefix("@every ").strip()))
    if text.startswith("@") and text not in _MACROS:
        raise BadSchedule(f"{text!r} is none of {', '.join(_MACROS)} and @every")
    parts = _MACROS.get(text, text).split()
    if len(parts) != len(_FIELDS):
        raise BadSchedule(f"expected {len(_FIELDS)} fields, found {len(parts)}")
    minute, hour, day, month, weekday = (
        field.values(part) for field, part in zip(_FIELDS, parts, strict=True)
    )
    either = not (_is_star(parts[2]) or _is_star(parts[4]))
    return _Calendar(minute, hour, day, month, weekday, either, zone)


def time_zone(name: str) -> tzinfo:
    """Raises UnknownZone."""
    if name in ("UTC", "Etc/UTC"):
        return UTC  # also where no data on time zones is installed
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone(f"unknown time zone {name}") from None


# -- the calendar -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Calendar:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    either_day: bool
    zone: tzinfo

    def next_after(self, moment: datetime) -> datetime | None:
        at = moment.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        end = at + HORIZON
        while at <= end:
            shown = at.astimezone(self.zone)
            if shown.month not in self.months or not self._is_day(shown):
                at = max(self._next_midnight(shown), at + _MINUTE)
            elif shown.hour not in self.hours:
                at += timedelta(minutes=60 - shown.minute)
            elif shown.minute not in self.minutes:
                at += _MINUTE
            else:
                return at
        return None

    def last_until(self, moment: datetime, after: datetime) -> datetime | None:
        """Looked for in ever longer times before the moment: what is due often is found near it."""
        for back in (timedelta(hours=1), timedelta(days=1), timedelta(days=32), HORIZON):
            start = max(after, moment - back)
            found, due = None, self.next_after(start)
            while due is not None and due <= moment:
                found, due = due, self.next_after(due)
            if found is not None or start == after:
                return found
        return None

    def _is_day(self, shown: datetime) -> bool:
        of_month, of_week = shown.day in self.days, shown.isoweekday() % 7 in self.weekdays
        return (of_month or of_week) if self.either_day else (of_month and of_week)

    def _next_midnight(self, shown: datetime) -> datetime:
        following = shown.date() + timedelta(days=1)
        if following.month not in self.months:  # no day of it will do
            while following.day != 1:
                following += timedelta(days=1)
        return datetime.combine(following, time(), self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()

    def values(self, text: str) -> frozenset[int]:
        return frozenset(value for part in text.split(",") for value in self._range(part))

    def _range(self, text: str) -> range:
        span, slash, step_text = text.partition("/")
        step = self._number(step_text, text) if slash else 1
        if step < 1:
            raise BadSchedule(f"{self.name} {text!r}: a step is at least 1")
        first, dash, last = span.partition("-")
        if first in ("*", "?") and not dash:
            return range(self.least, self.most + 1, step)
        start = self._value(first, text)
        end = self._value(last, text) if dash else self.most if slash else start
        if start > end:
            raise BadSchedule(f"{self.name} {text!r}: begins after it ends")
        return range(start, end + 1, step)

    def _value(self, text: str, whole: str) -> int:
        if text.lower() in self.words:
            return self.words.index(text.lower()) + self.least
        value = self._number(text, whole)
        if not self.least <= value <= self.most:
            raise BadSchedule(f"{self.name} {whole!r}: {value} is not between {self.least} and {self.most}")
        return value

    def _number(self, text: str, whole: str) -> int:
        if not re.fullmatch(r"[0-9]{1,4}", text):
            raise BadSchedule(f"{self.name} {whole!r}: {text!r} is not a number")
        return int(text)


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _DAYS),
)


def _is_star(text: str) -> bool:
    return any(part.removesuffix("/1") in ("*", "?") for part in text.split(","))


# -- every so often ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Every:
    pause: timedelta

    def next_after(self, moment: datetime) -> datetime | None:
        try:
            return moment.astimezone(UTC).replace(microsecond=0) + self.pause
        except OverflowError:
            return None

    def last_until(self, moment: datetime, after: datetime) -> datetime | None:
        start = after.astimezone(UTC).replace(microsecond=0)
        passed = (moment - start) // self.pause
        return start + passed * self.pause if passed > 0 else None


_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PIECE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(h|ms|m|s|us|µs|ns)")


def _duration(text: str) -> timedelta:
    """Whole seconds, one at least."""
    if not re.fullmatch(rf"(?:{_PIECE.pattern})+", text):
        raise BadSchedule(f"@every {text!r}: not a duration such as 1h30m")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))
    try:
        return timedelta(seconds=max(1, int(seconds)))
    except OverflowError:
        raise BadSchedule(f"@every {text!r}: too long") from None
