"""Times and durations: reading and printing them, and asking for their parts.

Durations are written as in Go (`1h30m`, `-1.5s`), times as in RFC 3339. Where a
part of a time depends on the place, UTC is meant unless a zone is named.
"""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from re import ASCII, compile
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..errors import EvaluationError
from ..overloads import Declaration, method
from ..types import DURATION, INT, STRING, TIMESTAMP
from ..values import INT_MAX, SECOND_NS, Duration, Timestamp, checked_duration, checked_time

_UNITS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6,
    "s": SECOND_NS, "m": 60 * SECOND_NS, "h": 3600 * SECOND_NS,
}  # fmt: skip
_PART = compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", ASCII)
_TIME = compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))", ASCII
)
_OFFSET = compile(r"([+-]?)(\d{1,2}):(\d{2})", ASCII)
_DIGITS_MAX: Final = 20


def parse_duration(text: str) -> Duration:
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(rest) and total <= INT_MAX + 1:
        match = _PART.match(rest, at)
        if match is None or not (match[1] or match[2]) or len(match[1].lstrip("0")) > _DIGITS_MAX:
            at = 0
            break
        unit, fraction = _UNITS[match[3]], (match[2] or "")[:_DIGITS_MAX]
        total += int(match[1] or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        at = match.end()
    if at == 0 or at < len(rest):
        raise EvaluationError(f"type conversion error from {text[:64]!r} to 'google.protobuf.Duration'")
    return checked_duration(-total if sign == "-" else total)


def print_duration(duration: Duration) -> str:
    """Seconds with as many digits as needed, as CEL prints a duration."""
    sign = "-" if duration.ns < 0 else ""
    seconds, ns = divmod(abs(duration.ns), SECOND_NS)
    fraction = f".{ns:09d}".rstrip("0") if ns else ""
    return f"{sign}{seconds}{fraction}s"


def parse_time(text: str) -> Timestamp:
    match = _TIME.fullmatch(text)
    if match is None:
        raise EvaluationError(f"type conversion error from {text[:64]!r} to 'google.protobuf.Timestamp'")
    try:
        day = datetime(*(int(match[i]) for i in range(1, 7)), tzinfo=UTC)  # type: ignore[arg-type,misc]
    except ValueError:
        raise EvaluationError(f"invalid timestamp: {text}") from None
    seconds = (day - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    if match[8]:
        offset = int(match[9]) * 3600 + int(match[10]) * 60
        seconds -= offset if match[8] == "+" else -offset
    return checked_time(seconds * SECOND_NS + int((match[7] or "0").ljust(9, "0")))


def print_time(time: Timestamp) -> str:
    moment, ns = _moment(time, UTC)
    fraction = f".{ns:09d}".rstrip("0") if ns else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z".rjust(20 + len(fraction), "0")


def _moment(time: Timestamp, zone: tzinfo) -> tuple[datetime, int]:
    seconds, ns = divmod(time.ns, SECOND_NS)
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).astimezone(zone), ns
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match is not None:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        try:
            return timezone(-offset if match[1] == "-" else offset)
        except ValueError:
            raise EvaluationError(f"unknown time zone {name}") from None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name[:64]}") from None


_PARTS: Final[dict[str, Any]] = {
    "getFullYear": lambda day, ns: day.year,
    "getMonth": lambda day, ns: day.month - 1,
    "getDayOfYear": lambda day, ns: day.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda day, ns: day.day - 1,
    "getDate": lambda day, ns: day.day,
    "getDayOfWeek": lambda day, ns: day.isoweekday() % 7,
    "getHours": lambda day, ns: day.hour,
    "getMinutes": lambda day, ns: day.minute,
    "getSeconds": lambda day, ns: day.second,
    "getMilliseconds": lambda day, ns: ns // 10**6,
}
_SPANS: Final = {
    "getHours": 3600 * SECOND_NS,
    "getMinutes": 60 * SECOND_NS,
    "getSeconds": SECOND_NS,
}


def _parts() -> list[Declaration]:
    found: list[Declaration] = []
    for name, part in _PARTS.items():
        word = name[3:].lower()
        found.append(
            method(
                name, f"timestamp_to_{word}", (TIMESTAMP,), INT, lambda t, part=part: part(*_moment(t, UTC))
            )
        )
        found.append(
            method(
                name,
                f"timestamp_to_{word}_with_tz",
                (TIMESTAMP, STRING),
                INT,
                lambda t, zone, part=part: part(*_moment(t, _zone(zone))),
            )
        )
    for name, span in _SPANS.items():
        found.append(
            method(
                name,
                f"duration_to_{name[3:].lower()}",
                (DURATION,),
                INT,
                lambda d, span=span: _whole(d.ns, span),
            )
        )
    found.append(
        method(
            "getMilliseconds",
            "duration_to_milliseconds",
            (DURATION,),
            INT,
            lambda d: _whole(d.ns, 10**6),
        )
    )
    return found


def _whole(ns: int, span: int) -> int:
    return ns // span if ns >= 0 else -(-ns // span)


DECLARATIONS: Final = tuple(_parts())
