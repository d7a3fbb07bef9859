"""P4: a pod is bound once. P1: and only when all of its claims are allocated and reserved for it."""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import allocation, claim_names, node_of, reserved


class Binding:
    follows = ("pods", "resourceclaims")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource != "pods" or before is None or node_of(before) == node_of(seen.fields):
            return
        name, node = seen.object.name, node_of(seen.fields)
        if node_of(before):
            yield f"P4: pod {name} was bound to {node_of(before)} and then to {node or 'nothing'}"
            return
        for entry, claim in claim_names(seen.fields):
            found = self._now.named("resourceclaims", claim, seen.object.namespace)
            users = [one["uid"] for one in reserved(found or {})]
            if found is None or allocation(found) is None or seen.object.uid not in users:
                yield f"P1: pod {name} was bound to {node} and its claim {entry} is not its own to use"

    def rest(self) -> Iterator[str]:
        yield from ()
