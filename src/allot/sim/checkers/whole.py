"""Placements are whole, where everybody has transactions.

WHOLE1  No revision shows a claim for extended resources whose pod is not bound. Where devices must be
        made ready before their pod is bound, the claim comes first: such claims are passed over.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import allocation, controller, is_special, node_of


class Whole:
    follows = ("pods", "resourceclaims")

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)
        self._early: dict[str, tuple[int, str]] = {}  # pod uid -> the revision of its claim, and the name

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource == "resourceclaims":
            owner = self._now.get("pods", controller(seen.fields)) if is_special(seen.fields) else None
            if _waits(seen):
                self._early.pop(controller(seen.fields), None)
            elif before is None and owner is not None and not node_of(owner):
                self._early[owner["metadata"]["uid"]] = (seen.revision, seen.object.name)
            return
        early = self._early.pop(seen.object.uid, None)
        if early is not None and (seen.revision > early[0] or not node_of(seen.fields)):
            yield (
                f"WHOLE1: claim {early[1]} was there at revision {early[0]}, before pod {seen.object.name} "
                "was bound"
            )

    def rest(self) -> Iterator[str]:
        for revision, name in self._early.values():
            yield f"WHOLE1: claim {name} was there at revision {revision}, and its pod was not bound"


def _waits(seen: Seen) -> bool:
    results = ((allocation(seen.fields) or {}).get("devices") or {}).get("results") or ()
    return any(one.get("bindingConditions") for one in results)
