"""C4: a generated claim is used by its own pod alone."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..recording import Seen


class OwnClaims:
    def __init__(self) -> None:
        self._owner: dict[tuple[str, str], str] = {}  # claim -> uid of the pod it was made for
        self._used: dict[str, list[tuple[str, str]]] = {}  # pod uid -> generated claims it names

    def see(self, seen: Seen) -> Iterator[str]:
        key = (seen.object.namespace, seen.object.name)
        if seen.resource == "resourceclaims":
            if seen.type == "DELETED":
                self._owner.pop(key, None)
                return
            owner = _controller(seen.fields)
            if owner:
                self._owner[key] = owner
                reserved = (seen.fields.get("status") or {}).get("reservedFor") or ()
                strangers = [one["name"] for one in reserved if one["uid"] != owner]
                if strangers:
                    yield f"C4: claim {key[1]} was made for one pod and is reserved for {strangers}"
        elif seen.type == "DELETED":
            self._used.pop(seen.object.uid, None)
        else:
            statuses = (seen.fields.get("status") or {}).get("resourceClaimStatuses") or ()
            names = [one["resourceClaimName"] for one in statuses if one.get("resourceClaimName")]
            self._used[seen.object.uid] = [(seen.object.namespace, name) for name in names]

    def rest(self) -> Iterator[str]:
        for pod, claims in self._used.items():
            for claim in claims:
                owner = self._owner.get(claim, pod)
                if owner != pod:
                    yield f"C4: the pod {pod} names the claim {claim[1]}, which belongs to {owner}"


def _controller(fields: Mapping[str, Any]) -> str | None:
    owners = fields["metadata"].get("ownerReferences") or ()
    return next((one["uid"] for one in owners if one.get("controller")), None)
