"""A pod that is made in the place of another: the same, with claims of its own and nothing chosen yet."""

from typing import NamedTuple

from allot.api import Fields, Object, compute, encode
from allot.informers import Key
from allot.scheduler import ClaimInfo, PodInfo, Snapshot


class Again(NamedTuple):
    pod: PodInfo
    claims: tuple[ClaimInfo, ...]  # that are made for it, without devices


def again(pod: PodInfo, snapshot: Snapshot) -> Again:
    """It may be there beside the other one: name and uid are its own."""
    name = f"{pod.key.name}<again>"
    fields = _unchosen(pod.object.fields)
    status = fields["status"]
    claims, told = [], []
    for one in status.get("resourceClaimStatuses") or ():
        known = snapshot.claim(Key(pod.key.namespace, one.get("resourceClaimName") or ""))
        if known is None or not known.is_controlled_by(pod.uid):
            told.append(one)
            continue
        made = _claim(known, name, one["name"], f"{pod.uid}<again>")
        claims.append(made)
        told.append({"name": one["name"], "resourceClaimName": made.key.name})
    status["resourceClaimStatuses"] = told
    fields["metadata"] |= {"name": name, "uid": f"{pod.uid}<again>", "creationTimestamp": None}
    return Again(PodInfo.of(Object(encode(fields))), tuple(claims))


def _unchosen(fields: object) -> Fields:
    """Without what a scheduler or a node decided about it."""
    assert isinstance(fields, dict)
    metadata, spec, status = ({**(fields.get(part) or {})} for part in ("metadata", "spec", "status"))
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name != compute.limits.RECORD_ANNOTATION
    }
    for part in ("containers", "initContainers"):
        if spec.get(part):
            spec[part] = [_unrecorded(one) for one in spec[part]]
    spec.pop("nodeName", None)
    kept = {"resourceClaimStatuses": status.get("resourceClaimStatuses") or ()}
    return {**fields, "metadata": {**metadata, "annotations": annotations}, "spec": spec, "status": kept}


def _unrecorded(container: Fields) -> Fields:
    return {name: value for name, value in container.items() if name != "allocatedComputeResources"}


def _claim(claim: ClaimInfo, pod: str, entry: str, owner: str) -> ClaimInfo:
    fields = dict(claim.object.fields)
    references = [
        {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": owner, "controller": True},
    ]
    metadata = {
        **fields["metadata"],
        "name": f"{pod}-{entry}",
        "uid": f"{claim.uid}<again>",
        "ownerReferences": references,
    }
    return ClaimInfo.of(Object(encode({**fields, "metadata": metadata, "status": {}})))
