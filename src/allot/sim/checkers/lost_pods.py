"""Pods that nobody would end are ended, and no others.

LOST1  Once things are quiet, no pod is on a node that does not exist, and none is ending on no node.
LOST2  No pod is taken for lost while its node is there, and has been for longer than a request can be late.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, is_leaving, name_of, node_of

LATE_S = 45.0


class LostPods:
    follows = ("pods", "nodes")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._since_s: dict[str, float] = {}  # nodes

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource == "nodes":
            self._since_s.setdefault(seen.object.uid, seen.at_s)
            return
        if not _is_taken_for_lost(seen.fields) or _is_taken_for_lost(before or {}):
            return
        node = self._now.named("nodes", node_of(seen.fields))
        if node is not None and seen.at_s - self._since_s[node["metadata"]["uid"]] > LATE_S:
            yield f"LOST2: pod {seen.object.name} was taken for lost, and its node {name_of(node)} is there"

    def rest(self) -> Iterator[str]:
        nodes = {name_of(node) for node in self._now.all("nodes")}
        for pod in self._now.all("pods"):
            node = node_of(pod)
            if node and node not in nodes:
                yield f"LOST1: pod {name_of(pod)} is on {node}, which does not exist"
            if not node and is_leaving(pod):
                yield f"LOST1: pod {name_of(pod)} is ending on no node, and nobody ends it"


def _is_taken_for_lost(pod: Fields) -> bool:
    """By whoever collects such pods; on a node that is marked out of service that is right, too."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return bool(node_of(pod)) and any(one.get("reason") == "DeletionByPodGC" for one in conditions)
