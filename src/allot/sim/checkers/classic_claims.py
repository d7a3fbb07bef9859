"""Classic claims: whose they are to allocate, and how they are given back.

C8   A claim has one shape for life; what is allocated for a classic one names its driver and no devices.
C9   The driver's finalizer is there before the allocation, and goes after it.
C10  `deallocationRequested` is set on an allocation that nobody has reserved, goes with it, and meanwhile
     no reservation is added.
C11  Once things are quiet, what is to be given back has been, whether its class is there or not.
"""

from collections.abc import Iterator

from ..recording import Seen
from .live import LiveObjects
from .reading import Fields, allocation, is_classic, is_leaving, is_numeric, name_of, reserved, results

RESERVATIONS_MAX = 32


class ClassicClaims:
    follows = ("resourceclaims",)

    def __init__(self) -> None:
        self._now = LiveObjects(*self.follows)

    def see(self, seen: Seen) -> Iterator[str]:
        before = self._now.see(seen)
        if seen.type == "DELETED":
            return
        name, now = seen.object.name, seen.fields
        if before is not None and is_classic(before) != is_classic(now):
            yield f"C8: claim {name} is of another shape than it was"
        if is_numeric(now):
            return  # `numeric_claims` knows
        if not is_classic(now):
            if _driver(now) or is_to_be_deallocated(now) or (allocation(now) or {}).get("resourceHandle"):
                yield f"C8: claim {name} is structured, and has what only a classic one can have"
            return
        yield from self._allocated(name, before, now)
        yield from self._given_back(name, before, now)

    def _allocated(self, name: str, before: Fields | None, now: Fields) -> Iterator[str]:
        if allocation(now) is None:
            return
        users = reserved(now)
        if results(now) or not _driver(now):
            yield f"C8: claim {name} was allocated by somebody else than its driver"
        if finalizer(now) not in finalizers(now):
            yield f"C9: claim {name} is allocated without the finalizer of its driver"
        if allocation(before or {}) is None and (before is None or finalizer(now) not in finalizers(before)):
            yield f"C9: claim {name} was allocated before its driver protected it"
        if len(users) > (RESERVATIONS_MAX if allocation(now).get("shareable") else 1):
            yield f"C2: claim {name} has {len(users)} reservations"

    def _given_back(self, name: str, before: Fields | None, now: Fields) -> Iterator[str]:
        if is_to_be_deallocated(now) and reserved(now):
            yield f"C10: claim {name} is to be deallocated and is reserved"
        if is_to_be_deallocated(now) and allocation(now) is None:
            yield f"C10: claim {name} is to be deallocated and is not allocated"
        if before is None or not is_to_be_deallocated(before) or is_to_be_deallocated(now):
            return
        if allocation(now) is not None:
            yield f"C10: claim {name} was to be deallocated, and keeps what it has"

    def rest(self) -> Iterator[str]:
        for claim in self._now.all("resourceclaims"):
            if not is_classic(claim) or is_numeric(claim) or reserved(claim):
                continue
            if allocation(claim) is not None and (is_to_be_deallocated(claim) or is_leaving(claim)):
                yield f"C11: claim {name_of(claim)} is to be given back, and is not"
            elif is_leaving(claim):
                yield f"C9: claim {name_of(claim)} is kept by a finalizer, and not allocated"


def is_to_be_deallocated(claim: Fields) -> bool:
    return bool((claim.get("status") or {}).get("deallocationRequested"))


def finalizers(claim: Fields) -> list[str]:
    return list(claim["metadata"].get("finalizers") or ())


def finalizer(claim: Fields) -> str:
    return f"{_driver(claim)}/deletion-protection"


def _driver(claim: Fields) -> str:
    return str((claim.get("status") or {}).get("driverName") or "")
