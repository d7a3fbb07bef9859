"""What a container may use of the machine, as control groups count it. Pure.

cpu.shares   of what is asked for: 1024 for a core, at least 2
cpu quota    of what is allowed: so many microseconds in each tenth of a second
memory       of what is allowed
"""

from collections.abc import Mapping

from allot.api import Quantity

from .runtimes import Limits
from .views import Resources

SHARES_PER_CORE, SHARES_MIN, SHARES_MAX = 1024, 2, 262_144
PERIOD_US, QUOTA_US_MIN = 100_000, 1_000


def limits_of(resources: Resources) -> Limits:
    """Who asks for nothing asks for what he is allowed."""
    asked, allowed = _milli(resources.requests), _milli(resources.limits)
    memory = resources.limits.get("memory")
    return Limits(
        _shares(asked if asked is not None else allowed),
        max(QUOTA_US_MIN, allowed * PERIOD_US // 1000) if allowed else None,
        Quantity.parse(memory).as_int() or None if memory is not None else None,
    )


def _milli(amounts: Mapping[str, str]) -> int | None:
    text = amounts.get("cpu")
    return Quantity.parse(text).milli() if text is not None else None


def _shares(milli: int | None) -> int:
    return min(SHARES_MAX, max(SHARES_MIN, (milli or 0) * SHARES_PER_CORE // 1000))
