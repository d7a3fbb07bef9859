"""DSET1: once things are quiet, a daemon set has one pod of its newest template on every well node."""

from collections.abc import Iterator
from typing import Any

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, is_active, is_leaving, is_ready, name_of, node_of

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Daemons:
    follows = ("daemonsets", "pods", "nodes")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        yield from ()

    def rest(self) -> Iterator[str]:
        nodes = {
            name_of(node): bool((node.get("spec") or {}).get("taints")) for node in self._now.all("nodes")
        }
        for one in self._now.all("daemonsets"):
            if is_leaving(one):
                continue
            name = name_of(one)
            pods = [pod for pod in self._now.of("pods", one["metadata"]["uid"]) if is_active(pod)]
            places = [meant_for(pod) for pod in pods]
            for node, is_tainted in nodes.items():
                count = places.count(node)
                if count > 1 or (count == 0 and not is_tainted):
                    yield f"DSET1: daemon set {name} has {count} pods on {node}"
            for place in places:
                if place not in nodes:
                    yield f"DSET1: daemon set {name} has a pod for {place}, which does not exist"
            old = [name_of(pod) for pod in pods if _edition(pod) != _edition(one["spec"]["template"])]
            if old and all(map(is_ready, pods)):
                yield f"DSET1: daemon set {name} is at rest with pods of an older template: {old}"


def meant_for(pod: Fields) -> str:
    if node_of(pod):
        return node_of(pod)
    affinity: Any = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""


def _edition(one: Fields) -> str | None:
    return (one["metadata"].get("labels") or {}).get("edition")
