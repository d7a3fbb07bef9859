"""What the server fills in while it reads, in the form of the request's version.

v1 and v1beta2 default every `exactly`; v1beta1 has no such member and goes by
the class: without one the flat fields belong to nobody.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from ..age import timestamp
from ..kind import Fields
from .reading import at, objects


def claim(fields: Fields, now: datetime) -> None:
    _requests(objects(fields, "spec", "devices", "requests"))


def claim_v1beta1(fields: Fields, now: datetime) -> None:
    _requests_v1beta1(objects(fields, "spec", "devices", "requests"))


def template(fields: Fields, now: datetime) -> None:
    _requests(objects(fields, "spec", "spec", "devices", "requests"))


def template_v1beta1(fields: Fields, now: datetime) -> None:
    _requests_v1beta1(objects(fields, "spec", "spec", "devices", "requests"))


def slice_(fields: Fields, now: datetime) -> None:
    _taints(objects(fields, "spec", "devices"), now)


def slice_v1beta1(fields: Fields, now: datetime) -> None:
    devices = objects(fields, "spec", "devices")
    _taints((basic for device in devices if isinstance(basic := device.get("basic"), dict)), now)


def rule(fields: Fields, now: datetime) -> None:
    taint = at(fields, "spec", "taint")
    if isinstance(taint, dict):
        _time_added(taint, now)


def _requests(requests: Iterator[Fields]) -> None:
    for request in requests:
        exactly = request.get("exactly")
        if isinstance(exactly, dict):
            _mode_and_count(exactly)
            _operators(exactly)
        _alternatives(request)


def _requests_v1beta1(requests: Iterator[Fields]) -> None:
    for request in requests:
        if request.get("deviceClassName"):
            _mode_and_count(request)
        _operators(request)
        _alternatives(request)


def _alternatives(request: Fields) -> None:
    if "firstAvailable" in request:
        for one in objects(request, "firstAvailable"):
            _mode_and_count(one)
            _operators(one)


def _mode_and_count(asked: Fields) -> None:
    if not asked.get("allocationMode"):
        asked["allocationMode"] = "ExactCount"
    if asked["allocationMode"] == "ExactCount" and not asked.get("count"):
        asked["count"] = 1


def _operators(asked: Fields) -> None:
    """The schema fills in an operator that is absent; an empty one is as good as none."""
    if "tolerations" in asked:
        for toleration in objects(asked, "tolerations"):
            if toleration.get("operator") == "":
                toleration["operator"] = "Equal"


def _taints(holders: Iterable[Fields], now: datetime) -> None:
    for holder in holders:
        for taint in objects(holder, "taints"):
            _time_added(taint, now)


def _time_added(taint: Fields, now: datetime) -> None:
    if not taint.get("timeAdded"):
        taint["timeAdded"] = timestamp(now)
