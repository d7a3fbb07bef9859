"""What took the place of the classes and parameters of classic claims.

A classic claim names a class, and perhaps an object with parameters that only its driver could read. A claim
of today says itself what it asks for. What corresponds to what nobody can know but the administrator:

    classes:
      fast-gpu: {deviceClassName: gpu.example.com}            a request, as it stands under `exactly`
    parameters:
      GpuParameters/two: {count: 2}                           laid over that of the class
"""

from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field
from typing import Any

from allot.api import Fields

Request = AnyMapping[str, Any]
_MEMBERS = frozenset({"classes", "parameters"})


class BadMapping(Exception):
    """What is wrong with it, where."""


@dataclass(frozen=True, slots=True)
class Mapping:
    classes: AnyMapping[str, Request] = field(default_factory=dict)
    parameters: AnyMapping[str, Request] = field(default_factory=dict)  # by Kind/name

    def with_classes(self, classes: AnyMapping[str, Request]) -> "Mapping":
        """What is said already comes first."""
        return Mapping({**classes, **self.classes}, self.parameters)


def read_mapping(written: Any) -> Mapping:
    """Raises BadMapping."""
    if not isinstance(written, dict):
        raise BadMapping("it is no object with the members `classes` and `parameters`")
    unknown = written.keys() - _MEMBERS
    if unknown:
        raise BadMapping(
            f"it has the member {min(map(str, unknown))!r}; known are `classes` and `parameters`"
        )
    classes = _requests(written, "classes")
    for name, request in classes.items():
        if not isinstance(request.get("deviceClassName"), str):
            raise BadMapping(f"classes.{name} names no deviceClassName")
    return Mapping(classes, _requests(written, "parameters"))


def _requests(written: Fields, member: str) -> dict[str, Request]:
    entries = written.get(member) or {}
    if not isinstance(entries, dict):
        raise BadMapping(f"{member} is no object")
    for name, request in entries.items():
        if not isinstance(name, str) or not isinstance(request, dict):
            raise BadMapping(f"{member}.{name} is no request, such as {{deviceClassName: gpu.example.com}}")
    return entries
