"""What an eviction costs, and which pods matter more.

Of two sets of victims the one comes first that, in this order (upstream's)
    violates fewer disruption budgets,
    has the less important pod as its most important one,
    has the smaller sum of priorities, each counted from the lowest there can be,
    has fewer pods,
    has, of its most important pods, an oldest that is younger.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from allot.api import age

from ...budgets import Budgets
from ...pod import PodInfo

PRIORITY_LOWEST = -(2**31)


class Price(NamedTuple):
    """Sorts cheapest first."""

    violations: int
    highest: int
    total: int
    pods: int
    age: float  # the start of the oldest of the highest, turned round


def price(victims: Sequence[PodInfo], budgets: Budgets) -> Price:
    """Of a set that is not empty, the most important pods first."""
    highest = victims[0].priority
    return Price(
        violations=budgets.violations(victims),
        highest=highest,
        total=sum(pod.priority - PRIORITY_LOWEST for pod in victims),
        pods=len(victims),
        age=-min(started_s(pod) for pod in victims if pod.priority == highest),
    )


def cheapest(pods: Sequence[PodInfo], count: int = 1) -> Price:
    """What `count` victims among these, the most important first, cost at least."""
    least = pods[-count:]
    highest = least[0].priority
    return Price(
        violations=0,
        highest=highest,
        total=sum(pod.priority - PRIORITY_LOWEST for pod in least),
        pods=count,
        age=-max(started_s(pod) for pod in pods if pod.priority == highest),
    )


def importance(pod: PodInfo) -> tuple[int, float, str]:
    """The most important pod first: by priority, then by age."""
    return -pod.priority, started_s(pod), pod.uid


def started_s(pod: PodInfo) -> float:
    """A pod that has not started is younger than any that has."""
    return _moment_s(pod.status.start_time)


@lru_cache(maxsize=4096)
def _moment_s(text: str) -> float:
    moment = age.moment(text) if text else None
    return moment.timestamp() if moment is not None else float("inf")
