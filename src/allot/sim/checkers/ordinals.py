"""SSET1: once things are quiet, a stateful set has one pod of its newest template for each ordinal.

An ordered set takes nothing away, as in Kubernetes, while one of the pods that stay is not ready: it may wait
for a node or a device for ever, and so may those that are too many.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, is_active, is_leaving, is_ready, name_of


class Ordinals:
    follows = ("statefulsets", "pods")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        yield from ()

    def rest(self) -> Iterator[str]:
        for one in self._now.all("statefulsets"):
            if is_leaving(one):
                continue
            name = name_of(one)
            pods = [pod for pod in self._now.of("pods", one["metadata"]["uid"]) if is_active(pod)]
            found = sorted(map(name_of, pods))
            wanted = [f"{name}-{number}" for number in range(one["spec"]["replicas"])]
            is_served = all(map(is_ready, pods))
            if is_served and found != wanted:
                yield f"SSET1: stateful set {name} wants {wanted} and is at rest with {found}"
            old = [name_of(pod) for pod in pods if _edition(pod) != _edition(one["spec"]["template"])]
            if is_served and old:
                yield f"SSET1: stateful set {name} is at rest with pods of an older template: {old}"
            staying = [pod for pod in pods if name_of(pod) in wanted]
            surplus = [one for one in found if one not in wanted]
            is_whole = len(staying) == len(wanted) and all(map(is_ready, staying))
            if surplus and (is_whole or not _is_ordered(one)):
                yield f"SSET1: stateful set {name} keeps pods that it does not want: {surplus}"


def _is_ordered(one: Fields) -> bool:
    return bool(one["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady")


def _edition(one: Fields) -> str | None:
    return (one["metadata"].get("labels") or {}).get("edition")
