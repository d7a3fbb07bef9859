"""C1 and C2: what an allocation implies, and what a reservation implies.

Classic claims keep C1 by the finalizer of their driver (`classic_claims`), and their allocation stays when
the last reservation goes.

Of what a transaction does to one object, watchers see the last state. A claim that is given back and deleted
in one is told as gone, as it was before: allocated. Then what makes that right is that nothing but its
finalizer, which somebody took away, kept it there, and that no pod needs it.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import (
    FINALIZER,
    NUMERIC_FINALIZER,
    Fields,
    allocation,
    is_classic,
    is_leaving,
    name_of,
    needs_claims,
    reserved,
)

RESERVATIONS_MAX = 256


class ClaimRules:
    follows = ("pods", "resourceclaims")

    def __init__(self, *, transactions: bool = False) -> None:
        """Whether somebody may give a claim back and delete it in one transaction."""
        self._transactions = transactions
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.resource == "resourceclaims" and seen.type == "DELETED":
            yield from self._gone(seen.object.name, before or {})
        elif seen.resource == "resourceclaims":
            yield from self._there(seen.object.name, before or {}, seen.fields)

    def _gone(self, name: str, before: Fields) -> Iterator[str]:
        if allocation(before) is None:
            return
        if not (self._transactions and _is_protected(before)):
            yield f"C1: claim {name} went while it was allocated: nothing protected it"
            return
        for user in reserved(before):
            pod = self._now.get("pods", user["uid"]) if user["resource"] == "pods" else None
            if pod is not None and needs_claims(pod):
                yield f"C1: claim {name} went while it was allocated, and pod {name_of(pod)} needs it"

    def _there(self, name: str, before: Fields, now: Fields) -> Iterator[str]:
        is_allocated, users, earlier = allocation(now) is not None, reserved(now), reserved(before)
        is_ours = is_allocated and not is_classic(now)
        if is_ours and not _is_protected(now):
            yield f"C1: claim {name} is allocated without its finalizer"
        if is_ours and earlier and not users:
            yield f"C1: the last reservation of claim {name} went and its allocation stayed"
        if users and not is_allocated:
            yield f"C2: claim {name} is reserved and not allocated"
        if len(users) > RESERVATIONS_MAX:
            yield f"C2: claim {name} has {len(users)} reservations"
        if is_leaving(now) and {one["uid"] for one in users} - {one["uid"] for one in earlier}:
            yield f"C2: claim {name} is being deleted and was reserved for another consumer"

    def rest(self) -> Iterator[str]:
        yield from ()


def _is_protected(claim: Fields) -> bool:
    """By us, whatever its class is called: of what only a driver gives back, this says nothing."""
    ours = NUMERIC_FINALIZER if is_classic(claim) else FINALIZER
    return ours in (claim["metadata"].get("finalizers") or ())
