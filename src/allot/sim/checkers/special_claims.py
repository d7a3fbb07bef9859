"""C12: a claim for extended resources is used by its own pod alone, and is never removed while anybody
else is listed as its user."""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, allocation, controller, is_special, needs_claims, node_of, reserved


class SpecialClaims:
    follows = ("pods", "resourceclaims")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource == "pods":
            if before is not None and node_of(seen.fields) and not node_of(before):
                yield from self._bound(seen)
        elif is_special(before or seen.fields):
            yield from self._listed(seen, before)
            if before is not None and (seen.type == "DELETED" or allocation(seen.fields) is None):
                yield from self._removed(seen, before)

    def _bound(self, seen: Seen) -> Iterator[str]:
        """By a scheduler: who puts a pod on a node by hand is not ours to judge, and nothing starts it."""
        for entry in seen.fields["spec"].get("resourceClaims") or ():
            name = entry.get("resourceClaimName") or ""
            claim = self._now.named("resourceclaims", name, seen.object.namespace) if name else None
            if claim is not None and is_special(claim) and controller(claim) != seen.object.uid:
                yield f"C12: pod {seen.object.name} was bound with {name}, which is another pod's"

    def _listed(self, seen: Seen, before: Fields | None) -> Iterator[str]:
        own = controller(before or seen.fields)
        known = {one["uid"] for one in reserved(before or {})}
        for user in reserved(seen.fields):
            if user["resource"] == "pods" and user["uid"] != own and user["uid"] not in known:
                yield f"C12: claim {seen.object.name} is one pod's and was reserved for {user['name']}"

    def _removed(self, seen: Seen, before: Fields) -> Iterator[str]:
        own = controller(before)
        for user in reserved(before) if allocation(before) is not None else ():
            if user["uid"] != own and self._needs(user):
                yield f"C12: claim {seen.object.name} was removed while {user['name']} was listed in it"

    def _needs(self, user: Fields) -> bool:
        if user["resource"] != "pods":
            return True
        pod = self._now.get("pods", user["uid"])
        return pod is not None and needs_claims(pod)

    def rest(self) -> Iterator[str]:
        yield from ()
