"""Fields behind feature gates: dropped in silence while the gate is off. Digest 1.

A field that the stored object already uses stays, so switching a gate off does
not make unrelated updates lose data. `*` in a path stands for every item of a
list or every value of a map.
"""

from collections.abc import Iterator, Mapping
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
    for gate, paths in table.items():
        if not gates[gate] and not (old is not None and any(_uses(old, path) for path in paths)):
            for path in paths:
                for holder, key in _holders(new, path.split(".")):
                    holder.pop(key, None)


def _uses(fields: Fields, path: str) -> bool:
    return any(holder.get(key) not in (None, [], {}) for holder, key in _holders(fields, path.split(".")))


def _holders(container: Any, path: list[str]) -> Iterator[tuple[Fields, str]]:
    """Every object that may have the path's last member, with the member's name."""
    step, *rest = path
    if step == "*":
        inner = container.values() if isinstance(container, dict) else container
        for item in inner if isinstance(container, dict | list) else ():
            yield from _holders(item, rest)
    elif isinstance(container, dict):
        if not rest:
            yield container, step
        elif step in container:
            yield from _holders(container[step], rest)
