"""What may be written into a claim's status.

An allocation is set once and taken away whole; nothing in it ever changes.
Entries of `reservedFor` and `devices` live only beside an allocation.
"""

import ipaddress
from collections.abc import Sequence

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from ..quantity import Quantity
from . import checks, conditions, limits, nodeselectors, permissions
from .claims import RequestNames, reference, references, request_names
from .found import Found, each, each_unique
from .reading import same

_STATUS = Path("status")
_NAMES = frozenset(("request", "driver", "pool", "device"))
DeviceKey = tuple[str, str, str, str]


def validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    metadata = new.get("metadata") or {}
    found = Found()
    found.add(*permissions.admin_access_given(status, before, context))
    found.add(*permissions.status_write(status, before, metadata.get("namespace") or "", context))
    each_unique(
        found, status.get("reservedFor") or (), limits.RESERVED_FOR_MAX, _STATUS / "reservedFor",
        lambda one, at: check_consumer(found, one, at), lambda one: one.get("uid") or "",
    )  # fmt: skip
    _devices(found, status)
    _reservations(found, status, before, is_deleted=bool(metadata.get("deletionTimestamp")))
    _allocation(found, status, before, new.get("spec") or {})
    return found.errors(context.version)


def results(status: Fields) -> Sequence[Fields]:
    return ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()


def device_key(holder: Fields) -> DeviceKey:
    return (
        holder.get("driver") or "",
        holder.get("pool") or "",
        holder.get("device") or "",
        holder.get("shareID") or "",
    )


def check_consumer(found: Found, consumer: Fields, path: Path) -> None:
    for name in ("resource", "name", "uid"):
        if not consumer.get(name):
            found.add(field.required(path / name))


def _reservations(found: Found, status: Fields, before: Fields, *, is_deleted: bool) -> None:
    reserved, path = status.get("reservedFor") or (), _STATUS / "reservedFor"
    if not reserved:
        return
    if status.get("allocation") is None:
        found.add(field.forbidden(path, "may not be specified when `allocated` is not set"))
    elif is_deleted:
        known = before.get("reservedFor") or ()
        if any(not any(same(one, other) for other in known) for one in reserved):
            text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            found.add(field.forbidden(path, text))


# The allocation


def _allocation(found: Found, status: Fields, before: Fields, spec: Fields) -> None:
    new, old, path = status.get("allocation"), before.get("allocation"), _STATUS / "allocation"
    if new is None:
        return
    if old is not None:
        if not same(new, old):
            found.declare(field.invalid(path, None, "field cannot be modified once set"))
        return
    devices, here, known = new.get("devices") or {}, path / "devices", request_names(spec)
    listed = devices.get("results") or ()
    if not _are_plain(listed, known):
        each(found, listed, limits.ALLOCATION_RESULTS_MAX, here / "results",
             lambda one, at: _result(found, one, known, at))  # fmt: skip
        _held_once(found, listed, here / "results")
    each(found, devices.get("config") or (), limits.ALLOCATION_CONFIG_MAX, here / "config",
         lambda one, at: _config(found, one, known, at))  # fmt: skip
    if new.get("nodeSelector") is not None:
        nodeselectors.check(found, new["nodeSelector"], path / "nodeSelector")


def _are_plain(listed: Sequence[Fields], known: RequestNames) -> bool:
    """Whether there is nothing to say about results, told at a glance. Nearly all are like that, a
    claim may have 32, and whoever looks closer makes a path for each field of each."""
    return (
        len(listed) <= limits.ALLOCATION_RESULTS_MAX
        and all(_is_plain(one, known) for one in listed)
        and len({(one["driver"], one["pool"], one["device"]) for one in listed}) == len(listed)
    )


def _is_plain(result: Fields, known: RequestNames) -> bool:
    """Four names and nothing else, and all of them are fine."""
    return (
        result.keys() == _NAMES
        and result["request"] in known
        and checks.is_label(result["request"])
        and checks.is_driver_name(result["driver"])
        and checks.is_pool_name(result["pool"])
        and checks.is_label(result["device"])
    )


