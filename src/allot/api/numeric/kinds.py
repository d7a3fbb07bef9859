"""The kind of numeric parameters, as the server knows it."""

from collections.abc import Sequence
from typing import Any

from ..kind import Column, Fields, Guard, Kind, Rules, Version
from ..resource.columns import AGE, NAME
from ..resource.limits import GROUP
from . import capacity, limits

_COLUMNS = (
    NAME,
    Column("Node", description="The node that has the capacity."),
    Column("Driver", description="The driver that offers it."),
    Column("Instances", type="integer", description="How many discrete resources the object describes."),
    AGE,
)


def _cells(fields: Fields, age: str) -> Sequence[Any]:
    return [
        fields["metadata"]["name"],
        fields.get("nodeName") or "",
        fields.get("driverName") or "",
        len(fields.get("instances") or ()),
        age,
    ]


NODE_RESOURCE_CAPACITY = Kind(
    GROUP,
    "NodeResourceCapacity",
    "noderesourcecapacities",
    (Version(limits.VERSION, f"io.k8s.api.resource.{limits.VERSION}.NodeResourceCapacity"),),
    hub=limits.VERSION,
    namespaced=False,
    singular="noderesourcecapacity",
    guard=Guard.CAPACITY_OFFERED,
    rules=Rules(validate_create=capacity.validate_create, validate_update=capacity.validate_update),
    columns=_COLUMNS,
    cells=_cells,
    selectable={
        "nodeName": lambda fields: fields.get("nodeName") or "",
        "driverName": lambda fields: fields.get("driverName") or "",
    },
    selects_namespace=False,
)
