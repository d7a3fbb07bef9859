"""C6: the claim of a running pod is never deallocated."""

from collections.abc import Iterator

from ..recording import Seen

FINISHED = ("Succeeded", "Failed")


class RunningPods:
    def __init__(self) -> None:
        self._running: dict[str, str] = {}  # uid -> name
        self._reserved: dict[str, frozenset[str]] = {}  # claim uid -> uids of consumers

    def see(self, seen: Seen) -> Iterator[str]:
        uid = seen.object.uid
        if seen.resource == "pods":
            phase = (seen.fields.get("status") or {}).get("phase")
            if seen.type == "DELETED" or phase in FINISHED:
                self._running.pop(uid, None)
            elif (seen.fields.get("spec") or {}).get("nodeName"):
                self._running[uid] = seen.object.name
            return
        before = self._reserved.pop(uid, frozenset())
        status = seen.fields.get("status") or {}
        if seen.type != "DELETED" and "allocation" in status:
            self._reserved[uid] = frozenset(one["uid"] for one in status.get("reservedFor") or ())
        left = before - self._reserved.get(uid, frozenset())
        for consumer in sorted(left & self._running.keys()):
            pod = self._running[consumer]
            yield f"C6: claim {seen.object.name} was taken from pod {pod}, which is running"

    def rest(self) -> Iterator[str]:
        yield from ()
