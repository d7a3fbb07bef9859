"""Who may go from a claim's reservations, and what follows when the last one goes.

Pure. The order in which things are written keeps C1: reservation and allocation go in
one write, the finalizer in that one or the next.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any

from allot.api import Object, resource

from .views import Pod, claim_of

Ending = resource.lifecycle.Ending


class Verdict(Enum):
    KEEP = "keep"
    DROP = "drop"
    ASK = "ask"  # the cache cannot know: ask the server


def judge(consumer: resource.ResourceClaimConsumerReference, pod: Pod | None, is_known_gone: bool) -> Verdict:
    """About one reservation; `pod` is the cached pod of the consumer's name.

    The harm of being wrong is a device taken from a running pod (C6), so a cache is
    believed only about what it has seen: this very pod, done or gone. That another pod
    has the name, or none, may mean that the cache is behind.
    """
    if consumer.api_group or consumer.resource != "pods":
        return Verdict.KEEP  # not ours to judge
    if is_known_gone:
        return Verdict.DROP
    if pod is None or pod.metadata.uid != consumer.uid:
        return Verdict.ASK
    return Verdict.DROP if pod.is_done else Verdict.KEEP


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """What to write. Where it `lets_go`, the node's word comes first (N2)."""

    status: dict[str, Any] | None = None
    lets_go: bool = False  # the last reservation goes, or the allocation: others may have the devices
    unprotects: bool = False  # remove the finalizer, not before the status is written
    is_unreserved: bool = False  # nobody holds a reservation once this is written


def plan(claim: Object, gone: Collection[str]) -> ReleasePlan:
    """`gone` are the uids of consumers that leave. Whoever deallocates the claim, its last reservation tells
    them that nobody uses it: so that, too, waits for the node."""
    view = claim_of(claim)
    reserved = view.status.reserved_for
    kept = [one for one in reserved if one.uid not in gone]
    is_protected = resource.lifecycle.is_protected(view)
    is_allocated = view.status.allocation is not None
    if kept:
        return ReleasePlan(
            {"reservedFor": _entries_without(claim, gone)} if len(kept) < len(reserved) else None
        )
    if reserved:
        status: dict[str, Any] = {"reservedFor": None}
        if resource.lifecycle.of(view).on_last is Ending.CLEAR:
            return ReleasePlan({**status, "allocation": None}, True, is_protected, True)
        return ReleasePlan(status, True, False, True)
    if (view.metadata.deletion_timestamp and is_protected) or is_idle(view):
        return ReleasePlan({"allocation": None} if is_allocated else None, is_allocated, True, True)
    return ReleasePlan(is_unreserved=True)


def is_idle(claim: resource.ResourceClaim) -> bool:
    """Whether a claim has what nobody uses, and it is for the controller to take it back: of claims that the
    scheduler allocates with numeric parameters, if they are delayed or somebody asks for it."""
    if claim.status.allocation is None or claim.status.reserved_for or not resource.shape.is_numeric(claim):
        return False
    is_kept = resource.lifecycle.of(claim).on_last is Ending.KEEP
    return not is_kept or claim.status.deallocation_requested


def is_half_done(claim: resource.ResourceClaim) -> bool:
    """Whether a numeric claim is protected and has nothing: the scheduler is about to allocate it, or died
    before it did. While it is, nobody else allocates it, whatever its class says by now."""
    return (
        claim.status.allocation is None
        and not claim.metadata.deletion_timestamp
        and resource.shape.is_numeric(claim)
        and resource.lifecycle.is_protected(claim)
    )


def _entries_without(claim: Object, gone: Collection[str]) -> list[dict[str, Any]]:
    """Of status.reservedFor, with what is not known here by name."""
    return [one for one in claim.fields["status"]["reservedFor"] if one.get("uid") not in gone]


def without_finalizer(claim: Object) -> list[str] | None:
    """The finalizers that stay; None when there are none, as a merge patch wants it."""
    return resource.lifecycle.unprotected(claim_of(claim)) or None


def can_be_reserved(claim: resource.ResourceClaim, pod: Pod) -> bool:
    """A pod that came to its node without the scheduler still needs a reservation. It never
    triggers an allocation. C2. Of a classic claim, the scheduler and the driver alone make some."""
    return (
        claim.status.allocation is not None
        and not resource.shape.is_classic(claim)
        and not claim.metadata.deletion_timestamp
        and not any(one.uid == pod.metadata.uid for one in claim.status.reserved_for)
        and len(claim.status.reserved_for) < resource.limits.RESERVED_FOR_MAX
    )


def reservation(pod: Pod) -> dict[str, str]:
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}


class OwnerStanding(Enum):
    """What the cache says of the pod that a claim was generated for."""

    NEEDS_IT = "needs it"
    DONE = "done"
    REPLACED = "replaced"  # another pod has the name: ask the server whether that is so
    UNKNOWN = "unknown"  # garbage collection will know


def owner_standing(owner_uid: str, pod: Pod | None) -> OwnerStanding:
    if pod is None:
        return OwnerStanding.UNKNOWN
    if pod.metadata.uid != owner_uid:
        return OwnerStanding.REPLACED
    return OwnerStanding.DONE if pod.is_done else OwnerStanding.NEEDS_IT


def is_superfluous(claim: resource.ResourceClaim, pod: Pod, recorded: Object | None) -> bool:
    """A second claim for one entry of a pod: made twice, because an answer was lost.

    Only when the recorded one exists and is the pod's own, and nobody has come to hold
    this one.
    """
    entry = claim.metadata.annotations.get(resource.limits.POD_CLAIM_NAME_ANNOTATION)
    status = pod.recorded(entry) if entry else None
    return (
        status is not None
        and bool(status.resource_claim_name)
        and status.resource_claim_name != claim.metadata.name
        and recorded is not None
        and recorded.name == status.resource_claim_name
        and _belongs(recorded, pod)
        and claim.status.allocation is None
    )


def _belongs(claim: Object, pod: Pod) -> bool:
    owner = claim_of(claim).metadata.controller
    return owner is not None and owner.uid == pod.metadata.uid
