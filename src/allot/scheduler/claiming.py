"""Writing claims: allocate, reserve, leave, take back. Each write until its outcome is known.

What it promises
    BIND1  Only a definite answer ends a step. After a failure of unknown outcome the object is
           read; while the server cannot say, the step is tried again and everything stays held.
    C1  The finalizer is there before the allocation, and goes after it.
    C2  Allocation and reservation are one write; a reservation is only ever added to the
        allocation that was decided on.
    BIND5  What another scheduler wrote for the same pod is not taken for ours: found as we would
           have written it, it is ours only if a write of ours went unanswered.
    C12 The claim that serves a pod's extended resources is never removed while anybody else is listed as its
        user, and no pod is listed in a claim that was made for another (C4).
    BIND6  Giving back ends when nothing of it can arrive any more: a write that went unanswered may still be
           on its way, and must not find a claim that the next attempt relies on.

Writes of this process to one claim come one after the other, each on top of the last.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from allot.api import Object, age, classic, errors, numeric, resource
from allot.base import Clock
from allot.client import Client

from . import extended
from .claim import ClaimInfo, other_owner
from .extended import DeviceRequests
from .pod import PodInfo

lifecycle = resource.lifecycle

RETRY_FIRST_S, RETRY_LONGEST_S = 0.05, 5.0
CONFLICTS_MAX = 5
NOTHING_HELD: dict[str, Any] = {"reservedFor": None, "allocation": None, "devices": None}

T = TypeVar("T")
UNKNOWN = (errors.Timeout, errors.Unavailable, errors.TooManyRequests, errors.Internal)
Attempt = Callable[[Object, bool], Awaitable[Object]]
"""A write on top of the claim as known; whether one of ours went unanswered before."""


class Refusal(Exception):
    """A definite no: the write was not made and will not be."""


class Outdated(Refusal):
    """The claim is not as it was when this was decided. How it is now has been told."""


class ClaimWriter:
    def __init__(self, client: Client, clock: Clock, written: Callable[[Object], None]) -> None:
        """`written` is told every answer, and what was found instead of what was decided on. It may
        be newer than what a watch has told."""
        self._claims = client.resource(resource.limits.GROUP, "v1", "resourceclaims")
        self._classic = client.resource(resource.limits.GROUP, classic.limits.VERSION, "resourceclaims")
        self._clock = clock
        self._written = written
        self._turns: dict[str, _Turn] = {}  # by claim uid

    async def allocate(
        self, pod: PodInfo, claim: ClaimInfo, allocation: resource.AllocationResult
    ) -> ClaimInfo:
        """Protect the claim, then write allocation and reservation at once."""
        stamped = self._stamped(allocation)

        async def attempt(now: Object, is_unsure: bool) -> Object:
            held = now.view(resource.ResourceClaim).status
            if is_unsure and _same_devices(held.allocation, allocation) and _is_reserved(held, pod):
                return now  # BIND5: an earlier write of ours, of which we did not hear
            finalizers, status = _allocated(pod, now, stamped)
            if finalizers is not None:
                now = await self._claims.update(now.changed({"metadata": {"finalizers": finalizers}}))
            return await self._claims.update_status(now.changed({"status": status}))

        return await self._write(claim, attempt)

    async def reserve(self, pod: PodInfo, claim: ClaimInfo) -> tuple[ClaimInfo, bool]:
        """List the pod as a user of the devices that the claim was decided on with.

        Also says whether it was this that did it: it may have been listed already (BIND5).
        """
        is_ours = True

        async def attempt(now: Object, is_unsure: bool) -> Object:
            nonlocal is_ours
            reserved = reservation(pod, now, claim)
            if reserved is None:
                is_ours = is_unsure
                return now
            return await self._claims.update_status(now.changed({"status": {"reservedFor": reserved}}))

        return await self._write(claim, attempt), is_ours

    # -- the same as values, for a placement that is written as a whole -------------------------

    def allocated(
        self, pod: PodInfo, now: Object, allocation: resource.AllocationResult
    ) -> tuple[list[str] | None, dict[str, Any]]:
        """What the finalizers (None: they stay) and the status of the claim become. Raises Outdated."""
        return _allocated(pod, now, self._stamped(allocation))

    def allocated_from_the_start(self, pod: PodInfo, allocation: resource.AllocationResult) -> dict[str, Any]:
        """The status of a claim that is made for the pod."""
        return {"allocation": self._stamped(allocation), "reservedFor": [_consumer(pod)]}

    @asynccontextmanager
    async def turns(self, claims: Sequence[ClaimInfo]) -> AsyncIterator[dict[str, ClaimInfo]]:
        """The newest that is known of each claim, while nobody else in this process writes it. What is put
        there instead is what was written; where it was found to be another, `written` is told."""
        taken = {claim.uid: self._turns.setdefault(claim.uid, _Turn()) for claim in claims}
        latest = {claim.uid: claim for claim in claims}
        locked: list[_Turn] = []
        for turn in taken.values():
            turn.waiting += 1
        try:
            for uid in sorted(taken):  # two placements with two claims in common do not wait for each other
                await taken[uid].lock.acquire()
                locked.append(taken[uid])
                known = taken[uid].latest
                if known is not None and known.is_newer_than(latest[uid]):
                    latest[uid] = known
            before = dict(latest)
            yield latest
            for uid, claim in latest.items():
                if claim is not before[uid]:
                    taken[uid].latest = claim
        finally:
            for turn in locked:
                turn.lock.release()
            for uid, turn in taken.items():
                turn.waiting -= 1
                if not turn.waiting:
                    del self._turns[uid]

    def tell(self, claim: Object) -> None:
        """How a claim is, as an answer has shown."""
        self._written(claim)

    def _stamped(self, allocation: resource.AllocationResult) -> dict[str, Any]:
        stamped = msgspec.structs.replace(allocation, allocation_timestamp=age.timestamp(self._clock.now()))
        fields: dict[str, Any] = msgspec.to_builtins(stamped)
        return fields

    async def release(self, pod: PodInfo, claim: ClaimInfo) -> None:
        """Leave the claim. The last one out gives the devices back, and then the protection, where that is
        the scheduler's to do."""

        async def attempt(now: Object, _: bool) -> Object:
            view = now.view(resource.ResourceClaim)
            if not _is_reserved(view.status, pod):
                is_idle = view.status.allocation is None and lifecycle.is_protected(view)
                return await self._unprotect(now) if is_idle else now
            left = [one for one in _reserved(now) if one.get("uid") != pod.uid]
            if left or lifecycle.of(view).on_last is lifecycle.Ending.KEEP:
                reserved = {"reservedFor": left or None}
                return await self._claims.update_status(now.changed({"status": reserved}))
            return await self._clear(now)

        await self._write(claim, attempt, gives_back=True)

    async def deallocate(self, pod: PodInfo, claim: ClaimInfo) -> None:
        """Take back what nobody but, perhaps, this pod has reserved."""

        async def attempt(now: Object, _: bool) -> Object:
            view = now.view(resource.ResourceClaim)
            if any(one.uid != pod.uid for one in view.status.reserved_for):
                return now
            if view.status.allocation is not None:
                match lifecycle.of(view).gives_back:
                    case lifecycle.Ending.CLEAR:
                        return await self._clear(now)
                    case lifecycle.Ending.REQUEST:
                        return await self._request_deallocation(now)
                    case lifecycle.Ending.LEAVE if view.status.reserved_for:
                        return await self._claims.update_status(
                            now.changed({"status": {"reservedFor": None}})
                        )
                    case _:
                        return now
            return await self._unprotect(now) if lifecycle.is_protected(view) else now

        await self._write(claim, attempt, gives_back=True)

    # -- the claim for extended resources -------------------------------------------------------

    async def create_extended(self, pod: PodInfo, devices: DeviceRequests) -> ClaimInfo:
        """Its name follows from the pod's uid, so that trying again cannot make a second one (C5)."""
        body = extended.body(pod.view, devices)
        is_unsure = False

        async def create() -> Object:
            nonlocal is_unsure
            try:
                return await self._claims.create(body, pod.key.namespace)
            except UNKNOWN:
                is_unsure = True
                raise

        try:
            return ClaimInfo.of(await insist(create))
        except errors.AlreadyExists:
            name = body["metadata"]["name"]
            found = await insist(lambda: self._claims.get(name, pod.key.namespace))
            is_as_meant = pod.uid in extended.pods_of(found) and found.fields["spec"] == body["spec"]
            if is_unsure and is_as_meant and not found.metadata.deletion_timestamp:
                return ClaimInfo.of(found)  # BIND5
            raise Refusal(f"claim {name} is in the way of the pod's own") from None

    async def keep_extended(self, pod: PodInfo, claim: ClaimInfo) -> ClaimInfo:
        """The claim as it was decided on, by the word of the server: whoever made it may have taken it back,
        and a watch may be behind."""
        now = await self.read(claim)
        is_held = now.allocation == claim.allocation and now.is_reserved_for(pod.uid)
        if now.uid != claim.uid or now.is_deleting or not is_held:
            self._written(now.object)
            raise Outdated(f"claim {claim.key.name} no longer has the devices that it had")
        return now

    async def delete_extended(self, pod: PodInfo, claim: ClaimInfo) -> None:
        """Remove it, whatever state it is in; what it holds goes first (C1). While anybody else is listed
        it stays as it is, for whoever is listed may be running on its devices (C6, C12)."""

        async def attempt(now: Object, _: bool) -> Object:
            known = ClaimInfo.of(now)
            if others := known.users_besides(pod.uid):
                self._written(now)
                raise Refusal(f"claim {now.name} is also used by {', '.join(others)}, and stays")
            if known.allocation is not None or known.reserved_for:
                now = await self._clear(now)
            elif lifecycle.is_protected(now.view(resource.ResourceClaim)):
                now = await self._unprotect(now)
            await self._claims.delete(
                now.name, now.namespace, uid=now.uid, resource_version=now.resource_version
            )
            return now

        with contextlib.suppress(errors.NotFound):
            await self._write(claim, attempt, gives_back=True)

    async def read(self, claim: ClaimInfo) -> ClaimInfo:
        return ClaimInfo.of(await insist(lambda: self._claims.get(claim.key.name, claim.key.namespace)))

    async def _request_deallocation(self, claim: Object) -> Object:
        """Of its driver, and the pod leaves in the same write (C10). Its members can be written in their own
        version alone; the claim is read in ours."""
        if claim.view(resource.ResourceClaim).status.deallocation_requested:
            return claim
        body = {
            "metadata": {"uid": claim.uid, "resourceVersion": claim.resource_version},
            "status": {"deallocationRequested": True, "reservedFor": None},
        }
        await self._classic.patch(claim.name, body, claim.namespace, subresource="status")
        return await insist(lambda: self._claims.get(claim.name, claim.namespace))

    # -- how a write is made --------------------------------------------------------------------

    async def _clear(self, claim: Object) -> Object:
        return await self._unprotect(
            await self._claims.update_status(claim.changed({"status": NOTHING_HELD}))
        )

    async def _unprotect(self, claim: Object) -> Object:
        rest = lifecycle.unprotected(claim.view(resource.ResourceClaim))
        return await self._claims.update(claim.changed({"metadata": {"finalizers": rest}}))

    async def _write(self, claim: ClaimInfo, attempt: Attempt, *, gives_back: bool = False) -> ClaimInfo:
        turn = self._turns.setdefault(claim.uid, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                known = turn.latest
                start = known if known is not None and known.is_newer_than(claim) else claim
                turn.latest = ClaimInfo.of(await self._until_definite(start.object, attempt, gives_back))
                self._written(turn.latest.object)
                return turn.latest
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[claim.uid]

    async def _until_definite(self, claim: Object, attempt: Attempt, gives_back: bool) -> Object:
        """Attempt on the claim as known; where that is old or the outcome unknown, read it first (BIND1)."""
        conflicts, wait_s, is_unsure = 0, RETRY_FIRST_S, False
        now = claim
        while True:
            try:
                return await attempt(now, is_unsure)
            except Outdated:
                self._written(now)
                raise
            except errors.Conflict as conflict:
                conflicts += 1
                last: errors.ApiError = conflict
            except UNKNOWN as unknown:
                last, is_unsure = unknown, True
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, RETRY_LONGEST_S)
            read = await insist(lambda: self._claims.get(claim.name, claim.namespace))
            if read.uid != claim.uid:
                raise Refusal(f"claim {claim.name} was replaced")
            is_overlap = isinstance(last, errors.Conflict) and read.resource_version == now.resource_version
            if is_unsure and gives_back:  # BIND6
                await asyncio.sleep(RETRY_FIRST_S if is_overlap else 0)
            elif is_overlap or conflicts > CONFLICTS_MAX:  # nobody wrote it: its devices went to another
                raise Refusal(str(last))
            now = read


