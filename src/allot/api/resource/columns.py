"""What `kubectl get` shows; `-o wide` of claims is our own addition.

Upstream's table of claims stops at the state. Whoever waits for a pod wants to
know which devices, on which node, of which class, and who uses them.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ..age import since
from ..kind import Column, Fields
from .claimstatus import results
from .permissions import only_node
from .reading import at, objects

NAME = Column("Name", format="name", description="Name must be unique within a namespace.")
AGE = Column("Age", description="How long ago the object was created.")

CLAIM = (
    NAME,
    Column(
        "State",
        description="deleted, pending, allocated, reserved, deallocation-requested: whatever applies.",
    ),
    AGE,
    Column(
        "Devices", priority=1, description="The allocated devices, as driver/pool/device, or their driver."
    ),
    Column("Node", priority=1, description="Where the devices can be used."),
    Column("Class", priority=1, description="The device classes or the resource class that the claim names."),
    Column("Pods", priority=1, description="Who the claim is reserved for."),
)

SLICE = (
    NAME,
    Column("Node", description="The node that can reach the devices, if it is only one."),
    Column("Driver", description="Who published the slice."),
    Column("Pool", description="The pool that the devices belong to."),
    AGE,
)

RULE = (
    NAME,
    Column("Key", description="The key of the taint."),
    Column("Value", description="The value of the taint."),
    Column("Effect", description="None, NoSchedule or NoExecute."),
    Column("TimeAdded", description="How long ago the taint was added."),
    AGE,
)

_SHOWN_MAX = 3
NONE = "<none>"


def claim(fields: Fields, age: str) -> Sequence[Any]:
    status = fields.get("status") or {}
    return [
        fields["metadata"]["name"],
        state(fields),
        age,
        _some(_devices(status)),
        _node(status),
        _some(dict.fromkeys(_classes(fields))),
        _some(str(one.get("name")) for one in status.get("reservedFor") or ()),
    ]


def state(claim: Fields) -> str:
    status = claim.get("status") or {}
    states = ["deleted"] if claim["metadata"].get("deletionTimestamp") else []
    if status.get("allocation") is None:
        states.append("pending")
    else:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
        if status.get("deallocationRequested"):
            states.append("deallocation-requested")
    return ",".join(states)


def _devices(status: Fields) -> Iterable[str]:
    """What a classic claim holds is its driver's to know."""
    driver = status.get("driverName")
    return [driver] if driver else map(_device, results(status))


def _device(result: Fields) -> str:
    name = "/".join(str(result.get(part)) for part in ("driver", "pool", "device"))
    return f"{name} (admin)" if result.get("adminAccess") else name


def _node(status: Fields) -> str:
    allocation = status.get("allocation")
    if allocation is None:
        return NONE
    if allocation.get("nodeSelector") is None:
        return "<any>"
    return only_node(allocation) or "<several>"


def _classes(fields: Fields) -> Iterable[str]:
    for request in objects(fields, "spec", "devices", "requests"):
        exactly = request.get("exactly")
        if exactly is not None:
            yield str(exactly.get("deviceClassName"))
        yield from (str(one.get("deviceClassName")) for one in objects(request, "firstAvailable"))


def _some(names: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    listed = list(names)
    shown = ",".join(listed[:_SHOWN_MAX])
    more = len(listed) - _SHOWN_MAX
    return f"{shown} + {more} more..." if more > 0 else shown or NONE


def slice_(fields: Fields, age: str) -> Sequence[Any]:
    spec = fields.get("spec") or {}
    name = fields["metadata"]["name"]
    return [name, spec.get("nodeName") or "", spec.get("driver") or "", at(spec, "pool", "name") or "", age]


def rule(fields: Fields, now: datetime) -> Sequence[Any]:
    taint, metadata = at(fields, "spec", "taint") or {}, fields["metadata"]
    said = (taint.get(name) or "" for name in ("key", "value", "effect"))
    return [
        metadata["name"],
        *said,
        since(taint.get("timeAdded"), now),
        since(metadata.get("creationTimestamp"), now),
    ]
