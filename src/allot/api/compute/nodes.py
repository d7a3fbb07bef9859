"""The rules of `node.status.computeResources`: what a node's device plugins export with properties.

The name of an entry follows from what it is (`naming`); one that is missing is filled in. What is exported
here is not in `capacity` or `allocatable` as well, and every device is in one entry: nothing counts twice.
"""

from typing import Any

from .. import field, names
from ..field import FieldError, Path
from ..gates import Gates
from ..kind import Fields
from ..resource import gated
from . import limits, naming

_STATUS = Path("status")
_LIST = _STATUS / "computeResources"
_GATED = gated.Table({limits.GATE: ("status.computeResources",)})


def prepare(new: Fields, old: Fields | None, gates: Gates) -> None:
    """Drops what the gate closes, keeps what clients that know less leave out, fills in names.

    An empty list is said, and clears; absence and null are not.
    """
    gated.drop(new, old, gates, _GATED)
    status, before = new.get("status") or {}, ((old or {}).get("status") or {}).get("computeResources")
    if before is not None and status.get("computeResources") is None and "status" in new:
        new["status"] = status = {**status, "computeResources": before}
    for entry in status.get("computeResources") or ():
        raw, properties = entry.get("resourceName"), entry.get("properties") or {}
        if not entry.get("name") and raw:
            entry["name"] = naming.compute_resource_name(raw, properties)


def errors(node: Fields) -> list[FieldError]:
    status = node.get("status") or {}
    entries = status.get("computeResources")
    if not entries:
        return []
    if len(entries) > limits.RESOURCES_MAX:
        return [field.too_many(_LIST, len(entries), limits.RESOURCES_MAX)]
    devices = sum(len(entry.get("devices") or ()) for entry in entries)
    if devices > limits.DEVICES_MAX:
        return [field.too_many(_LIST, devices, limits.DEVICES_MAX)]
    found: list[FieldError] = []
    names_seen: set[str] = set()
    owners: set[tuple[str, str]] = set()
    for at, entry in enumerate(entries):
        found += _entry_errors(entry, _LIST[at], names_seen, owners)
    return found + _twice_counted(status)


def _entry_errors(
    entry: Fields, path: Path, names_seen: set[str], owners: set[tuple[str, str]]
) -> list[FieldError]:
    raw, name = entry.get("resourceName") or "", entry.get("name") or ""
    properties = entry.get("properties") or {}
    if not raw:
        return [field.required(path / "resourceName")]
    found = [field.invalid(path / "resourceName", raw, wrong) for wrong in naming.wrong_raw_name(raw)]
    found += _property_errors(properties, path / "properties")
    meant = naming.compute_resource_name(raw, properties)
    if name != meant:
        found.append(field.invalid(path / "name", name, f"must be {meant}, as its properties say"))
    if name in names_seen:
        found.append(field.duplicate(path / "name", name))
    names_seen.add(name)
    return found + _device_errors(entry, raw, path, owners)


def _property_errors(properties: dict[str, Any], path: Path) -> list[FieldError]:
    if len(properties) > limits.PROPERTIES_MAX:
        return [field.too_many(path, len(properties), limits.PROPERTIES_MAX)]
    found: list[FieldError] = []
    for key, value in properties.items():
        found += [field.invalid(path, key, wrong) for wrong in names.qualified(key)]
        if len((value or "").encode()) > limits.PROPERTY_VALUE_MAX:
            found.append(field.too_long(path[key], limits.PROPERTY_VALUE_MAX))
    return found


def _device_errors(entry: Fields, raw: str, path: Path, owners: set[tuple[str, str]]) -> list[FieldError]:
    found: list[FieldError] = []
    devices = entry.get("devices") or ()
    for at, device in enumerate(devices):
        where = (path / "devices")[at]
        if not device:
            found.append(field.required(where))
        elif len(device.encode()) > limits.DEVICE_ID_MAX:
            found.append(field.too_long(where, limits.DEVICE_ID_MAX))
        if (raw, device) in owners:
            found.append(field.duplicate(where, device))
        owners.add((raw, device))
    known, seen = set(devices), set()
    for at, device in enumerate(entry.get("allocatableDevices") or ()):
        where = (path / "allocatableDevices")[at]
        if device not in known:
            found.append(field.not_found(where, device))
        if device in seen:
            found.append(field.duplicate(where, device))
        seen.add(device)
    return found


def _twice_counted(status: Fields) -> list[FieldError]:
    exported = {entry.get("resourceName") for entry in status.get("computeResources") or ()}
    return [
        field.forbidden((_STATUS / part)[name], "is exported in computeResources, and would be counted twice")
        for part in ("capacity", "allocatable")
        for name in status.get(part) or ()
        if name in exported
    ]