@dataclass(slots=True)
class _Turn:
    """Who writes a claim now, and what came of the last write."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    latest: ClaimInfo | None = None
    waiting: int = 0


async def insist(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until there is an answer. For what may be repeated without harm."""
    wait_s = RETRY_FIRST_S
    while True:
        try:
            return await ask()
        except UNKNOWN:
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, RETRY_LONGEST_S)


def _allocated(
    pod: PodInfo, now: Object, allocation: dict[str, Any]
) -> tuple[list[str] | None, dict[str, Any]]:
    """What the finalizers (None: they stay) and the status of a claim become when it gets its devices, for
    the pod (C1, C2). Raises Outdated."""
    view = now.view(resource.ResourceClaim)
    if view.status.allocation is not None:
        raise Outdated(f"claim {now.name} was allocated elsewhere")
    _require_usable(now, pod)
    finalizers, finalizer = now.metadata.finalizers or [], lifecycle.of(view).finalizer
    status = {"allocation": allocation, "reservedFor": [*_reserved(now), _consumer(pod)]}
    if resource.shape.is_classic(view):  # which the scheduler allocates with numeric parameters alone
        finalizer = numeric.limits.FINALIZER
        status["driverName"] = allocation["devices"]["results"][0]["driver"]
    protected = None if finalizer is None or finalizer in finalizers else [*finalizers, finalizer]
    return protected, status


