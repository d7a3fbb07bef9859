"""Rollouts end, once things are quiet.

ROLL1: All replica sets of a deployment together want no more pods than it does, and the surge.
ROLL3: If its pods are ready, all of them are of its newest template, and its status says so.
"""

from collections.abc import Iterator
from typing import Any

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, is_active, is_leaving, is_ready, name_of


class Rollouts:
    follows = ("deployments", "replicasets", "pods")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        yield from ()

    def rest(self) -> Iterator[str]:
        for one in self._now.all("deployments"):
            if not is_leaving(one):
                yield from self._judge(one)

    def _judge(self, one: Fields) -> Iterator[str]:
        name, wanted = name_of(one), one["spec"].get("replicas", 1)
        sets = self._now.of("replicasets", one["metadata"]["uid"])
        pods = [pod for some in sets for pod in self._now.of("pods", some["metadata"]["uid"])]
        asked = sum(some["spec"].get("replicas", 1) for some in sets)
        if asked > wanted + surge(one, wanted):
            yield f"ROLL1: deployment {name} wants {wanted} pods, and its replica sets {asked}"
        status = one.get("status") or {}
        if status.get("observedGeneration") != one["metadata"].get("generation"):
            yield f"ROLL3: deployment {name} was changed, and its status does not say so"
        if not all(is_ready(pod) for pod in pods if is_active(pod)):
            return  # it may wait for a node or a device
        for some in sets:
            expected = wanted if edition(some) == edition(one) else 0
            found = some["spec"].get("replicas", 1)
            if found != expected:
                yield f"ROLL3: deployment {name} is at rest with {found} pods of {name_of(some)}"
        if wanted and not any(edition(some) == edition(one) for some in sets):
            yield f"ROLL3: deployment {name} has no replica set of its template"
        if status.get("updatedReplicas", 0) != wanted:
            yield f"ROLL3: deployment {name} wants {wanted} pods and says {status.get('updatedReplicas', 0)}"


def edition(one: Fields) -> Any:
    labels = dict(one["spec"]["template"]["metadata"].get("labels") or {})
    labels.pop("pod-template-hash", None)
    return labels


def surge(one: Fields, wanted: int) -> int:
    strategy = one["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0
    said = (strategy.get("rollingUpdate") or {}).get("maxSurge", "25%")
    return -(-wanted * int(said.rstrip("%")) // 100) if isinstance(said, str) else int(said)
