"""How much a pod may count on what it asked for.

Guaranteed   every container has cpu and memory limits, and requests equal them
BestEffort   nobody asked for cpu or memory
Burstable    everything between
"""

from collections.abc import Mapping
from typing import Any

from ...kind import Fields
from ...quantity import Quantity
from ..amounts import parse
from ..reading import items, obj

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
    requests = [_counted(obj(holder, "resources", "requests")) for holder in holders]
    limits = [_counted(obj(holder, "resources", "limits")) for holder in holders]
    if not any(requests) and not any(limits):
        return BEST_EFFORT
    equal = all(limit == {**limit, **request} for limit, request in zip(limits, requests, strict=True))
    bounded = all(len(limit) == len(_COUNTED) for limit in limits)
    return GUARANTEED if bounded and equal else BURSTABLE


def _counted(amounts: Mapping[str, Any]) -> dict[str, Quantity]:
    found = {name: parse(amounts[name]) for name in _COUNTED if amounts.get(name) is not None}
    return {name: value for name, value in found.items() if value is not None and value > Quantity(0)}