def reservation(pod: PodInfo, now: Object, decided_on: ClaimInfo) -> list[dict[str, Any]] | None:
    """The users of a claim with the pod among them; None if it is. Raises Outdated."""
    status = now.view(resource.ResourceClaim).status
    if status.allocation is None or status.allocation != decided_on.allocation:
        raise Outdated(f"claim {now.name} no longer has the devices that it had")
    _require_usable(now, pod)
    if _is_reserved(status, pod):
        return None
    if decided_on.is_classic:
        _require_open(ClaimInfo.of(now), pod)
    return [*_reserved(now), _consumer(pod)]


def _require_usable(claim: Object, pod: PodInfo) -> None:
    """Somebody may have made it over to another pod since it was decided on."""
    if owner := other_owner(claim.view(resource.ResourceClaim), pod.uid):
        raise Outdated(f"claim {claim.name} was made for pod {owner} and is used by it alone")


def _require_open(claim: ClaimInfo, pod: PodInfo) -> None:
    """Few may use a classic claim, often one alone, and none while its driver takes it back."""
    if claim.is_to_be_deallocated:
        raise Outdated(f"claim {claim.key.name} is being deallocated")
    if claim.is_closed_to(pod.uid):
        raise Outdated(f"claim {claim.key.name} is used by {', '.join(claim.users_besides(pod.uid))}")


def _consumer(pod: PodInfo) -> dict[str, str]:
    return {"resource": "pods", "name": pod.key.name, "uid": pod.uid}


def _reserved(claim: Object) -> list[dict[str, Any]]:
    return (claim.fields.get("status") or {}).get("reservedFor") or []


def _is_reserved(status: resource.ResourceClaimStatus, pod: PodInfo) -> bool:
    return any(one.uid == pod.uid for one in status.reserved_for)


def _same_devices(found: resource.AllocationResult | None, wanted: resource.AllocationResult) -> bool:
    return found is not None and found.devices.results == wanted.devices.results
