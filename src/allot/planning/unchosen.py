"""A pod without what was decided about it: as another one would be that is made in its place."""

from collections.abc import Mapping
from typing import Any

from allot.api import Fields, compute


def unchosen(pod: Mapping[str, Any]) -> Fields:
    """Without a node, and without what its containers were given there (KEP-14). Claims stay named."""
    metadata, spec, status = ({**(pod.get(part) or {})} for part in ("metadata", "spec", "status"))
    if metadata.get("annotations"):
        kept = {**metadata["annotations"]}
        kept.pop(compute.limits.RECORD_ANNOTATION, None)
        metadata["annotations"] = kept
    for part in ("containers", "initContainers"):
        if spec.get(part):
            spec[part] = [_unrecorded(one) for one in spec[part]]
    spec.pop("nodeName", None)
    status.pop("nominatedNodeName", None)
    return {**pod, "metadata": metadata, "spec": spec, "status": status}


def _unrecorded(container: Mapping[str, Any]) -> Fields:
    return {name: value for name, value in container.items() if name != "allocatedComputeResources"}
