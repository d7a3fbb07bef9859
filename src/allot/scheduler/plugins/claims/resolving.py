"""The claims of a pod, read once a cycle.

A claim that has its devices says where the pod may go. One that has none is searched for,
or its driver is asked if it is classic. One that another pod is being given devices for right
now is waited for. The claim that an earlier attempt made for the pod's extended resources is
gone on with, or removed before anything else is looked at (C5).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from allot.api import podclaims, resource
from allot.informers import Key

from ...claim import ClaimInfo, other_owner
from ...framework import CycleState
from ...pod import PodInfo
from ...snapshot import Snapshot

CLAIMS = "claims"
"""Where a cycle keeps what was read: not under a plugin's name, since several read it."""


@dataclass(frozen=True, slots=True)
class PodClaims:
    allocated: tuple[ClaimInfo, ...] = ()
    pending: tuple[ClaimInfo, ...] = ()  # structured: the scheduler finds their devices
    classic: tuple[ClaimInfo, ...] = ()  # their drivers allocate them once a node is chosen
    numeric: tuple[ClaimInfo, ...] = ()  # of the classic shape, and the scheduler allocates them
    blocked: str = ""  # why the pod cannot be tried: a claim of it cannot be used yet
    unusable: tuple[ClaimInfo, ...] = ()  # those that are there, of the claims that block it
    earlier: ClaimInfo | None = None  # it has devices for the extended resources since an earlier attempt
    leftover: ClaimInfo | None = None  # what such an attempt left half made: it goes first

    @property
    def held(self) -> tuple[ClaimInfo, ...]:
        """The claims that have their devices, and so say where the pod may go."""
        return self.allocated if self.earlier is None else (*self.allocated, self.earlier)


NO_CLAIMS = PodClaims()


@dataclass(frozen=True, slots=True)
class Missing:
    """A claim that cannot be used yet."""

    why: str
    claim: ClaimInfo | None = None  # it is there, and cannot be used all the same


def claims_in(state: CycleState) -> PodClaims:
    """What ResourceClaims has read in this cycle."""
    found: PodClaims = state.read[CLAIMS]
    return found


def read_claims(pod: PodInfo, snapshot: Snapshot) -> PodClaims:
    earlier = snapshot.extended_claims_of(pod.uid)
    if not earlier:
        return _sorted(pod, snapshot) if pod.spec.resource_claims else NO_CLAIMS
    claims = _sorted(pod, snapshot) if len(earlier) == 1 and _is_whole(earlier[0], pod) else None
    if claims is None or claims.blocked:
        return PodClaims(leftover=earlier[0])  # it goes first, whatever is wanted now (C5)
    return replace(claims, earlier=earlier[0])


def resolve(pod: PodInfo, snapshot: Snapshot) -> Iterator[ClaimInfo | Missing]:
    """The claims of a pod, each once, in the order of its spec."""
    seen = set()
    for use in podclaims.used(pod.view):
        if use.origin is podclaims.Origin.EXTENDED or use.name in seen:
            continue
        if not use.name:
            yield Missing(_unmade(pod, use.entry))
            continue
        seen.add(use.name)
        key = Key(pod.key.namespace, use.name)
        if not snapshot.heeds_classic and (claim := snapshot.claim(key)) is not None and claim.is_classic:
            continue
        yield _usable(pod, key, snapshot, use.is_generated)


def _unmade(pod: PodInfo, entry: str) -> str:
    template = next(one.resource_claim_template_name for one in pod.spec.resource_claims if one.name == entry)
    return f'resource claim "{entry}" has not been created from its template "{template}" yet'


def _usable(pod: PodInfo, key: Key, snapshot: Snapshot, is_generated: bool) -> ClaimInfo | Missing:
    claim = snapshot.claim(key)
    if claim is None:
        why = "cannot be read" if key in snapshot.unreadable else "not found"
        return Missing(f'resourceclaim "{key.name}" {why}')
    why = _hindrance(pod, claim, snapshot, is_generated)
    return Missing(f'resourceclaim "{key.name}" {why}', claim) if why else claim


def _hindrance(pod: PodInfo, claim: ClaimInfo, snapshot: Snapshot, is_generated: bool) -> str:
    """Why the pod cannot use a claim that is there."""
    if claim.is_deleting:
        return "is being deleted"
    if is_generated and not claim.is_controlled_by(pod.uid):  # C4
        return "was not created for this pod"
    if owner := other_owner(claim.view, pod.uid):
        return f'was made for pod "{owner}" and is used by it alone'
    return _unready(claim, snapshot) if claim.is_classic else ""


def _unready(claim: ClaimInfo, snapshot: Snapshot) -> str:
    if claim.is_to_be_deallocated:
        return "is being deallocated" + ("" if resource.shape.is_numeric(claim.view) else " by its driver")
    if claim.allocation is not None or not resource.shape.is_immediate(claim.view):
        return ""
    if claim.view.spec.resource_class_name in snapshot.resource_classes and not snapshot.is_numeric(claim):
        return "has not been allocated yet by its driver, which does so without waiting for a pod"
    return ""


def _is_whole(claim: ClaimInfo, pod: PodInfo) -> bool:
    """Whether whoever began with it could have gone on: nobody else has a say in this claim."""
    is_ours = claim.allocation is not None and claim.is_reserved_for(pod.uid)
    return is_ours and not claim.is_deleting


def _sorted(pod: PodInfo, snapshot: Snapshot) -> PodClaims:
    allocated: list[ClaimInfo] = []
    pending: list[ClaimInfo] = []
    classic: list[ClaimInfo] = []
    numeric: list[ClaimInfo] = []
    unusable: list[ClaimInfo] = []
    blocked = ""
    for claim in resolve(pod, snapshot):
        if isinstance(claim, Missing):
            blocked = blocked or claim.why
            unusable += [claim.claim] if claim.claim is not None else []
        elif claim.allocation is not None:
            allocated.append(claim)
        elif snapshot.ledger.hold(claim.uid) is not None:
            blocked = blocked or f'resourceclaim "{claim.key.name}" is in the process of being allocated'
        elif not claim.is_classic:
            pending.append(claim)
        else:
            (numeric if snapshot.is_numeric(claim) else classic).append(claim)
    return PodClaims(
        tuple(allocated), tuple(pending), tuple(classic), tuple(numeric), blocked, tuple(unusable)
    )
