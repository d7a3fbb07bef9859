"""v1beta1 and the hub form, both ways. Digest 2.1.

The hub form is v1; v1beta2 is the same. v1beta1 differs in three places:

    v1                                    v1beta1
    request.exactly.{class, count, ...}   flat, directly on the request
    device.{attributes, taints, ...}      device.basic.{attributes, taints, ...}
    spec.nodeName, spec.allNodes absent   "" and false mean the same

What it promises
    V1  v1 -> v1beta1 -> v1 gives back the same object, unknown fields too.
    V2  v1beta1 -> v1 -> v1beta1 likewise, but for members that v1beta1 cannot tell
        from absent ones, such as an empty node name.
    V3  A member that belongs to the other version's shape is unknown in this one,
        as upstream has it: a v1 body sent to v1beta1 has no `exactly`.

Unknown members keep their side: those of `exactly` travel through v1beta1 in a
member `exactly`, those beside `basic` travel through v1 in a member `basic`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ..kind import Fields
from .reading import at, objects

EXACT_FIELDS = frozenset(
    (
        "deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations",
        "capacity", "derivedAttributes",
    )
)  # fmt: skip
DEVICE_FIELDS = frozenset(
    (
        "name", "attributes", "capacity", "consumesCounters", "nodeName", "nodeSelector", "allNodes",
        "taints", "bindsToNode", "bindingConditions", "bindingFailureConditions",
        "allowMultipleAllocations", "nodeAllocatableResources",
    )
)  # fmt: skip


# Claims and templates


def claim_to_hub(fields: Fields) -> Fields:
    """From v1 and v1beta2."""
    _drop_misplaced(objects(fields, "spec", "devices", "requests"))
    return fields


def template_to_hub(fields: Fields) -> Fields:
    _drop_misplaced(objects(fields, "spec", "spec", "devices", "requests"))
    return fields


def claim_from_v1beta1(fields: Fields) -> Fields:
    _change_each(at(fields, "spec", "devices", "requests"), _lifted)
    return fields


def template_from_v1beta1(fields: Fields) -> Fields:
    _change_each(at(fields, "spec", "spec", "devices", "requests"), _lifted)
    return fields


def claim_to_v1beta1(fields: Fields) -> Fields:
    _change_each(at(fields, "spec", "devices", "requests"), _flattened)
    return fields


def template_to_v1beta1(fields: Fields) -> Fields:
    _change_each(at(fields, "spec", "spec", "devices", "requests"), _flattened)
    return fields


def _drop_misplaced(requests: Iterable[Fields]) -> None:
    """V3, for a v1beta1 body sent to v1."""
    for request in requests:
        if not EXACT_FIELDS.isdisjoint(request):
            for name in EXACT_FIELDS & request.keys():
                del request[name]


def _lifted(request: Fields) -> Fields:
    unknown = request.pop("exactly", None)
    exactly = {key: request.pop(key) for key in list(request) if key in EXACT_FIELDS}
    if all(_is_absent(inner) for inner in exactly.values()):
        exactly = {}
    if isinstance(unknown, dict):
        exactly |= {key: inner for key, inner in unknown.items() if key not in EXACT_FIELDS}
    return {**request, "exactly": exactly} if exactly else request


def _is_absent(value: Any) -> bool:
    return value is None or value == "" or (value == 0 and not isinstance(value, bool))


def _flattened(request: Fields) -> Fields:
    exactly = request.pop("exactly", None) or {}
    known = {key: inner for key, inner in exactly.items() if key in EXACT_FIELDS}
    unknown = {key: inner for key, inner in exactly.items() if key not in EXACT_FIELDS}
    # Absence of a class cannot be said in v1beta1: a request without one shows "".
    flat = {**request, "deviceClassName": "", **known}
    return {**flat, "exactly": unknown} if unknown else flat


# Slices


def slice_to_hub(fields: Fields) -> Fields:
    for device in objects(fields, "spec", "devices"):
        if "basic" in device:
            _keep_unknown_of_basic(device)
    return fields


def slice_from_v1beta1(fields: Fields) -> Fields:
    spec = fields.get("spec")
    if isinstance(spec, dict):
        if spec.get("nodeName") == "":
            del spec["nodeName"]
        if spec.get("allNodes") is False:
            del spec["allNodes"]
        _change_each(spec.get("devices"), _unwrapped)
    return fields


def slice_to_v1beta1(fields: Fields) -> Fields:
    _change_each(at(fields, "spec", "devices"), _wrapped)
    return fields


def _keep_unknown_of_basic(device: Fields) -> None:
    """V3, for a v1beta1 body sent to v1."""
    basic = device.pop("basic")
    if isinstance(basic, dict):
        unknown = {k: v for k, v in basic.items() if k not in DEVICE_FIELDS and k != "basic"}
        if unknown:
            device["basic"] = unknown


def _unwrapped(device: Fields) -> Fields:
    name = {"name": device["name"]} if "name" in device else {}
    beside = {key: inner for key, inner in device.items() if key not in DEVICE_FIELDS and key != "basic"}
    basic = device.get("basic")
    inside = {k: v for k, v in basic.items() if k not in ("name", "basic")} if isinstance(basic, dict) else {}
    return {**name, **inside, **({"basic": beside} if beside else {})}


def _wrapped(device: Fields) -> Fields:
    beside = device.pop("basic", None) or {}
    name = {"name": device.pop("name")} if "name" in device else {}
    return {**name, **beside, "basic": device}


def _change_each(items: Any, change: Callable[[Fields], Fields]) -> None:
    if isinstance(items, list):
        items[:] = [change(item) if isinstance(item, dict) else item for item in items]
