"""ResourceClaims: what holds for a claim whatever it is for."""

import random
from collections.abc import Generator, Hashable, Iterable, Sequence
from datetime import datetime

from allot.api import resource
from allot.informers import Key

from ...claim import ClaimInfo
from ...framework import Checks, CycleState, Event, Rejection
from ...node import NodeInfo
from ...pod import PodInfo
from ...reach import is_reachable, places, selection
from ...readiness import Readiness, readiness
from ...settings import BINDING_TIMEOUT_S
from ...snapshot import Snapshot
from ...writes import Deallocate, DeleteClaim, LeaveClaims, Remedy, ReserveClaim
from .resolving import CLAIMS, Missing, PodClaims, claims_in, read_claims, resolve

NAME = "ResourceClaims"

UNAVAILABLE = Rejection(NAME, "resourceclaim not available on the node")
lifecycle = resource.lifecycle
USERS_TOLD = 4


class ResourceClaims:
    name = NAME
    events = frozenset(
        {
            Event.NODE_ADDED,
            Event.NODE_CHANGED,
            Event.POD_CHANGED,
            Event.CLAIM_ADDED,
            Event.CLAIM_CHANGED,
            Event.DEVICES_FREED,
            Event.USERS_LEFT,
        }
    )

    def __init__(self, *, binding_timeout_s: float = BINDING_TIMEOUT_S) -> None:
        self._binding_timeout_s = binding_timeout_s

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> str | None:
        if snapshot.extended_claim_of(pod.uid) is not None:
            return None  # what an earlier attempt left is removed, whatever else is missing (C5)
        claims = tuple(resolve(pod, snapshot))
        missing = next((one.why for one in claims if isinstance(one, Missing)), None)
        if missing is not None and _kept(claims, pod):
            return None  # what it has reserved must be given up, since it cannot have the rest
        return missing

    def sign(self, state: CycleState, snapshot: Snapshot) -> Hashable | Rejection:
        claims = read_claims(state.pod, snapshot)
        state.read[CLAIMS] = claims
        if claims.blocked:
            return Rejection(NAME, claims.blocked)
        if claims.leftover is not None:
            return Rejection(NAME, stays(claims.leftover, state.pod))
        closed = next((one for one in claims.allocated if one.is_closed_to(state.pod.uid)), None)
        if closed is not None:
            return Rejection(NAME, _closed(closed, state.pod))
        return tuple([self._allows(one, state.now) for one in claims.held])

    def _allows(self, claim: ClaimInfo, now: datetime) -> Hashable:
        """All of a claim that the answer of a node depends on. Whose claim it is and who uses it decides
        whether the pod can be tried at all, and never comes to a board (PLUGIN2)."""
        return self._is_given_up(claim, now), selection(claim)

    def pre_filter(self, state: CycleState, snapshot: Snapshot) -> Checks | None:
        """The nodes from which all that the claims have can be used."""
        held = claims_in(state).held
        if not held:
            return None
        if any(self._is_given_up(one, state.now) for one in held):
            return Checks(lambda node: UNAVAILABLE, places(held))

        def check(node: NodeInfo) -> Rejection | None:
            return None if all(is_reachable(claim, node.place) for claim in held) else UNAVAILABLE

        return Checks(check, places(held))

    def post_filter(
        self, state: CycleState, snapshot: Snapshot, rejections: Sequence[tuple[str, Rejection]]
    ) -> Generator[None, None, Remedy | None]:
        """Before anybody is evicted: what is held for nobody, in the wrong place."""
        yield
        claims: PodClaims | None = state.read.get(CLAIMS)
        if claims is None:  # they could not be read
            return None
        if left := _kept_in_vain(claims, state.pod):
            return LeaveClaims(left)
        if claims.blocked or any(why.unanswered for _, why in rejections):
            return None  # what is to come may be enough
        stale = claims.leftover or claims.earlier
        if stale is not None and not stale.users_besides(state.pod.uid):  # C12
            return DeleteClaim(stale)
        movable = [
            claim
            for claim in claims.allocated
            if _is_idle(claim, state.pod)
            and lifecycle.of(claim.view).gives_back is not lifecycle.Ending.KEEP
            and self._is_in_the_way(claim, state.now, snapshot)
        ]
        if movable:
            return Deallocate(random.Random(state.seed).choice(movable))  # by chance (POSTF-04)
        left = _kept(claims.allocated, state.pod)  # it has no place: others may use them meanwhile (UNRSV-01)
        return LeaveClaims(left) if left else None

    def reserve(self, state: CycleState, node: NodeInfo, snapshot: Snapshot) -> tuple[ReserveClaim, ...]:
        """In the order of their names: of two pods that want the same two claims, one gets both (P2)."""
        allocated = claims_in(state).allocated
        ordered = sorted(allocated, key=_key) if len(allocated) > 1 else allocated
        return tuple([ReserveClaim(one) for one in ordered])

    def unreserve(self, state: CycleState, snapshot: Snapshot) -> None:
        """Nothing is held: a claim that has its devices keeps them."""

    def _is_in_the_way(self, claim: ClaimInfo, now: datetime, snapshot: Snapshot) -> bool:
        """Whether the pod could go elsewhere if the claim were allocated anew."""
        return self._is_given_up(claim, now) or any(
            not is_reachable(claim, node.place) for node in snapshot.nodes()
        )

    def _is_given_up(self, claim: ClaimInfo, now: datetime) -> bool:
        """Its devices were not made ready: it can be used nowhere until it is allocated anew."""
        return readiness(claim, now, self._binding_timeout_s) in (Readiness.FAILED, Readiness.LATE)


def stays(leftover: ClaimInfo, pod: PodInfo) -> str:
    """Why the pod cannot be tried while a claim of an earlier attempt is there."""
    others = leftover.users_besides(pod.uid)
    if not others:
        return "the claim of an earlier attempt must be removed first"
    users = ", ".join(others[:USERS_TOLD]) + (", ..." if len(others) > USERS_TOLD else "")
    return f'resourceclaim "{leftover.key.name}" of an earlier attempt is also used by {users}, and stays'


def _is_idle(claim: ClaimInfo, pod: PodInfo) -> bool:
    return all(one.uid == pod.uid for one in claim.reserved_for)


def _closed(claim: ClaimInfo, pod: PodInfo) -> str:
    if claim.users_max > 1:
        return f'resourceclaim "{claim.key.name}" has {claim.users_max} users, the most there can be'
    users = ", ".join(claim.users_besides(pod.uid))
    return f'resourceclaim "{claim.key.name}" is used by {users} and cannot be shared'


def _kept_in_vain(claims: PodClaims, pod: PodInfo) -> tuple[ClaimInfo, ...]:
    """Claims that the pod has reserved and that nobody else would take back. Those that are being deleted,
    which wait until it has left. And classic ones while it cannot have another: a driver reserves what it
    allocates, and somebody may hold that other one and wait for these."""
    if not claims.blocked and not any(one.is_closed_to(pod.uid) for one in claims.allocated):
        return ()
    return _kept((*claims.allocated, *claims.unusable), pod)


def _kept(claims: Iterable[ClaimInfo | Missing], pod: PodInfo) -> tuple[ClaimInfo, ...]:
    found = (one.claim if isinstance(one, Missing) else one for one in claims)
    return tuple(
        [one for one in found if one and (one.is_classic or one.is_deleting) and one.is_reserved_for(pod.uid)]
    )


def _key(claim: ClaimInfo) -> Key:
    return claim.key
