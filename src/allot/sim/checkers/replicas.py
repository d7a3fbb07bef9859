"""RSET3: once things are quiet, a replica set has exactly the pods it wants, and its status says so.

Where a quota holds it may have fewer.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import is_active, is_leaving, name_of, place_of


class Replicas:
    follows = ("replicasets", "pods", "resourcequotas")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        self._now.see(seen)
        yield from ()

    def rest(self) -> Iterator[str]:
        limited = {place_of(quota)[0] for quota in self._now.all("resourcequotas")}
        for one in self._now.all("replicasets"):
            if is_leaving(one):
                continue
            name, wanted = name_of(one), one["spec"].get("replicas", 1)
            found = sum(map(is_active, self._now.of("pods", one["metadata"]["uid"])))
            if found > wanted or (found < wanted and place_of(one)[0] not in limited):
                yield f"RSET3: replica set {name} wants {wanted} pods and has {found}"
            said = (one.get("status") or {}).get("replicas", 0)
            if said != found:
                yield f"RSET3: replica set {name} has {found} pods and says {said}"
