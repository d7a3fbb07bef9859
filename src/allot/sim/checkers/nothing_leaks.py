"""C3: once things are quiet, nobody holds what nobody needs."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..recording import Seen

FINISHED = ("Succeeded", "Failed")
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


class NothingLeaks:
    def __init__(self) -> None:
        self._pods: dict[str, Mapping[str, Any]] = {}
        self._claims: dict[str, Mapping[str, Any]] = {}

    def see(self, seen: Seen) -> Iterator[str]:
        world = self._pods if seen.resource == "pods" else self._claims
        if seen.type == "DELETED":
            world.pop(seen.object.uid, None)
        else:
            world[seen.object.uid] = seen.fields
        yield from ()

    def rest(self) -> Iterator[str]:
        for claim in self._claims.values():
            name, status = claim["metadata"]["name"], claim.get("status") or {}
            for consumer in status.get("reservedFor") or ():
                if consumer["resource"] == "pods" and not self._needs(consumer["uid"]):
                    yield f"C3: claim {name} is reserved for {consumer['name']}, which is gone or finished"
            owners = claim["metadata"].get("ownerReferences") or ()
            owner = next((one["uid"] for one in owners if one.get("controller")), None)
            if owner is not None and not self._needs(owner):
                yield f"C3: claim {name} was made for a pod that is gone or finished"
        yield from self._claims_made_twice()
        yield from self._pods_without_claims()

    def _claims_made_twice(self) -> Iterator[str]:
        seen: dict[tuple[str, str], str] = {}
        for claim in self._claims.values():
            metadata = claim["metadata"]
            owners = metadata.get("ownerReferences") or ()
            owner = next((one["uid"] for one in owners if one.get("controller")), None)
            entry = (metadata.get("annotations") or {}).get(POD_CLAIM_NAME)
            if owner is None or entry is None:
                continue
            other = seen.setdefault((owner, entry), metadata["name"])
            if other != metadata["name"]:
                yield f"C3: claims {other} and {metadata['name']} were made for the same entry of one pod"

    def _needs(self, uid: str) -> bool:
        pod = self._pods.get(uid)
        return pod is not None and (pod.get("status") or {}).get("phase") not in FINISHED

    def _pods_without_claims(self) -> Iterator[str]:
        names = {(c["metadata"]["namespace"], c["metadata"]["name"]) for c in self._claims.values()}
        for pod in self._pods.values():
            if (pod.get("status") or {}).get("phase") in FINISHED or pod["metadata"].get("deletionTimestamp"):
                continue
            claims = pod["spec"].get("resourceClaims") or ()
            wanted = [one for one in claims if one.get("resourceClaimTemplateName")]
            known = {
                one["name"]: one.get("resourceClaimName")
                for one in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
            }
            for one in wanted:
                claim = known.get(one["name"])
                if claim is None or (pod["metadata"]["namespace"], claim) not in names:
                    yield f"C3: pod {pod['metadata']['name']} waits for its claim {one['name']} for ever"
