"""What devices take from the node's own cpu, memory and huge pages. KEP-5517."""

from .. import field
from ..field import Path
from ..kind import Fields
from ..quantity import Quantity
from .found import Found


def node_allocatable_resources(found: Found, device: Fields, path: Path) -> None:
    for name, resource in (device.get("nodeAllocatableResources") or {}).items():
        here = path[name]
        if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
            found.add(field.invalid(here, name, "must be a node allocatable resource name"))
        mapping, overhead = resource.get("mapping"), resource.get("overhead")
        if mapping is None and overhead is None:
            found.add(field.required(here, "at least one of mapping or overhead must be set"))
        if mapping is not None:
            _mapping(found, mapping, device.get("capacity") or {}, here / "mapping")
        if overhead is not None:
            _overhead(found, overhead, here / "overhead")


def _mapping(found: Found, mapping: Fields, capacity: Fields, path: Path) -> None:
    key, per_capacity = mapping.get("capacityKey"), mapping.get("capacityMultiplier")
    if key == "":
        found.add(field.invalid(path / "capacityKey", "", "capacityKey must not be an empty string"))
    elif key is not None and key not in capacity:
        found.add(field.not_found(path / "capacityKey", key))
    if key is not None and per_capacity is None:
        text = "capacityMultiplier is required when capacityKey is set"
        found.declare(field.required(path / "capacityMultiplier", text))
    if key is None and per_capacity is not None:
        text = "capacityKey is required when capacityMultiplier is set"
        found.declare(field.required(path / "capacityKey", text))
    for name in ("capacityMultiplier", "deviceMultiplier") if key is not None else ("deviceMultiplier",):
        amount = mapping.get(name)
        if amount is not None and Quantity.parse(amount).sign <= 0:
            found.add(field.invalid(path / name, amount, "must be positive"))


def _overhead(found: Found, overhead: Fields, path: Path) -> None:
    parts = {name: overhead[name] for name in ("perPod", "perContainer") if overhead.get(name) is not None}
    if not parts:
        found.add(field.invalid(path, "", "at least one of perPod or perContainer must be set"))
    for name, amount in parts.items():
        if Quantity.parse(amount).sign < 0:
            found.add(field.invalid(path / name, amount, "must be non-negative"))
