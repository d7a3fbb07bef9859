"""Fields behind feature gates: dropped in silence while the gate is off.

A field that the stored object already uses stays, so switching a gate off does
not make unrelated updates lose data. `*` in a path stands for every item of a
list or every value of a map.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ..gates import Gates
from ..kind import Fields

Paths = tuple[str, ...]

SLICE: Mapping[str, Paths] = {
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
}

CLAIM: Mapping[str, Paths] = {
    gate: tuple(f"spec.{path}" for path in _CLAIM_SPEC.get(gate, ())) + _CLAIM_STATUS.get(gate, ())
    for gate in (*_CLAIM_SPEC, *_CLAIM_STATUS)
}
TEMPLATE: Mapping[str, Paths] = {
    gate: tuple(f"spec.spec.{path}" for path in paths) for gate, paths in _CLAIM_SPEC.items()
}
CLASS: Mapping[str, Paths] = {"DRAExtendedResource": ("spec.extendedResourceName",)}


def drop(new: Fields, old: Fields | None, gates: Gates, table: Mapping[str, Paths]) -> None:
    """Remove from `new` what gates that are off guard, unless `old` uses it."""
    same = {root for root in ("spec", "status") if old is not None and new.get(root) == old.get(root)}
    for gate, guarded in table.items():
        if gates[gate]:
            continue
        # Hardly any object has such a field, so the new one is asked first; and most writes are
        # about one part of an object.
        paths = [path for path in guarded if _may_say(new, path, same)]
        said = [(holder, key) for path in paths for holder, key in _holders(new, path) if key in holder]
        if said and not (old is not None and any(_uses(old, path) for path in guarded)):
            for holder, key in said:
                holder.pop(key, None)


def _may_say(new: Fields, path: str, same: set[str]) -> bool:
    """Whether the object has at least the first two steps of the path, in a part that is not the same."""
    root, second, *_ = _steps(path)
    return root not in same and second in (new.get(root) or ())


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
