"""How much a pod may count on what it asked for.

Guaranteed   every container has cpu and memory limits, and requests equal them
BestEffort   nobody asked for cpu or memory
Burstable    everything between
"""

from typing import Any

from ...kind import Fields
from ..amounts import parse
from ..reading import items

GUARANTEED = "Guaranteed"
BURSTABLE = "Burstable"
BEST_EFFORT = "BestEffort"

_COUNTED = ("cpu", "memory")


def qos_class(spec: Fields) -> str:
    """Pod-level resources, where there are any, decide alone; otherwise all containers do."""
    pod_level = spec.get("resources")
    holders = (
        [spec]
        if pod_level and (pod_level.get("requests") or pod_level.get("limits"))
        else [*items(spec, "containers"), *items(spec, "initContainers")]
    )
    nobody_asked, everything_bounded = True, True
    for holder in holders:
        resources = holder.get("resources")
        if not resources:
            everything_bounded = False
            continue
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in _COUNTED:
            asked, bound = requests.get(name), limits.get(name)
            limit = _nano(bound)
            request = limit if asked == bound else _nano(asked)
            if request or limit:
                nobody_asked = False
            if not limit or (request and request != limit):
                everything_bounded = False
    if nobody_asked:
        return BEST_EFFORT
    return GUARANTEED if everything_bounded else BURSTABLE


def _nano(written: Any) -> int:
    """The amount; 0 for what is none."""
    amount = parse(written) if written is not None else None
    return amount.nano if amount is not None and amount.nano > 0 else 0
