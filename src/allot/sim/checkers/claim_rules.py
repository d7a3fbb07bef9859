"""C1 and C2: what an allocation implies, and what a reservation implies."""

from collections.abc import Iterator

from ..recording import Seen

FINALIZER = "resource.kubernetes.io/delete-protection"
RESERVATIONS_MAX = 256


class ClaimRules:
    def __init__(self) -> None:
        self._reserved: dict[str, frozenset[str]] = {}

    def see(self, seen: Seen) -> Iterator[str]:
        if seen.resource != "resourceclaims":
            return
        uid, name = seen.object.uid, seen.object.name
        before = self._reserved.pop(uid, frozenset())
        if seen.type == "DELETED":
            return
        metadata, status = seen.fields["metadata"], seen.fields.get("status") or {}
        allocated = "allocation" in status
        reserved = frozenset(one["uid"] for one in status.get("reservedFor") or ())
        self._reserved[uid] = reserved
        if allocated and FINALIZER not in (metadata.get("finalizers") or ()):
            yield f"C1: claim {name} is allocated without its finalizer"
        if allocated and before and not reserved:
            yield f"C1: the last reservation of claim {name} went and its allocation stayed"
        if reserved and not allocated:
            yield f"C2: claim {name} is reserved and not allocated"
        if len(reserved) > RESERVATIONS_MAX:
            yield f"C2: claim {name} has {len(reserved)} reservations"
        if metadata.get("deletionTimestamp") and reserved - before:
            yield f"C2: claim {name} is being deleted and was reserved for another consumer"

    def rest(self) -> Iterator[str]:
        yield from ()
