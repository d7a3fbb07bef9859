"""N2: a device is given back only after the node that held it has let go, or is gone."""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import allocation, name_of


class Released:
    follows = ("resourceclaims", "nodes", "preparedclaims")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource != "resourceclaims" or before is None or allocation(before) is None:
            return
        if seen.type != "DELETED" and allocation(seen.fields) is not None:
            return
        nodes = {name_of(node) for node in self._now.all("nodes")}
        for listed in self._now.all("preparedclaims"):
            claims = (listed.get("status") or {}).get("claims") or ()
            if name_of(listed) in nodes and any(one["uid"] == seen.object.uid for one in claims):
                yield f"N2: claim {seen.object.name} was deallocated while {name_of(listed)} had it prepared"

    def rest(self) -> Iterator[str]:
        yield from ()
