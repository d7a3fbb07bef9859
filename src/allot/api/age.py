"""Timestamps as the API writes them, and durations as people read them.

`kubectl get` shows ages coarser the longer they are: `45s`, `3m10s`, `26h`, `4d3h`,
`2y11d`. The steps are upstream's, so that tables of both look alike.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY
_LONGEST_WITHIN_A_SECOND = timedelta(microseconds=999_999)


class _Second(NamedTuple):
    """A second that was written lately: every write of the API server says at least one time."""

    first: datetime
    last: datetime
    text: str


_written = _Second(datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC), "0001-01-01T00:00:00Z")


def timestamp(moment: datetime) -> str:
    """Whole seconds, as metadata.creationTimestamp is written."""
    global _written
    first, last, text = _written  # read at once: others may write another one meanwhile
    if moment.tzinfo is UTC and first <= moment <= last:
        return text
    moment = moment.astimezone(UTC)
    text = moment.isoformat(timespec="seconds")[:19] + "Z"  # strftime takes twice as long
    first = moment.replace(microsecond=0)
    _written = _Second(first, first + _LONGEST_WITHIN_A_SECOND, text)
    return text


def micro_timestamp(moment: datetime) -> str:
    """Microseconds, as Lease and Event times are written."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def moment(text: str) -> datetime | None:
    """The moment that a timestamp names, or None when it is empty or not one."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def since(text: str | None, now: datetime) -> str:
    """How long ago, or `<unknown>`."""
    start = moment(text) if text else None
    return "<unknown>" if start is None else human_duration((now - start).total_seconds())


def human_duration(seconds: float) -> str:
    """A duration in two units at most."""
    s = int(seconds)
    if s < -1:
        return "<invalid>"
    if s < 2 * _MINUTE:
        return f"{max(s, 0)}s"
    if s < 10 * _MINUTE:
        return _two(s // _MINUTE, "m", s % _MINUTE, "s")
    if s < 3 * _HOUR:
        return f"{s // _MINUTE}m"
    if s < 8 * _HOUR:
        return _two(s // _HOUR, "h", s % _HOUR // _MINUTE, "m")
    if s < 2 * _DAY:
        return f"{s // _HOUR}h"
    if s < 8 * _DAY:
        return _two(s // _DAY, "d", s % _DAY // _HOUR, "h")
    if s < 2 * _YEAR:
        return f"{s // _DAY}d"
    if s < 8 * _YEAR:
        return _two(s // _YEAR, "y", s % _YEAR // _DAY, "d")
    return f"{s // _YEAR}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
