"""v1beta1 and the hub form, both ways.

The hub form is v1; v1beta2 is the same. v1beta1 differs in three places:

    v1                                    v1beta1
    request.exactly.{class, count, ...}   flat, directly on the request
    device.{attributes, taints, ...}      device.basic.{attributes, taints, ...}
    spec.nodeName, spec.allNodes absent   "" and false mean the same

What it promises
    VERS1  v1 -> v1beta1 -> v1 gives back the same object.
    VERS2  v1beta1 -> v1 -> v1beta1 likewise, but for members that v1beta1 cannot tell from
           absent ones, such as an empty node name.

What is converted has been held to the shape of its version, so a member that belongs
to the other version's shape alone is not there any more: a v1 body that is sent to
v1beta1 loses its `exactly`, as upstream has it.
"""

from collections.abc import Callable
from typing import Any

from ..kind import Fields
from .reading import at

EXACT_FIELDS = frozenset(
    (
        "deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations",
        "capacity", "derivedAttributes",
    )
)  # fmt: skip


# Claims and templates


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


def _lifted(request: Fields) -> Fields:
    exactly = {key: request.pop(key) for key in list(request) if key in EXACT_FIELDS}
    is_asked = not all(_is_absent(inner) for inner in exactly.values())
    return {**request, "exactly": exactly} if is_asked else request


def _is_absent(value: Any) -> bool:
    return value is None or value == "" or (value == 0 and not isinstance(value, bool))


def _flattened(request: Fields) -> Fields:
    exactly = request.pop("exactly", None) or {}
    # Absence of a class cannot be said in v1beta1: a request without one shows "".
    return {**request, "deviceClassName": "", **exactly}


# Slices


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


def _unwrapped(device: Fields) -> Fields:
    name = {"name": device["name"]} if "name" in device else {}
    return {**name, **(device.get("basic") or {})}


def _wrapped(device: Fields) -> Fields:
    name = {"name": device.pop("name")} if "name" in device else {}
    return {**name, "basic": device}


def _change_each(items: Any, change: Callable[[Fields], Fields]) -> None:
    if isinstance(items, list):
        items[:] = [change(item) if isinstance(item, dict) else item for item in items]
