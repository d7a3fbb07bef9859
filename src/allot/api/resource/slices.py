"""What a ResourceSlice must look like."""

from collections.abc import Sequence
from typing import Any

from .. import field
from ..field import FieldError, Path
from ..kind import Fields, WriteContext
from . import checks, devices, limits
from .found import Found, each_unique

_SPEC = Path("spec")


def validate_create(new: Fields, context: WriteContext) -> list[FieldError]:
    return _validate(new, None, context)


def validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return _validate(new, old, context)


def warnings(new: Fields, old: Fields | None) -> list[str]:
    driver = (new.get("spec") or {}).get("driver") or ""
    if driver == driver.lower():
        return []
    return [f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters']


def _validate(new: Fields, old: Fields | None, context: WriteContext) -> list[FieldError]:
    found = Found()
    spec = new.get("spec") or {}
    before = (old.get("spec") or {}) if old is not None else None
    checks.driver_name(found, spec.get("driver") or "", _SPEC / "driver")
    _pool(found, spec.get("pool") or {}, _SPEC / "pool")
    if before is not None:
        _immutable(found, spec, before)
    _nodes(found, spec)
    if "sharedCounters" in spec and "devices" in spec:
        found.add(field.invalid(_SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    _devices(found, spec, before, context)
    each_unique(
        found, spec.get("sharedCounters") or (), limits.COUNTER_SETS_MAX, _SPEC / "sharedCounters",
        lambda one, at: _counter_set(found, one, at), lambda one: one.get("name"),
    )  # fmt: skip
    _partition_type(found, spec)
    checks.skip_node_operations(found, spec.get("skipNodeOperations"), _SPEC / "skipNodeOperations")
    return found.errors(context.version)


def _pool(found: Found, pool: Fields, path: Path) -> None:
    checks.pool_name(found, pool.get("name") or "", path / "name")
    slices = pool.get("resourceSliceCount") or 0
    if slices <= 0:
        found.add(field.invalid(path / "resourceSliceCount", slices, "must be greater than zero"))
    generation = pool.get("generation") or 0
    if generation < 0:
        text = "must be greater than or equal to zero"
        found.add(field.invalid(path / "generation", generation, text))


def _immutable(found: Found, spec: Fields, before: Fields) -> None:
    pools = [(one.get("pool") or {}).get("name") or "" for one in (spec, before)]
    compared: tuple[tuple[Path, Any, Any], ...] = (
        (_SPEC / "pool" / "name", pools[0], pools[1]),
        (_SPEC / "driver", spec.get("driver") or "", before.get("driver") or ""),
        (_SPEC / "nodeName", spec.get("nodeName"), before.get("nodeName")),
    )
    for path, new, old in compared:
        if new != old:
            found.add(field.invalid(path, new, "field is immutable"))


def _nodes(found: Found, spec: Fields) -> None:
    """Exactly one way to say which nodes can reach the devices."""
    chosen = devices.chosen_place(found, spec, _SPEC, "must be either unset or set to a non-empty string")
    selector = spec.get("nodeSelector")
    if selector is not None and len(selector.get("nodeSelectorTerms") or ()) != 1:
        path = _SPEC / "nodeSelector" / "nodeSelectorTerms"
        terms = selector.get("nodeSelectorTerms")
        found.add(field.invalid(path, terms, "must have exactly one node selector term"))
    chosen += devices.flag(found, spec, "perDeviceNodeSelection", _SPEC)
    wanted = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not chosen:
        found.add(field.required(_SPEC, wanted))
    elif len(chosen) > 1:
        shown = "{" + ", ".join(chosen) + "}"
        found.add(field.invalid(_SPEC, shown, f"{wanted}, but multiple fields are set"))


def _devices(found: Found, spec: Fields, before: Fields | None, context: WriteContext) -> None:
    listed = spec.get("devices") or ()
    known = {one.get("name"): one for one in (before or {}).get("devices") or ()}
    per_device = bool(spec.get("perDeviceNodeSelection"))

    def check(device: Fields, path: Path) -> None:
        devices.check(found, device, known.get(device.get("name")), path, per_device, context)

    each_unique(
        found, listed, devices_max(listed), _SPEC / "devices", check,
        lambda one: one.get("name") or "", declared=False,
    )  # fmt: skip


def devices_max(listed: Sequence[Fields]) -> int:
    advanced = any(
        device.get("taints")
        or device.get("consumesCounters")
        or any(
            name in attribute
            for attribute in devices.attributes_of(device).values()
            for name in devices.LIST_ATTRIBUTES
        )
        for device in listed
    )
    return limits.SLICE_ADVANCED_DEVICES_MAX if advanced else limits.SLICE_DEVICES_MAX


def _counter_set(found: Found, counter_set: Fields, path: Path) -> None:
    checks.label_required(found, counter_set.get("name") or "", path / "name")
    devices.counters(found, counter_set, path / "counters")


def _partition_type(found: Found, spec: Fields) -> None:
    """The attribute that tells partitions apart must be a string on each of them."""
    name, path = spec.get("partitionTypeAttribute"), _SPEC / "partitionTypeAttribute"
    if name is None:
        return
    bad_name = checks.full_name_errors(name, path)
    found.declare(*bad_name)
    partitions = [
        (at, one) for at, one in enumerate(spec.get("devices") or ()) if one.get("consumesCounters")
    ]
    if not partitions:
        text = "may only be set on a slice which declares devices that consume counters"
        found.add(field.invalid(path, name, text))
    for at, device in partitions if not bad_name else ():
        attributes = devices.attributes_of(device)
        # In the driver's own domain the domain may be left out.
        attribute = attributes.get(name) or attributes.get(name.removeprefix(f"{spec.get('driver')}/"))
        here = ((_SPEC / "devices")[at] / "attributes")[name]
        if attribute is None:
            found.add(field.required(here, "a device that consumes counters must have the partition type"))
        elif attribute.get("string") is None:
            found.add(field.invalid(here, attribute, "the partition type must be a string"))
