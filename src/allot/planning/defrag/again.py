"""A pod that is made in the place of another: the same, with claims of its own and nothing chosen yet."""

from typing import NamedTuple

from allot.api import Object, encode
from allot.informers import Key
from allot.scheduler import ClaimInfo, PodInfo, Snapshot

from ..unchosen import unchosen


class Again(NamedTuple):
    pod: PodInfo
    claims: tuple[ClaimInfo, ...]  # that are made for it, without devices


def again(pod: PodInfo, snapshot: Snapshot) -> Again:
    """It may be there beside the other one: name and uid are its own."""
    name = f"{pod.key.name}<again>"
    fields = unchosen(pod.object.fields)
    was = fields["status"].get("resourceClaimStatuses") or ()
    claims, told = [], []
    for one in was:
        known = snapshot.claim(Key(pod.key.namespace, one.get("resourceClaimName") or ""))
        if known is None or not known.is_controlled_by(pod.uid):
            told.append(one)
            continue
        made = _claim(known, name, one["name"], f"{pod.uid}<again>")
        claims.append(made)
        told.append({"name": one["name"], "resourceClaimName": made.key.name})
    fields["status"] = {"resourceClaimStatuses": told}
    fields["metadata"] |= {"name": name, "uid": f"{pod.uid}<again>", "creationTimestamp": None}
    return Again(PodInfo.of(Object(encode(fields))), tuple(claims))


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
