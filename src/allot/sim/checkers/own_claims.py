"""C4: a generated claim is used by its own pod alone, and a foreign one of its name is left alone."""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import (
    POD_CLAIM_NAME,
    Fields,
    controller,
    is_leaving,
    is_special,
    place_of,
    recorded_claims,
    reserved,
)


class OwnClaims:
    follows = ("pods", "resourceclaims", "namespaces")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._made: dict[str, str] = {}  # name of a claim that a pod's status names -> uid of the pod

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource == "pods":
            for name in recorded_claims(seen.fields).values():
                if name is not None:
                    self._made[f"{seen.object.namespace}/{name}"] = seen.object.uid
        if seen.resource != "resourceclaims":
            return
        owner = controller(seen.fields)
        users = [one for one in reserved(seen.fields) if one["resource"] == "pods"]
        strangers = [one["name"] for one in users if owner and one["uid"] != owner]
        if strangers and seen.type != "DELETED" and not is_special(seen.fields):  # those are C12's
            yield f"C4: claim {seen.object.name} was made for one pod and is reserved for {strangers}"
        if _is_foreign(seen.fields):
            yield from self._foreign(seen, before)

    def _foreign(self, seen: Seen, before: Fields | None) -> Iterator[str]:
        """Somebody's own claim, under the name that was made for a pod."""
        pod = self._made.get(f"{seen.object.namespace}/{seen.object.name}")
        if pod is None:
            return
        if any(one["uid"] == pod for one in reserved(seen.fields)):
            yield f"C4: the foreign claim {seen.object.name} is reserved for the pod whose claim had its name"
        home = self._now.named("namespaces", seen.object.namespace)
        if seen.type == "DELETED" and home is not None and not is_leaving(home):
            yield f"C4: the foreign claim {seen.object.name} was deleted"

    def rest(self) -> Iterator[str]:
        owners = {place_of(claim): controller(claim) for claim in self._now.all("resourceclaims")}
        for pod in self._now.all("pods"):
            uid, (namespace, name) = pod["metadata"]["uid"], place_of(pod)
            for claim in recorded_claims(pod).values():
                owner = owners.get((namespace, claim or ""))
                if owner and owner != uid:
                    yield f"C4: pod {name} names the claim {claim}, which belongs to {owner}"


def _is_foreign(claim: Fields) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    return not controller(claim) and POD_CLAIM_NAME not in annotations
