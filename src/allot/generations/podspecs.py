"""Pods, and what makes pods, as they were written before 1.31: `source` around the name of a claim. Pure."""

from collections.abc import Iterator
from typing import Any

from allot.api import Fields

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
