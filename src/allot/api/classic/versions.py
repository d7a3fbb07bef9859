"""v1alpha1 and the hub form of claims and templates, both ways.

The hub form is v1. v1alpha1 differs in two places:

    v1                                       v1alpha1
    spec.devices.requests: [classic]         absent: it follows from spec.resourceClassName
    status.allocation.nodeSelector           status.allocation.availableOnNodes

Clients that know structured claims alone see a claim that asks for one device of a class, which nobody but
its driver can give it.

What it promises
    CLASSIC1  v1 -> v1alpha1 -> v1 gives back the same object, of whichever shape.
    CLASSIC2  v1alpha1 -> v1 -> v1alpha1 likewise.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..kind import Fields
from ..resource import shape
from ..resource.reading import at

_REQUEST_NAME = "classic"


def devices_of(class_name: str) -> Fields:
    """What the stored form of a classic claim asks for."""
    asked = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": 1}
    return {"requests": [{"name": _REQUEST_NAME, "exactly": asked}]}


def claim_from_v1alpha1(fields: Fields) -> Fields:
    _make_request(fields.get("spec"))
    _rename(at(fields, "status", "allocation"), "availableOnNodes", "nodeSelector")
    return fields


def claim_to_v1alpha1(fields: Fields) -> Fields:
    _hide_request(fields.get("spec"))
    _rename(at(fields, "status", "allocation"), "nodeSelector", "availableOnNodes")
    return fields


def template_from_v1alpha1(fields: Fields) -> Fields:
    _make_request(at(fields, "spec", "spec"))
    return fields


def template_to_v1alpha1(fields: Fields) -> Fields:
    _hide_request(at(fields, "spec", "spec"))
    return fields


def in_v1alpha1(spec: Mapping[str, Any]) -> Fields:
    """The spec of a classic claim in its stored form, as v1alpha1 shows it; the argument stays as it is."""
    shown = dict(spec)
    _hide_request(shown)
    return shown


def default_claim(fields: Fields, now: datetime) -> None:
    _default_mode(fields.get("spec"))


def default_template(fields: Fields, now: datetime) -> None:
    _default_mode(at(fields, "spec", "spec"))


def _make_request(spec: Fields | None) -> None:
    if spec and spec.get("resourceClassName"):
        spec.setdefault("devices", devices_of(spec["resourceClassName"]))


def _hide_request(spec: Fields | None) -> None:
    """Only what was made: somebody else's request is shown, so that nothing is lost."""
    class_name = spec.get("resourceClassName") if spec else None
    if spec and class_name and spec.get("devices") == devices_of(class_name):
        del spec["devices"]


def _rename(holder: Fields | None, this: str, that: str) -> None:
    if holder is not None and this in holder:
        holder[that] = holder.pop(this)


def _default_mode(spec: Fields | None) -> None:
    """A structured claim, which v1alpha1 shows as well, has no mode."""
    if spec and spec.get("resourceClassName") and not spec.get("allocationMode"):
        spec["allocationMode"] = shape.WAIT_FOR_FIRST_CONSUMER
