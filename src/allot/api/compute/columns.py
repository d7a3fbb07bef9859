"""What `kubectl get` shows of classes."""

from collections.abc import Iterable, Sequence
from typing import Any

from ..kind import Column, Fields
from ..resource.columns import AGE, NAME, NONE
from . import limits

CLASS = (
    NAME,
    Column("Resource", description="The raw name that the class draws on; all of them, of a group."),
    Column("Priority", type="integer", description="Devices in classes of lower priority are given first."),
    AGE,
    Column("Selector", priority=1, description="What devices must be like; alternatives by ` or `."),
    Column("DeviceClass", priority=1, description="What serves the name on nodes without such devices."),
    Column("Scope", priority=1, description="Whether nodes have it, or the cluster."),
)


def class_(fields: Fields, age: str) -> Sequence[Any]:
    spec = fields.get("spec") or {}
    return [
        fields["metadata"]["name"],
        spec.get("resourceName") or "+".join(_member(one) for one in spec.get("members") or ()),
        spec.get("priority") or 0,
        age,
        " or ".join(_alternative(one) for one in spec.get("resourceSelector") or ()) or NONE,
        spec.get("deviceClassName") or NONE,
        spec.get("scope") or limits.NODE_SCOPE,
    ]


def _member(member: Fields) -> str:
    count = member.get("amount") or member.get("count") or 1
    return f"{member.get('resourceName')}:{count}"


def _alternative(alternative: Fields) -> str:
    return ",".join(_expression(one) for one in alternative.get("matchExpressions") or ())


def _expression(need: Fields) -> str:
    parts: Iterable[str] = (
        need.get("key") or "",
        need.get("operator") or "",
        "|".join(need.get("values") or ()),
    )
    return " ".join(part for part in parts if part)
