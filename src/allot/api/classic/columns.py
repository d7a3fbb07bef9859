"""What `kubectl get` shows of classes and of what scheduler and drivers tell each other."""

from collections.abc import Sequence
from typing import Any

from ..kind import Column, Fields
from ..resource.columns import AGE, NAME, NONE

CLASS = (
    NAME,
    Column("DriverName", description="The driver that allocates claims of the class."),
    AGE,
    Column("Parameters", priority=1, description="The object with the parameters of the class."),
)

POD_SCHEDULING = (
    NAME,
    Column("SelectedNode", description="The node that claims are to be allocated for."),
    AGE,
    Column("Potential", type="integer", priority=1, description="Nodes that drivers are asked about."),
    Column("Unsuitable", priority=1, description="For each claim, nodes that its driver has refused."),
)


def class_(fields: Fields, age: str) -> Sequence[Any]:
    return [
        fields["metadata"]["name"],
        fields.get("driverName") or "",
        age,
        _parameters(fields.get("parametersRef")),
    ]


def _parameters(reference: Fields | None) -> str:
    if reference is None:
        return NONE
    group = reference.get("apiGroup")
    kind = f"{reference.get('kind')}.{group}" if group else str(reference.get("kind"))
    return "/".join(
        part for part in (kind, reference.get("namespace") or "", str(reference.get("name"))) if part
    )


def pod_scheduling(fields: Fields, age: str) -> Sequence[Any]:
    spec, answers = fields.get("spec") or {}, (fields.get("status") or {}).get("resourceClaims") or ()
    refused = [f"{one.get('name')}:{len(one.get('unsuitableNodes') or ())}" for one in answers]
    return [
        fields["metadata"]["name"],
        spec.get("selectedNode") or "",
        age,
        len(spec.get("potentialNodes") or ()),
        ",".join(refused) or NONE,
    ]
