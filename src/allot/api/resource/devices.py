"""What one device of a slice must look like.

An update judges capacity and taints anew only when they changed: a rule that
became stricter must not stop a driver from reporting something else.
"""

from collections.abc import Mapping
from typing import Any

from .. import field, names
from ..field import Path
from ..kind import Fields, WriteContext
from . import checks, limits, nodeselectors, policies
from .allocatable import node_allocatable_resources
from .found import Found, each, each_unique
from .reading import same

LIST_ATTRIBUTES = ("ints", "bools", "strings", "versions")
_ATTRIBUTES = ("int", "bool", "string", "version", *LIST_ATTRIBUTES)
_FREE_ATTRIBUTES = ("int", "bool")  # every value will do
_PLACES = ("nodeName", "nodeSelector", "allNodes")
_KEY_SHOWN_MAX = limits.DRIVER_NAME_MAX + 1 + limits.IDENTIFIER_MAX


def check(
    found: Found, device: Fields, old: Fields | None, path: Path, per_device: bool, context: WriteContext
) -> None:
    checks.device_name(found, device.get("name") or "", path / "name")
    _how_much(found, device, path)
    _attributes(found, attributes_of(device), path / "attributes")
    if old is None or not same(old.get("capacity"), device.get("capacity")):
        _capacity(found, device, path / "capacity", context)
    if old is None or not same(old.get("taints"), device.get("taints")):
        each(found, device.get("taints") or (), limits.DEVICE_TAINTS_MAX, path / "taints",
             lambda one, at: checks.taint(found, one, at), size_declared=False)  # fmt: skip
    each_unique(
        found, device.get("consumesCounters") or (), limits.DEVICE_COUNTER_CONSUMPTIONS_MAX,
        path / "consumesCounters", lambda one, at: _consumption(found, one, at),
        lambda one: one.get("counterSet"),
    )  # fmt: skip
    _device_nodes(found, device, path, per_device)
    checks.binding_conditions(found, device, path)
    node_allocatable_resources(found, device, path / "nodeAllocatableResources")


def _how_much(found: Found, device: Fields, path: Path) -> None:
    entries = len(attributes_of(device)) + len(device.get("capacity") or {})
    most = limits.DEVICE_ATTRIBUTES_AND_CAPACITIES_MAX
    if entries > most:
        text = f"the total number of attributes and capacities must not exceed {most}"
        found.add(field.invalid(path, entries, text))
    values = sum(_values(attribute) for attribute in attributes_of(device).values())
    most = limits.DEVICE_ATTRIBUTE_VALUES_MAX
    if values > most:
        found.add(field.invalid(path, values, f"the total number of attribute values must not exceed {most}"))


def _values(attribute: Fields) -> int:
    return sum(len(value or ()) for name, value in attribute.items() if name in LIST_ATTRIBUTES) or 1


