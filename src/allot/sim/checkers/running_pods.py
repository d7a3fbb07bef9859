"""C6: the claim of a running pod is never deallocated."""

from collections.abc import Iterator

from ..recording import Seen
from .reading import allocation, is_finished, node_of, reserved


class RunningPods:
    follows = ("pods", "resourceclaims")

    def __init__(self) -> None:
        self._running: dict[str, str] = {}  # uid -> name
        self._reserved: dict[str, frozenset[str]] = {}  # claim uid -> uids of consumers

    def see(self, seen: Seen) -> Iterator[str]:
        uid = seen.object.uid
        if seen.resource == "pods":
            if seen.type == "DELETED" or is_finished(seen.fields):
                self._running.pop(uid, None)
            elif node_of(seen.fields):
                self._running[uid] = seen.object.name
            return
        before = self._reserved.pop(uid, frozenset())
        if seen.type != "DELETED" and allocation(seen.fields) is not None:
            self._reserved[uid] = frozenset(one["uid"] for one in reserved(seen.fields))
        left = before - self._reserved.get(uid, frozenset())
        for consumer in sorted(left & self._running.keys()):
            pod = self._running[consumer]
            yield f"C6: claim {seen.object.name} was taken from pod {pod}, which is running"

    def rest(self) -> Iterator[str]:
        yield from ()
