"""Pods.

A pod is bound, run and ended by others; here is what the API itself knows: what
a pod means when it does not say, which pods make sense, and what may change in
one that exists. The rules of the spec are in `podspec`, since templates share
them; those of claims are the resource group's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ... import names
from ...compute import pods as records
from ...field import FieldError, Path, forbidden, invalid
from ...kind import Fields, Guard, Kind, Part, Rules, Version, WriteContext
from ...resource import pods as claims
from ..podspec import (
    default_pod,
    keep_the_rest,
    merge_label_keys,
    qos_class,
    respelled_at,
    validate_ephemeral,
    validate_pod_update,
    validate_spec,
)
from ..reading import items, obj, section, text
from . import pod_columns

GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_METADATA = Path("metadata")
_SPEC = Path("spec")
_STATUS = Path("status")


def _prepare_create(pod: Fields, context: WriteContext) -> None:
    spec = section(pod, "spec")
    status = pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if items(spec, "schedulingGates"):
        status["conditions"] = [dict(GATED)]
    merge_label_keys(pod)
    claims.drop_gated(pod, None, context.gates)
    records.drop_gated(pod, None, context.gates)


def _prepare_update(new: Fields, old: Fields, context: WriteContext) -> None:
    claims.drop_gated(new, old, context.gates)
    records.keep_unsaid(new, old)


def _prepare_status(new: Fields, old: Fields, context: WriteContext) -> None:
    status = section(new, "status")
    claims.keep_unsaid_status(new, old)
    claims.drop_gated(new, old, context.gates)
    if not status.get("qosClass"):
        status["qosClass"] = text(old, "status", "qosClass") or qos_class(obj(new, "spec"))
    for one, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        if status.get(one) and not status.get(many):
            status[many] = [{"ip": status[one]}]
        elif status.get(many):
            status[one] = status[many][0].get("ip")


def _validate_create(pod: Fields, context: WriteContext) -> list[FieldError]:
    spec = obj(pod, "spec")
    found = validate_spec(spec, _SPEC, obj(pod, "metadata", "annotations"))
    if items(spec, "ephemeralContainers"):
        found.append(forbidden(_SPEC / "ephemeralContainers", "cannot be set on create"))
    return [*found, *records.annotation_errors(pod, {}, context.gates)]


def _validate_update(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    written = records.annotation_errors(new, old, context.gates)
    return [*_validate_mirror(new, old), *written, *validate_pod_update(new, old)]


def _validate_mirror(new: Fields, old: Fields) -> list[FieldError]:
    """A mirror pod is one from the first moment to the last: what a node may do to it depends on that."""
    key = claims.MIRROR_ANNOTATION
    was, now = obj(old, "metadata", "annotations").get(key), obj(new, "metadata", "annotations").get(key)
    if was == now:
        return []
    change = "add" if was is None else "remove or update"
    return [forbidden((_METADATA / "annotations")[key], f"may not {change} the annotation of mirror pods")]


def _validate_status(new: Fields, old: Fields, context: WriteContext) -> list[FieldError]:
    found = [*_validate_mirror(new, old), *claims.status_errors(new)]
    found += records.annotation_errors(new, old, context.gates)
    was, now = text(old, "status", "qosClass"), text(new, "status", "qosClass")
    if was and now != was:
        found.append(invalid(_STATUS / "qosClass", now, "field is immutable"))
    policy = text(new, "spec", "restartPolicy")
    if policy != "Always":
        found += _validate_endings(new, old, policy)
    for index, address in enumerate(items(new, "status", "podIPs")):
        found += [
            invalid((_STATUS / "podIPs")[index], address.get("ip") or "", wrong)
            for wrong in names.ip_address(address.get("ip") or "")
        ]
    return found


def _validate_endings(new: Fields, old: Fields, policy: str) -> list[FieldError]:
    """A container that ended and is not to be restarted stays ended."""
    by_name = {status.get("name"): status for status in items(new, "status", "containerStatuses")}
    found = []
    for index, status in enumerate(items(old, "status", "containerStatuses")):
        ended = obj(status, "state").get("terminated")
        if ended is None or (policy == "OnFailure" and ended.get("exitCode")):
            continue
        now = by_name.get(status.get("name"))
        if now is not None and obj(now, "state").get("terminated") is None:
            at = (_STATUS / "containerStatuses")[index] / "state"
            found.append(forbidden(at, "may not be transitioned to non-terminated state"))
    return found


def _warnings(new: Fields, old: Fields | None) -> list[str]:
    if old is not None:
        return []
    return [*_repeated(items(new, "spec", "imagePullSecrets"), "spec.imagePullSecrets")]


def _repeated(entries: Sequence[Mapping[str, Any]], where: str) -> list[str]:
    seen: set[str] = set()
    found = []
    for index, entry in enumerate(entries):
        name = entry.get("name") or ""
        if name in seen:
            found.append(f'{where}[{index}].name: duplicate name "{name}"')
        seen.add(name)
    return found


_SUBRESOURCES = ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward")

POD = Kind(
    group="",
    kind="Pod",
    plural="pods",
    singular="pod",
    short_names=("po",),
    categories=("all",),
    versions=(
        Version(
            "v1",
            "io.k8s.api.core.v1.Pod",
            respell=respelled_at("spec"),
            default=lambda pod, now: default_pod(pod),
            defaults_by_part=True,
        ),
    ),
    hub="v1",
    has_status=True,
    other_subresources=_SUBRESOURCES,
    refused_subresources=("proxy",),
    counts_generation=True,
    guard=Guard.COMPUTE_HELD,
    rules=Rules(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status=_prepare_status,
        validate_create=_validate_create,
        validate_update=_validate_update,
        validate_status=_validate_status,
        warnings=_warnings,
        parts={"ephemeralcontainers": Part(keep_the_rest, validate_ephemeral)},
    ),
    columns=pod_columns.COLUMNS,
    cells_at=pod_columns.cells,
    selectable={
        "spec.nodeName": lambda pod: text(pod, "spec", "nodeName"),
        "spec.restartPolicy": lambda pod: text(pod, "spec", "restartPolicy"),
        "spec.schedulerName": lambda pod: text(pod, "spec", "schedulerName"),
        "spec.serviceAccountName": lambda pod: text(pod, "spec", "serviceAccountName"),
        "spec.hostNetwork": lambda pod: "true" if obj(pod, "spec").get("hostNetwork") else "false",
        "status.phase": lambda pod: text(pod, "status", "phase"),
        "status.podIP": lambda pod: text(pod, "status", "podIP"),
        "status.podIPs": lambda pod: _addresses(pod),
        "status.nominatedNodeName": lambda pod: text(pod, "status", "nominatedNodeName"),
    },
)


def _addresses(pod: Fields) -> str:
    return ",".join(str(entry.get("ip", "")) for entry in items(pod, "status", "podIPs"))
