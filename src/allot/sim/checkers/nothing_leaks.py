"""C3: once things are quiet, nobody holds what nobody needs, and nobody waits for what could be made."""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import (
    POD_CLAIM_NAME,
    controller,
    is_finished,
    is_leaving,
    name_of,
    others_listed,
    place_of,
    recorded_claims,
    reserved,
)


class NothingLeaks:
    follows = ("pods", "resourceclaims", "resourceclaimtemplates", "resourcequotas")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        yield from ()

    def rest(self) -> Iterator[str]:
        for claim in self._now.all("resourceclaims"):
            for consumer in reserved(claim):
                if consumer["resource"] == "pods" and not self._needs(consumer["uid"]):
                    yield f"C3: claim {name_of(claim)} is reserved for {consumer['name']}, gone or finished"
            owner = controller(claim)
            if owner and not self._needs(owner) and not others_listed(claim):
                yield f"C3: claim {name_of(claim)} was made for a pod that is gone or finished"
        yield from self._claims_made_twice()
        yield from self._pods_without_claims()

    def _claims_made_twice(self) -> Iterator[str]:
        seen: dict[tuple[str, str], str] = {}
        for claim in self._now.all("resourceclaims"):
            owner = controller(claim)
            entry = (claim["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME)
            if not owner or entry is None:
                continue
            other = seen.setdefault((owner, entry), name_of(claim))
            if other != name_of(claim):
                yield f"C3: claims {other} and {name_of(claim)} were made for the same entry of one pod"

    def _needs(self, uid: str) -> bool:
        pod = self._now.get("pods", uid)
        return pod is not None and not is_finished(pod)

    def _pods_without_claims(self) -> Iterator[str]:
        owners = {place_of(claim): controller(claim) for claim in self._now.all("resourceclaims")}
        for pod in self._now.all("pods"):
            namespace, name = place_of(pod)
            if is_finished(pod) or is_leaving(pod) or self._is_limited(namespace):
                continue
            made = recorded_claims(pod)
            for entry in pod["spec"].get("resourceClaims") or ():
                template = entry.get("resourceClaimTemplateName")
                if not template or self._now.named("resourceclaimtemplates", template, namespace) is None:
                    continue
                claim = made.get(entry["name"]) or ""
                stranger = owners.get((namespace, f"{name}-{entry['name']}"))
                if stranger is not None and stranger != pod["metadata"]["uid"]:
                    continue  # under the name that a classic claim would have: it blocks the pod (C4)
                if owners.get((namespace, claim)) != pod["metadata"]["uid"]:
                    yield f"C3: pod {name} waits for its claim {entry['name']} for ever"

    def _is_limited(self, namespace: str) -> bool:
        """Where a quota holds, what is missing may be forbidden."""
        return any(place_of(quota)[0] == namespace for quota in self._now.all("resourcequotas"))