def _result(found: Found, result: Fields, known: RequestNames, path: Path) -> None:
    reference(found, result.get("request") or "", known, path / "request")
    checks.driver_name(found, result.get("driver") or "", path / "driver", declared=True)
    checks.pool_name(found, result.get("pool") or "", path / "pool", declared=True)
    checks.device_name(found, result.get("device") or "", path / "device")
    checks.binding_conditions(found, result, path)
    checks.tolerations(found, result.get("tolerations") or (), path / "tolerations")
    checks.share_id(found, result.get("shareID"), path / "shareID")
    for name, amount in (result.get("consumedCapacity") or {}).items():
        if Quantity.parse(amount).sign < 0:
            text = "must be greater than or equal to zero"
            found.add(field.invalid((path / "consumedCapacity")[name], amount, text))
    checks.skip_node_operations(found, result.get("skipNodeOperations"), path / "skipNodeOperations")


def _held_once(found: Found, listed: Sequence[Fields], path: Path) -> None:
    """A device is in the list once, or in several different shares. Access for administrators is no hold."""
    seen: dict[DeviceKey, None] = {}
    for at, key in enumerate(map(device_key, listed)):
        if listed[at].get("adminAccess"):
            continue
        whole = (*key[:3], "")
        if key in seen or whole in seen or (key == whole and any(one[:3] == key[:3] for one in seen)):
            shown = dict(zip(("driver", "pool", "device", "shareID"), key, strict=True))
            found.add(field.duplicate(path[at], shown))
        seen[key] = None


def _config(found: Found, config: Fields, known: RequestNames, path: Path) -> None:
    source = config.get("source") or ""
    if not source:
        found.declare(field.required(path / "source"))
    elif source not in limits.CONFIG_SOURCES:
        found.declare(field.unsupported(path / "source", source, limits.CONFIG_SOURCES))
    references(found, config.get("requests") or (), known, path / "requests")
    checks.opaque(found, config, path)


# What drivers report of their devices


def _devices(found: Found, status: Fields) -> None:
    listed = status.get("devices") or ()
    if not listed:
        return
    held = {device_key(result) for result in results(status)}
    each_unique(
        found, listed, None, _STATUS / "devices",
        lambda one, at: _device(found, one, held, at), device_key,
    )  # fmt: skip


def _device(found: Found, device: Fields, held: set[DeviceKey], path: Path) -> None:
    checks.driver_name(found, device.get("driver") or "", path / "driver")
    checks.pool_name(found, device.get("pool") or "", path / "pool")
    checks.device_name(found, device.get("device") or "", path / "device")
    checks.share_id(found, device.get("shareID"), path / "shareID")
    key = device_key(device)
    if key not in held:
        shown = dict(zip(("Driver", "Pool", "Device", "ShareID"), key, strict=True))
        found.add(field.invalid(path, shown, "must be an allocated device in the claim"))
    listed = device.get("conditions") or ()
    if len(listed) > limits.DEVICE_CONDITIONS_MAX:
        found.add(field.too_many(path / "conditions", len(listed), limits.DEVICE_CONDITIONS_MAX))
    conditions.check(found, listed, path / "conditions")
    if device.get("data") is not None:
        checks.raw_object(found, device["data"], path / "data")
    if device.get("networkData") is not None:
        _network(found, device["networkData"], path / "networkData")


def _network(found: Found, network: Fields, path: Path) -> None:
    for name, most in (
        ("interfaceName", limits.INTERFACE_NAME_MAX),
        ("hardwareAddress", limits.HARDWARE_ADDRESS_MAX),
    ):
        if checks.size(network.get(name) or "") > most:
            found.declare(field.too_long(path / name, most))
    each_unique(
        found, network.get("ips") or (), limits.DEVICE_IPS_MAX, path / "ips",
        lambda one, at: _interface_address(found, one, at), lambda one: one,
    )  # fmt: skip


def _interface_address(found: Found, address: str, path: Path) -> None:
    """An address with its prefix length, e.g. 192.0.2.5/24, written the one canonical way."""
    try:
        parsed = ipaddress.ip_interface(address) if "/" in address else None
    except ValueError:
        parsed = None
    if parsed is None or "%" in address:
        text = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        found.add(field.invalid(path, address, text))
    elif str(parsed) != address:
        text = f'must be in canonical form ("{parsed}")'
        found.add(field.invalid(path, address, text))


# What the server itself removes


def drop_deallocated_devices(new: Fields, old: Fields) -> None:
    """Reports on devices that the claim no longer holds go together with the devices."""
    status, before = new.get("status") or {}, old.get("status") or {}
    if not status.get("devices"):
        return
    freed = {device_key(one)[:3] for one in results(before)} - {
        device_key(one)[:3] for one in results(status)
    }
    if freed:
        status["devices"] = [one for one in status["devices"] if device_key(one)[:3] not in freed]
        if not status["devices"]:
            del status["devices"]
