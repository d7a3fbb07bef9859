"""Durations as people write them: 250ms, 30s, 1h30m."""

import re
from typing import Final

DURATION_S_MAX: Final = 10 * 365 * 86400.0
_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")


def duration_s(text: str) -> float:
    """Seconds of a duration such as 1h30m. Raises ValueError."""
    parts = list(_PART.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        raise ValueError(f"{text[:40]!r} is not a duration such as 250ms, 30s or 1h30m")
    found_s = sum(float(part[1]) * _UNITS_S[part[2]] for part in parts)
    if found_s > DURATION_S_MAX:
        raise ValueError(f"{text[:40]!r} is a duration of more than ten years")
    return found_s
