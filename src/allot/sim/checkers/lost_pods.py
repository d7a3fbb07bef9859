"""L1: once things are quiet, no pod is on a node that does not exist, and none is ending on no node."""

from collections.abc import Iterator

from ..recording import Seen
from .reading import is_leaving, name_of, node_of
from .standing import Standing


class LostPods:
    follows = ("pods", "nodes")

    def __init__(self) -> None:
        self._now = Standing(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        yield from ()

    def rest(self) -> Iterator[str]:
        nodes = {name_of(node) for node in self._now.all("nodes")}
        for pod in self._now.all("pods"):
            node = node_of(pod)
            if node and node not in nodes:
                yield f"L1: pod {name_of(pod)} is on {node}, which does not exist"
            if not node and is_leaving(pod):
                yield f"L1: pod {name_of(pod)} is ending on no node, and nobody ends it"
