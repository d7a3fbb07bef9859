"""Hold the devices of the chosen node until they are written."""

from collections.abc import Iterator, Sequence

from allot.allocation import NoFit, Plan, Refused, taken_by
from allot.api import resource
from allot.base import Ids

from ...claim import ClaimInfo
from ...extended import DeviceRequests, Lacking, in_memory_uid
from ...framework import Rejection
from ...node import NodeInfo
from ...pod import PodInfo
from ...snapshot import Snapshot
from ...writes import AllocateClaim, CreateExtendedClaim, KeepExtendedClaim, Write
from .asking import DeviceAsk
from .checking import NAME, NO_FIT, UNDECIDED, DeviceCheck


def reserve(
    pod: PodInfo,
    ask: DeviceAsk,
    check: DeviceCheck,
    node: NodeInfo,
    snapshot: Snapshot,
    ids: Ids,
) -> tuple[Write, ...] | Rejection:
    """Plan and hold in one step: between the two nobody else may decide anything (D1)."""
    asked = check.asked
    delegation = asked.delegation(node)
    if isinstance(delegation, Lacking):
        return Rejection(NAME, str(delegation))
    devices = asked.devices(delegation)
    if isinstance(devices, Refused):
        return Rejection(NAME, devices.error)
    writes: tuple[Write, ...] = ()
    if ask.earlier is not None and devices is not None:
        writes, devices = (KeepExtendedClaim(ask.earlier, devices),), None
    if not ask.pending and devices is None:
        return writes
    answer = check.answer(node, delegation)
    if isinstance(answer, Refused):
        return Rejection(NAME, asked.anonymous(answer.cause))
    if not isinstance(answer, Plan):
        return NO_FIT if isinstance(answer, NoFit) else UNDECIDED
    results = answer.results(ids)
    uids = [one.uid for one in ask.pending] + ([in_memory_uid(pod.uid)] if devices is not None else [])
    if not _fly(uids, results, snapshot):
        return NO_FIT
    return (*writes, *_written(pod, ask.pending, results, devices))


def unreserve(pod: PodInfo, ask: DeviceAsk, snapshot: Snapshot) -> None:
    """Give up what is still in flight. What the server has accepted stays (LEDGER3)."""
    for claim in ask.pending:
        snapshot.ledger.cancel(claim.uid)
    snapshot.ledger.cancel(in_memory_uid(pod.uid))
    created = snapshot.extended_claim_of(pod.uid)
    if created is not None:
        snapshot.ledger.cancel(created.uid)


def _fly(uids: Sequence[str], results: Sequence[resource.AllocationResult], snapshot: Snapshot) -> bool:
    for count, (uid, result) in enumerate(zip(uids, results, strict=True)):
        if snapshot.ledger.fly(uid, taken_by(result)):
            for earlier in uids[:count]:
                snapshot.ledger.cancel(earlier)
            return False
    return True


def _written(
    pod: PodInfo,
    claims: Sequence[ClaimInfo],
    results: Sequence[resource.AllocationResult],
    devices: DeviceRequests | None,
) -> Iterator[Write]:
    for claim, result in zip(claims, results, strict=False):
        yield AllocateClaim(claim, result)
    if devices is not None:
        yield CreateExtendedClaim(in_memory_uid(pod.uid), devices, results[-1])
