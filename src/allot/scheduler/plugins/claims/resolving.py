"""The claims of a pod, read once a cycle.

A claim that has its devices says where the pod may go. One that has none is searched
for. One that another pod is being given devices for right now is waited for. The claim
that an earlier attempt made for the pod's extended resources is gone on with, or removed
before anything else is looked at (C5).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from allot.api import podclaims
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
    pending: tuple[ClaimInfo, ...] = ()
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


def claims_in(state: CycleState) -> PodClaims:
    """What ResourceClaims has read in this cycle."""
    found: PodClaims = state.read[CLAIMS]
    return found


def read_claims(pod: PodInfo, snapshot: Snapshot) -> PodClaims | Missing:
    earlier = snapshot.extended_claims_of(pod.uid)
    if not earlier:
        return _sorted(pod, snapshot) if pod.spec.resource_claims else NO_CLAIMS
    claims = _sorted(pod, snapshot) if len(earlier) == 1 and _is_whole(earlier[0], pod) else None
    if claims is None or isinstance(claims, Missing):
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
        yield _usable(pod, Key(pod.key.namespace, use.name), snapshot, use.is_generated)


def _unmade(pod: PodInfo, entry: str) -> str:
    template = next(one.resource_claim_template_name for one in pod.spec.resource_claims if one.name == entry)
    return f'resource claim "{entry}" has not been created from its template "{template}" yet'


def _usable(pod: PodInfo, key: Key, snapshot: Snapshot, is_generated: bool) -> ClaimInfo | Missing:
    claim = snapshot.claim(key)
    if claim is None:
        why = "cannot be read" if key in snapshot.unreadable else "not found"
        return Missing(f'resourceclaim "{key.name}" {why}')
    if claim.is_deleting:
        return Missing(f'resourceclaim "{key.name}" is being deleted')
    if is_generated and not claim.is_controlled_by(pod.uid):  # C4
        return Missing(f'resourceclaim "{key.name}" was not created for this pod')
    if owner := other_owner(claim.view, pod.uid):
        return Missing(f'resourceclaim "{key.name}" was made for pod "{owner}" and is used by it alone')
    return claim


def _is_whole(claim: ClaimInfo, pod: PodInfo) -> bool:
    """Whether whoever began with it could have gone on: nobody else has a say in this claim."""
    is_ours = claim.allocation is not None and claim.is_reserved_for(pod.uid)
    return is_ours and not claim.is_deleting


def _sorted(pod: PodInfo, snapshot: Snapshot) -> PodClaims | Missing:
    allocated: list[ClaimInfo] = []
    pending: list[ClaimInfo] = []
    for claim in resolve(pod, snapshot):
        if isinstance(claim, Missing):
            return claim
        if claim.allocation is not None:
            allocated.append(claim)
        elif snapshot.ledger.hold(claim.uid) is not None:
            return Missing(f'resourceclaim "{claim.key.name}" is in the process of being allocated')
        else:
            pending.append(claim)
    return PodClaims(tuple(allocated), tuple(pending))