def _shown(key: str) -> str:
    """A map key as a path shows it: cut in the middle when it could not be valid anyway."""
    if len(key) <= _KEY_SHOWN_MAX:
        return key
    left = _KEY_SHOWN_MAX - len("...")
    return key[: (left + 1) // 2] + "..." + key[-(left // 2) :]


def _attributes(found: Found, attributes: Mapping[str, Fields], path: Path) -> None:
    for key, attribute in attributes.items():
        checks.qualified_name(found, key, path)
        present = [name for name, value in attribute.items() if name in _ATTRIBUTES and value is not None]
        if len(present) != 1:
            _one_of(found, present, path[_shown(key)])
        for name in present:
            if name not in _FREE_ATTRIBUTES:
                _attribute_value(found, name, attribute[name], path[_shown(key)] / name)


def _one_of(found: Found, present: list[str], path: Path) -> None:
    listed = ", ".join(f"`{name}`" for name in _ATTRIBUTES)
    if present:
        shown = "{" + ", ".join(sorted(present, key=_ATTRIBUTES.index)) + "}"
        found.declare(field.invalid(path, shown, f"must specify exactly one of: {listed}"))
    else:
        found.declare(field.invalid(path, "", f"must specify one of: {listed}"))


def _attribute_value(found: Found, name: str, value: Any, path: Path) -> None:
    if name in LIST_ATTRIBUTES and not value:
        found.add(field.invalid(path, value, "must not be empty if specified"))
    match name:
        case "string":
            _short(found, value, path)
        case "version":
            _version(found, value, path)
        case "strings":
            for at, one in enumerate(value):
                _short(found, one, path[at], declared=True)
        case "versions":
            for at, one in enumerate(value):
                _version(found, one, path[at])


def _short(found: Found, value: str, path: Path, *, declared: bool = False) -> None:
    if checks.size(value) > limits.ATTRIBUTE_VALUE_MAX:
        report = found.declare if declared else found.add
        report(field.too_long(path, limits.ATTRIBUTE_VALUE_MAX))


def _version(found: Found, value: str, path: Path) -> None:
    if not checks.is_semver(value):
        found.add(field.invalid(path, value, "must be a string compatible with semver.org spec 2.0.0"))
    _short(found, value, path)


def _capacity(found: Found, device: Fields, path: Path, context: WriteContext) -> None:
    shareable = bool(device.get("allowMultipleAllocations"))
    for name, capacity in (device.get("capacity") or {}).items():
        checks.qualified_name(found, name, path)
        policy = capacity.get("requestPolicy")
        if policy is None:
            continue
        here = path[_shown(name)] / "requestPolicy"
        if not shareable:
            found.add(field.forbidden(here, "allowMultipleAllocations must be true"))
        else:
            fractional = context.gates["DRAFractionalCapacityRange"]
            policies.check(found, policy, capacity.get("value") or "0", here, fractional)


def _consumption(found: Found, consumption: Fields, path: Path) -> None:
    checks.label_required(found, consumption.get("counterSet") or "", path / "counterSet")
    counters(found, consumption, path / "counters")
    each_unique(
        found, consumption.get("compatibilityGroups") or (), limits.COMPATIBILITY_GROUPS_MAX,
        path / "compatibilityGroups", lambda one, at: None, lambda one: one,
    )  # fmt: skip


def counters(found: Found, holder: Fields, path: Path) -> None:
    counters = holder.get("counters") or {}
    if not counters:
        found.declare(field.required(path))
    elif len(counters) > limits.COUNTERS_MAX:
        found.add(field.too_many(path, len(counters), limits.COUNTERS_MAX))
    else:
        for name in counters:
            found.texts(path, name, names.label_name(name), declared=True)


def _device_nodes(found: Found, device: Fields, path: Path, per_device: bool) -> None:
    if not per_device:
        if any(device.get(place) is not None for place in _PLACES):
            text = (
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is"
                " set to true in the ResourceSlice spec"
            )
            found.add(field.invalid(path, None, text))
        return
    chosen = chosen_place(found, device, path, "must not be empty")
    wanted = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when"
        " `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    )
    if not chosen:
        found.add(field.required(path, wanted))
    elif len(chosen) > 1:
        found.add(field.invalid(path, "{" + ", ".join(chosen) + "}", wanted))


def chosen_place(found: Found, holder: Fields, path: Path, empty_name: str) -> list[str]:
    chosen = []
    name = holder.get("nodeName")
    if name:
        chosen.append("`nodeName`")
        checks.node_name(found, name, path / "nodeName")
    elif name is not None:
        found.add(field.invalid(path / "nodeName", name, empty_name))
    if holder.get("nodeSelector") is not None:
        chosen.append("`nodeSelector`")
        nodeselectors.check(found, holder["nodeSelector"], path / "nodeSelector")
    return chosen + flag(found, holder, "allNodes", path)


def flag(found: Found, holder: Fields, name: str, path: Path) -> list[str]:
    value = holder.get(name)
    if value is False:
        found.add(field.invalid(path / name, value, "must be either unset or set to true"))
    return [f"`{name}`"] if value else []


def attributes_of(device: Fields) -> Mapping[str, Fields]:
    return device.get("attributes") or {}
