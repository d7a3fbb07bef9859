"""Pods, and what makes pods, as they were written before 1.31: `source` around the name of a claim. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from allot.api import Fields, Quantity

_TEMPLATE = ("spec", "template", "spec")
_WHERE = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "ReplicationController": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "Deployment": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "Job": _TEMPLATE,
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE),
}


def pod_spec(document: Fields) -> Fields | None:
    """The spec of the pods that a document stands for; None where it stands for none."""
    found: Any = document
    for member in _WHERE.get(str(document.get("kind")), ("",)):
        found = found.get(member) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def flatten_sources(spec: Fields) -> Iterator[str]:
    """Puts what stands under `source` where it belongs; says of which claims."""
    claims = spec.get("resourceClaims")
    for claim in claims if isinstance(claims, list) else ():
        if isinstance(claim, dict) and isinstance(claim.get("source"), dict):
            claim.update(claim.pop("source"))
            yield str(claim.get("name"))


def containers(spec: Mapping[str, Any]) -> Iterator[Fields]:
    for sort in ("initContainers", "containers"):
        for one in spec.get(sort) or ():
            if isinstance(one, dict):
                yield one


def asked_for(spec: Mapping[str, Any], resource: str) -> dict[str, str]:
    """How much of a resource each container asks for; those that ask for nothing are not there."""
    found = {}
    for one in containers(spec):
        resources = one.get("resources") or {}
        said = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        if str(said.get(resource, "0")) != "0":
            found[str(one.get("name"))] = str(said[resource])
    return found


def renamed(spec: Fields, before: str, after: str) -> Fields:
    """What a merge of the containers has to say so that they ask under another name, as a strategic patch.
    A container that asks under both asks for as much as before."""
    patch: Fields = {}
    for sort in ("initContainers", "containers"):
        changed = []
        for one in spec.get(sort) or ():
            resources = {}
            for side in ("limits", "requests"):
                amounts = (one.get("resources") or {}).get(side) or {}
                if before in amounts:
                    resources[side] = {before: None, after: _sum(amounts[before], amounts.get(after))}
            if resources:
                changed.append({"name": one.get("name"), "resources": resources})
        if changed:
            patch[sort] = changed
    return patch


def _sum(amount: Any, more: Any) -> Any:
    return amount if more is None else str(Quantity.parse(str(amount)) + Quantity.parse(str(more)))
