"""N9: once things are quiet, a pod whose containers are ready is ready, if its node is.

While a node is silent its pods count as not ready, and nobody but the node takes that back.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import has_condition, is_active, is_ready, name_of, node_of


class ReadyPods:
    follows = ("pods", "nodes")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        yield from ()

    def rest(self) -> Iterator[str]:
        well = {name_of(node) for node in self._now.all("nodes") if is_ready(node)}
        for pod in self._now.all("pods"):
            is_well = is_active(pod) and node_of(pod) in well and has_condition(pod, "ContainersReady")
            if is_well and not is_ready(pod):
                yield f"N9: pod {name_of(pod)} runs on {node_of(pod)} and is never said to be ready again"
