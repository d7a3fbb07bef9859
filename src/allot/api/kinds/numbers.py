"""Numbers in specs: counts, and counts that may be written as a share."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..field import FieldError, Path, invalid

NOT_NEGATIVE = "must be greater than or equal to 0"


def validate_not_negative(fields: Mapping[str, Any], names: Sequence[str], path: Path) -> list[FieldError]:
    return [
        invalid(path / name, fields[name], NOT_NEGATIVE)
        for name in names
        if fields.get(name) is not None and fields[name] < 0
    ]


def validate_int_or_percent(value: Any, path: Path) -> list[FieldError]:
    """A count, or a share of the replicas such as `25%`."""
    if isinstance(value, str):
        if percent(value) is None:
            text = (
                "a valid percent string must be a numeric string followed by an ending '%'"
                " (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            )
            return [invalid(path, value, text)]
        return []
    return [invalid(path, value, NOT_NEGATIVE)] if value < 0 else []


def validate_at_most_all(value: Any, path: Path) -> list[FieldError]:
    share = percent(value)
    return (
        [invalid(path, value, "must not be greater than 100%")] if share is not None and share > 100 else []
    )


def percent(value: Any) -> int | None:
    """The number before the percent sign, or None for what is no share."""
    if not isinstance(value, str) or not value.endswith("%"):
        return None
    digits = value[:-1]
    return int(digits[:9]) if digits.isascii() and digits.isdigit() else None


def is_zero(value: Any) -> bool:
    return value == 0 or percent(value) == 0
