"""N1: a pod starts when all its claims are allocated, reserved for it, and listed by its node.

A node that keeps no list has said nothing, and is not held to it.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, allocation, claim_names, name_of, node_of, place_of, reserved

_RUNNING = "Running"


class Started:
    follows = ("pods", "resourceclaims", "preparedclaims")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self.starts = 0

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource != "pods" or seen.type == "DELETED" or before is None:
            return
        if _phase(seen.fields) != _RUNNING or _phase(before) == _RUNNING:
            return
        self.starts += 1
        for _, name in claim_names(seen.fields):
            yield from self._used(seen, name)

    def _used(self, seen: Seen, name: str) -> Iterator[str]:
        pod, place = seen.object.name, (seen.object.namespace, name)
        claim = next((one for one in self._now.all("resourceclaims") if place_of(one) == place), None)
        if claim is None:
            yield f"N1: pod {pod} runs without its claim {name}"
            return
        if allocation(claim) is None or all(one["uid"] != seen.object.uid for one in reserved(claim)):
            yield f"N1: pod {pod} runs with the claim {name}, which is not its own"
        node = node_of(seen.fields)
        for listed in self._now.all("preparedclaims"):
            uids = {one["uid"] for one in (listed.get("status") or {}).get("claims") or ()}
            if name_of(listed) == node and claim["metadata"]["uid"] not in uids:
                yield f"N1: pod {pod} runs before {node} has listed the claim {name}"

    def rest(self) -> Iterator[str]:
        yield from ()


def _phase(pod: Fields) -> str:
    return str((pod.get("status") or {}).get("phase") or "")
