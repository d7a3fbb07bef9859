"""Whether the devices of a claim are ready for the pod to be bound (binding conditions).

Some devices must be attached before a pod can use them. Their drivers say so with
conditions, which appear in the claim's status by and by: all of a device's binding
conditions must become true, none of its failure conditions may, and there is a limit to
how long one waits, counted from the moment of the allocation.
"""

from datetime import datetime, timedelta
from enum import Enum

from allot.api import resource

from ...claim import ClaimInfo


class Readiness(Enum):
    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"
    LATE = "late"


def readiness(claim: ClaimInfo, now: datetime, timeout_s: float) -> Readiness:
    allocation = claim.allocation
    results = allocation.devices.results if allocation is not None else ()
    conditional = [one for one in results if one.binding_conditions]
    if not conditional:
        return Readiness.READY
    # Statuses are looked up without the share: upstream's drivers report devices, not shares.
    reported = {(one.driver, one.pool, one.device): one for one in claim.view.status.devices}
    states = [_state(one, reported.get((one.driver, one.pool, one.device))) for one in conditional]
    if Readiness.FAILED in states:
        return Readiness.FAILED
    if Readiness.WAITING not in states:
        return Readiness.READY
    assert allocation is not None
    return Readiness.LATE if _is_late(allocation, now, timeout_s) else Readiness.WAITING


def _state(
    result: resource.DeviceRequestAllocationResult, reported: resource.AllocatedDeviceStatus | None
) -> Readiness:
    true = (
        {one.type for one in reported.conditions if one.status == "True"} if reported is not None else set()
    )
    if true & set(result.binding_failure_conditions):
        return Readiness.FAILED
    return Readiness.READY if true >= set(result.binding_conditions) else Readiness.WAITING


def _is_late(allocation: resource.AllocationResult, now: datetime, timeout_s: float) -> bool:
    if not allocation.allocation_timestamp:
        return False
    since = datetime.fromisoformat(allocation.allocation_timestamp.replace("Z", "+00:00"))
    return now - since > timedelta(seconds=timeout_s)
