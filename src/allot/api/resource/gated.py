"""Fields behind feature gates: dropped in silence while the gate is off.

A field that the stored object already uses stays, so switching a gate off does
not make unrelated updates lose data. `*` in a path stands for every item of a
list or every value of a map.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from ..gates import Gates
from ..kind import Fields

Paths = tuple[str, ...]
Ways = dict[str, "Ways"]
"""Paths as a tree: step -> what follows it. Nothing follows the last one."""


class Closed(NamedTuple):
    guarded: tuple[Paths, ...]  # by each gate that is off
    ways: Ways  # to all of them


class Table:
    """Which fields of a kind each gate guards."""

    def __init__(self, rows: Mapping[str, Paths]) -> None:
        self.rows = rows
        self._asked: tuple[Gates, Closed] | None = None  # a server has the same gates as long as it runs

    def closed(self, gates: Gates) -> Closed:
        asked = self._asked
        if asked is None or asked[0] is not gates:
            asked = self._asked = (gates, self._closed(gates))
        return asked[1]

    def _closed(self, gates: Gates) -> Closed:
        guarded = tuple(paths for gate, paths in self.rows.items() if not gates[gate])
        ways: Ways = {}
        paths = {path for behind_one in guarded for path in behind_one}
        for path in paths:
            if not any(path.startswith(f"{other}.") for other in paths):  # else the shorter one says enough
                at = ways
                for step in _steps(path):
                    at = at.setdefault(step, {})
        return Closed(guarded, ways)


_SLICE: Mapping[str, Paths] = {
    "DRADeviceTaints": ("spec.devices.*.taints",),
    "DRAPartitionableDevices": (
        "spec.sharedCounters",
        "spec.perDeviceNodeSelection",
        "spec.devices.*.consumesCounters",
        "spec.devices.*.nodeName",
        "spec.devices.*.nodeSelector",
        "spec.devices.*.allNodes",
    ),
    "DRADeviceBindingConditions": (
        "spec.devices.*.bindingConditions",
        "spec.devices.*.bindingFailureConditions",
        "spec.devices.*.bindsToNode",
    ),
    "DRAConsumableCapacity": (
        "spec.devices.*.allowMultipleAllocations",
        "spec.devices.*.capacity.*.requestPolicy",
    ),
    "DRANodeAllocatableResources": ("spec.devices.*.nodeAllocatableResources",),
    "DRAListTypeAttributes": tuple(
        f"spec.devices.*.attributes.*.{name}" for name in ("ints", "bools", "strings", "versions")
    ),
    "DRAPartitionableDevicesType": ("spec.partitionTypeAttribute",),
    "DRADeviceCompatibilityGroups": ("spec.devices.*.consumesCounters.*.compatibilityGroups",),
    "DRAOptionalNodeOperations": ("spec.skipNodeOperations",),
}

_CLAIM_SPEC: Mapping[str, Paths] = {
    "DRADeviceTaints": (
        "devices.requests.*.exactly.tolerations",
        "devices.requests.*.firstAvailable.*.tolerations",
    ),
    "DRAConsumableCapacity": (
        "devices.requests.*.exactly.capacity",
        "devices.requests.*.firstAvailable.*.capacity",
        "devices.constraints.*.distinctAttribute",
    ),
    "DRADerivedAttributes": (
        "devices.requests.*.exactly.derivedAttributes",
        "devices.requests.*.firstAvailable.*.derivedAttributes",
    ),
    "DRAControlPlaneController": ("resourceClassName", "parametersRef", "allocationMode"),
}

_RESULTS = "status.allocation.devices.results.*"

_CLAIM_STATUS: Mapping[str, Paths] = {
    "DRADeviceTaints": (f"{_RESULTS}.tolerations",),
    "DRAConsumableCapacity": (
        f"{_RESULTS}.shareID",
        f"{_RESULTS}.consumedCapacity",
        "status.devices.*.shareID",
    ),
    "DRADeviceBindingConditions": (
        f"{_RESULTS}.bindingConditions",
        f"{_RESULTS}.bindingFailureConditions",
        "status.allocation.allocationTimestamp",
    ),
    "DRAOptionalNodeOperations": (f"{_RESULTS}.skipNodeOperations",),
    "DRAControlPlaneController": (
        "status.driverName",
        "status.deallocationRequested",
        "status.allocation.resourceHandle",
        "status.allocation.shareable",
    ),
}

SLICE = Table(_SLICE)
CLAIM = Table(
    {
        gate: tuple(f"spec.{path}" for path in _CLAIM_SPEC.get(gate, ())) + _CLAIM_STATUS.get(gate, ())
        for gate in (*_CLAIM_SPEC, *_CLAIM_STATUS)
    }
)
TEMPLATE = Table({gate: tuple(f"spec.spec.{path}" for path in paths) for gate, paths in _CLAIM_SPEC.items()})
CLASS = Table({"DRAExtendedResource": ("spec.extendedResourceName",)})


def drop(new: Fields, old: Fields | None, gates: Gates, table: Table) -> None:
    """Remove from `new` what gates that are off guard, unless `old` uses it."""
    guarded, ways = table.closed(gates)
    if not any(_says(new[root], further) for root, further in ways.items() if _is_new(root, new, old)):
        return  # as nearly every object
    same = {root for root in ("spec", "status") if old is not None and new.get(root) == old.get(root)}
    for behind_one in guarded:
        paths = [path for path in behind_one if _steps(path)[0] not in same]
        said = [(holder, key) for path in paths for holder, key in _holders(new, path) if key in holder]
        if said and not (old is not None and any(_uses(old, path) for path in behind_one)):
            for holder, key in said:
                holder.pop(key, None)


def _is_new(root: str, new: Fields, old: Fields | None) -> bool:
    """Most writes are about one part of an object, and share the other with what was before."""
    return root in new and (old is None or new[root] is not old.get(root))


def _says(value: Any, ways: Ways) -> bool:
    """Whether anything lies at the end of one of the ways."""
    for step, further in ways.items():
        if step == "*":
            if _one_says(_items(value), further):
                return True
        elif type(value) is dict and step in value and (not further or _says(value[step], further)):
            return True
    return False


def _one_says(values: Iterable[Any], ways: Ways) -> bool:
    if any(ways.values()):
        return any(_says(value, ways) for value in values)
    names = ways.keys()  # all of them end here: a slice has thousands of attributes
    return any(type(value) is dict and not names.isdisjoint(value) for value in values)


def _uses(fields: Fields, path: str) -> bool:
    return any(holder.get(key) not in (None, [], {}) for holder, key in _holders(fields, path))


def _holders(fields: Fields, path: str) -> list[tuple[Fields, str]]:
    """Every object that may have the path's last member, with the member's name."""
    *steps, last = _steps(path)
    found: list[Any] = [fields]
    for step in steps:
        if step == "*":
            found = [item for one in found for item in _items(one)]
        else:
            found = [one[step] for one in found if type(one) is dict and step in one]
        if not found:
            break
    return [(one, last) for one in found if type(one) is dict]


@cache
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _items(container: Any) -> Iterable[Any]:
    if type(container) is dict:
        return container.values()
    return container if type(container) is list else ()
