"""Nodes.

A node agent registers its node with status and keeps the status up to date; the
spec is for people and controllers, who cordon and taint.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ... import names
from ...compute import nodes as compute
from ...field import FieldError, Path, duplicate, forbidden, invalid, required, unsupported
from ...kind import Column, Fields, Kind, Rules, Version, WriteContext
from ..amounts import validate_amount
from ..labels import validate_labels
from ..reading import items, obj, section

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE_LABEL = "kubernetes.io/role"
_SPEC = Path("spec")
_STATUS = Path("status")


def _default(node: Fields, now: datetime) -> None:
    spec, status = section(node, "spec"), section(node, "status")
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]


def validate_taints(taints: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    seen = set()
    for index, taint in enumerate(taints):
        at = path[index]
        key, value, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
        found += [invalid(at / "key", key, wrong) for wrong in names.qualified(key)]
        found += [invalid(at / "value", value, wrong) for wrong in names.label_value(value)]
        if not effect:
            found.append(required(at / "effect"))
        elif effect not in TAINT_EFFECTS:
            found.append(unsupported(at / "effect", effect, TAINT_EFFECTS))
        if (key, effect) in seen:
            found.append(duplicate(at, dict(taint)))
        seen.add((key, effect))
    return found


def _validate_status_amounts(node: Fields) -> list[FieldError]:
    found = []
    for name in ("capacity", "allocatable"):
        for resource, amount in obj(node, "status", name).items():
            found += validate_amount(resource, amount, (_STATUS / name)[resource])
    return found


def _validate_addresses(node: Fields) -> list[FieldError]:
    found, seen = [], set()
    for index, address in enumerate(items(node, "status", "addresses")):
        key = (address.get("type"), address.get("address"))
        if key in seen:
            found.append(duplicate((_STATUS / "addresses")[index], address))
        seen.add(key)
    return found


def _prepare_create(node: Fields, context: WriteContext) -> None:
    compute.prepare(node, None, context.gates)


def _prepare_status(new: Fields, old: Fields, context: WriteContext) -> None:
    compute.prepare(new, old, context.gates)


def _validate_create(node: Fields, context: WriteContext) -> list[FieldError]:
    return [
        *validate_labels(obj(node, "metadata", "labels"), Path("metadata.labels")),
        *validate_taints(items(node, "spec", "taints"), _SPEC / "taints"),
        *_validate_cidrs(node),
        *_validate_status_amounts(node),
        *compute.errors(node),
    ]


def _validate_cidrs(node: Fields) -> list[FieldError]:
    cidrs = items(node, "spec", "podCIDRs")
    if len(cidrs) > 2:
        text = "may specify no more than one CIDR for each IP family"
        return [invalid(_SPEC / "podCIDRs", cidrs, text)]
    return []


def _validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    found = validate_taints(items(new, "spec", "taints"), _SPEC / "taints")
    was, now = obj(old, "spec"), obj(new, "spec")
    if was.get("providerID") and was.get("providerID") != now.get("providerID"):
        found.append(
            forbidden(_SPEC / "providerID", 'node updates may not change providerID except from "" to valid')
        )
    if was.get("podCIDRs") and was.get("podCIDRs") != now.get("podCIDRs"):
        found.append(
            forbidden(_SPEC / "podCIDRs", 'node updates may not change podCIDR except from "" to valid')
        )
    movable = {"podCIDR", "podCIDRs", "providerID", "taints", "unschedulable", "configSource"}
    if _without(was, movable) != _without(now, movable):
        found.append(forbidden(_SPEC, "node updates may only change labels, taints, or capacity"))
    return found


def _without(spec: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in keys and value is not None}


def _validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    return [*_validate_status_amounts(new), *_validate_addresses(new), *compute.errors(new)]


COLUMNS = (
    Column("Name", format="name", description="Name must be unique within a cluster."),
    Column("Status", description="Ready or not, and whether new pods are kept away."),
    Column("Roles", description="What the node is labelled to be."),
    Column("Age", description="How long ago the object was created."),
    Column("Version", description="The version of the node agent."),
    Column("Internal-IP", priority=1, description="An address inside the cluster."),
    Column("External-IP", priority=1, description="An address outside the cluster."),
    Column("OS-Image", priority=1, description="What the machine runs."),
    Column("Kernel-Version", priority=1, description="The kernel of the machine."),
    Column("Container-Runtime", priority=1, description="What runs containers there."),
)


def _cells(node: Fields, age: str) -> Sequence[Any]:
    info = obj(node, "status", "nodeInfo")
    return [
        node["metadata"]["name"],
        _readiness(node),
        ",".join(roles(obj(node, "metadata", "labels"))) or "<none>",
        age,
        info.get("kubeletVersion") or "",
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _readiness(node: Fields) -> str:
    ready = [c for c in items(node, "status", "conditions") if c.get("type") == "Ready"]
    words = [("Ready" if c.get("status") == "True" else "NotReady") for c in ready] or ["Unknown"]
    if obj(node, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def roles(labels: Mapping[str, Any]) -> list[str]:
    found = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)} - {""}
    if labels.get(ROLE_LABEL):
        found.add(labels[ROLE_LABEL])
    return sorted(found)


def _address(node: Fields, kind: str) -> str:
    addresses = items(node, "status", "addresses")
    return next((a.get("address", "") for a in addresses if a.get("type") == kind), "<none>")


NODE = Kind(
    group="",
    kind="Node",
    plural="nodes",
    singular="node",
    short_names=("no",),
    versions=(Version("v1", "io.k8s.api.core.v1.Node", default=_default),),
    hub="v1",
    namespaced=False,
    has_status=True,
    status_on_create=True,
    rules=Rules(
        prepare_create=_prepare_create,
        prepare_status=_prepare_status,
        validate_create=_validate_create,
        validate_update=_validate_update,
        validate_status=_validate_status,
    ),
    columns=COLUMNS,
    cells=_cells,
    selectable={
        "spec.unschedulable": lambda node: "true" if obj(node, "spec").get("unschedulable") else "false"
    },
)
