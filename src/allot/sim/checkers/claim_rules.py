"""C1 and C2: what an allocation implies, and what a reservation implies.

Classic claims keep C1 by the finalizer of their driver (`classic_claims`), and their allocation stays when
the last reservation goes.
"""

from collections.abc import Iterator

from ..recording import Seen
from .reading import FINALIZER, allocation, is_classic, is_leaving, reserved

RESERVATIONS_MAX = 256


class ClaimRules:
    follows = ("resourceclaims",)

    def __init__(self) -> None:
        self._reserved: dict[str, frozenset[str]] = {}
        self._allocated: set[str] = set()

    def see(self, seen: Seen) -> Iterator[str]:
        uid, name = seen.object.uid, seen.object.name
        before = self._reserved.pop(uid, frozenset())
        if seen.type == "DELETED":
            if uid in self._allocated:
                yield f"C1: claim {name} went while it was allocated: nothing protected it"
            return
        is_allocated = allocation(seen.fields) is not None
        now = frozenset(one["uid"] for one in reserved(seen.fields))
        self._reserved[uid] = now
        (self._allocated.add if is_allocated else self._allocated.discard)(uid)
        is_ours = is_allocated and not is_classic(seen.fields)
        if is_ours and FINALIZER not in (seen.fields["metadata"].get("finalizers") or ()):
            yield f"C1: claim {name} is allocated without its finalizer"
        if is_ours and before and not now:
            yield f"C1: the last reservation of claim {name} went and its allocation stayed"
        if now and not is_allocated:
            yield f"C2: claim {name} is reserved and not allocated"
        if len(now) > RESERVATIONS_MAX:
            yield f"C2: claim {name} has {len(now)} reservations"
        if is_leaving(seen.fields) and now - before:
            yield f"C2: claim {name} is being deleted and was reserved for another consumer"

    def rest(self) -> Iterator[str]:
        yield from ()
