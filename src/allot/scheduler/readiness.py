"""Whether the devices of a claim are ready for the pod to be bound (binding conditions).

Some devices must be attached before a pod can use them. Their drivers say so with
conditions, which appear in the claim's status by and by: all of a device's binding
conditions must become true, none of its failure conditions may, and there is a limit to
how long one waits, counted from the moment of the allocation.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from .claim import ClaimInfo


class Readiness(Enum):
    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Unready:
    """A device that cannot be used yet, or ever."""

    device: str
    missing: tuple[str, ...]  # binding conditions that are not true
    failures: tuple[str, ...]  # what the failure conditions say that are

    @property
    def text(self) -> str:
        """ "condition attached of device gpu.example.com/rack/gpu-0"."""
        noun = "condition" if len(self.missing) == 1 else "conditions"
        return f"{noun} {', '.join(self.missing)} of device {self.device}"


def unready(claim: ClaimInfo) -> Iterator[Unready]:
    results = claim.allocation.devices.results if claim.allocation is not None else ()
    # Statuses are looked up without the share: upstream's drivers report devices, not shares.
    reported = {(one.driver, one.pool, one.device): one.conditions for one in claim.view.status.devices}
    for one in results:
        if not one.binding_conditions:
            continue
        id = (one.driver, one.pool, one.device)
        true = {told.type: told for told in reported.get(id, ()) if told.status == "True"}
        missing = tuple(name for name in one.binding_conditions if name not in true)
        failed = (true[name] for name in one.binding_failure_conditions if name in true)
        failures = tuple(told.message or told.type for told in failed)
        if missing or failures:
            yield Unready("/".join(id), missing, failures)


def readiness(claim: ClaimInfo, now: datetime, timeout_s: float) -> Readiness:
    found = list(unready(claim))
    if not found:
        return Readiness.READY
    if any(one.failures for one in found):
        return Readiness.FAILED
    return Readiness.LATE if left_s(claim, now, timeout_s) < 0 else Readiness.WAITING


def left_s(claim: ClaimInfo, now: datetime, timeout_s: float) -> float:
    """How long its devices may still take to be made ready; without end if nobody said when that began."""
    since = claim.allocation.allocation_timestamp if claim.allocation is not None else ""
    if not since:
        return math.inf
    return timeout_s - (now - datetime.fromisoformat(since.replace("Z", "+00:00"))).total_seconds()


def awaited(claims: Iterable[ClaimInfo]) -> str:
    """What the devices of claims still lack, in words."""
    return ", ".join(one.text for claim in claims for one in unready(claim) if one.missing)
