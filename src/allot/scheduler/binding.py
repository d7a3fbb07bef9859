"""From a decision to a pod on its node: the writes, in order, until each is settled.

Where it sits
    The loop hands over what a cycle decided and goes on; several bindings are under way
    at once. What a binding learns it reports to the loop, which alone touches the
    snapshot.

The order (digest 5, PreBind)
    for each claim         the finalizer, then allocation and reservation in one write
    extended resources     the claim is created first, and the pod's status names it
    binding conditions     the devices are waited for
    the binding            the pod gets its node

What it promises
    W1  Only a definite answer ends a step. After a failure of unknown outcome the object is
        read; while the server cannot say, the step is tried again and everything stays held.
    W2  A pod is bound only when all its claims are allocated, reserved for it and ready (P1).
    W3  After a definite refusal the pod leaves no reservation behind, no allocation that it
        was the only one to use, and no claim for extended resources (C5). When this process
        dies on the way, the next one finds the same and goes on or takes it back.
    W4  A node is written to a pod once (P4): the server refuses a second binding, and a pod
        that has its node already is never taken for a failure.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from allot.api import Object, age, core, errors, resource
from allot.base import Clock
from allot.client import Client

from . import extended
from .claim import ClaimInfo
from .cycle import Placed
from .plugins.devices import Readiness, readiness
from .pod import PodInfo
from .writes import AllocateClaim, CreateExtendedClaim, ReserveClaim

log = logging.getLogger(__name__)

FINALIZER = resource.limits.FINALIZER
RETRY_FIRST_S, RETRY_LONGEST_S = 0.05, 5.0
CONFLICTS_MAX = 5
READINESS_EVERY_S = 1.0

T = TypeVar("T")
_UNKNOWN = (errors.Timeout, errors.Unavailable, errors.TooManyRequests, errors.Internal)


class Refusal(Exception):
    """The binding cannot be completed; what it held must be given back."""


class BoundElsewhere(Exception):
    """Somebody else bound the pod: it runs, or will, and its reservations are none of our business (C6)."""


# -- what the loop is told ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClaimWritten:
    """The server's answer to a write of ours: at least as new as what the watch has told."""

    claim: Object
    instead_of: str = ""  # the uid under which the ledger has known it


@dataclass(frozen=True, slots=True)
class WaitsForDevices:
    """Devices must be made ready before the pod can be bound."""

    pod: PodInfo
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    placed: Placed


@dataclass(frozen=True, slots=True)
class Failed:
    placed: Placed
    error: str


Report = ClaimWritten | WaitsForDevices | Bound | Failed


class Binder:
    def __init__(
        self, client: Client, clock: Clock, report: Callable[[Report], None], *, binding_timeout_s: float
    ) -> None:
        self._claims = client.resource(resource.limits.GROUP, "v1", "resourceclaims")
        self._pods = client.resource("", "v1", "pods")
        self._clock = clock
        self._report = report
        self._binding_timeout_s = binding_timeout_s
        self._turns: dict[str, _Turn] = {}  # by claim uid

    async def bind(self, placed: Placed) -> None:
        """Make the writes. Reports how it ended."""
        made: list[ClaimInfo] = []
        try:
            await self._prepare(placed, made)
            await self._bind(placed)
        except BoundElsewhere as other:
            self._report(Failed(placed, str(other)))
        except (Refusal, errors.ApiError) as refused:
            log.info("pod %s was not bound to %s: %s", placed.state.pod.key, placed.node, refused)
            await self._take_back(placed.state.pod, made)
            self._report(Failed(placed, str(refused)))
        else:
            self._report(Bound(placed))

    # -- before the binding ---------------------------------------------------------------------

    async def _prepare(self, placed: Placed, made: list[ClaimInfo]) -> None:
        pod = placed.state.pod
        for write in placed.writes:
            match write:
                case AllocateClaim(claim, allocation):
                    made.append(await self._in_turn(claim, lambda it: self._allocate(pod, it, allocation)))
                case ReserveClaim(claim):
                    made.append(await self._in_turn(claim, lambda it: self._reserve(pod, it)))
                case CreateExtendedClaim():
                    await self._serve_extended(pod, write, made)
        await self._ready(pod, made)

    async def _allocate(self, pod: PodInfo, claim: Object, allocation: resource.AllocationResult) -> Object:
        """Protect, then write allocation and reservation at once (C1, C2)."""
        stamped = msgspec.structs.replace(allocation, allocation_timestamp=age.timestamp(self._clock.now()))
        written = msgspec.to_builtins(stamped)

        async def attempt(now: Object) -> Object:
            status = now.view(resource.ResourceClaim).status
            if status.allocation is not None:
                if _same_devices(status.allocation, allocation) and _is_reserved(status, pod):
                    return now  # an earlier write of ours, of which we did not hear
                raise Refusal(f"claim {now.name} was allocated elsewhere")
            finalizers = now.metadata.finalizers or []
            if FINALIZER not in finalizers:
                protected = now.changed({"metadata": {"finalizers": [*finalizers, FINALIZER]}})
                now = await self._claims.update(protected)
            reserved = [*now.fields.get("status", {}).get("reservedFor", ()), _consumer(pod)]
            return await self._claims.update_status(
                now.changed({"status": {"allocation": written, "reservedFor": reserved}})
            )

        return await self._until_definite(claim, attempt)

    async def _reserve(self, pod: PodInfo, claim: Object) -> Object:
        decided_on = claim.view(resource.ResourceClaim).status.allocation

        async def attempt(now: Object) -> Object:
            status = now.view(resource.ResourceClaim).status
            if status.allocation is None or decided_on is None or status.allocation != decided_on:
                raise Refusal(f"claim {now.name} no longer has the devices that it had")
            if _is_reserved(status, pod):
                return now
            reserved = [*now.fields["status"].get("reservedFor", ()), _consumer(pod)]
            return await self._claims.update_status(now.changed({"status": {"reservedFor": reserved}}))

        return await self._until_definite(claim, attempt)

    async def _serve_extended(self, pod: PodInfo, write: CreateExtendedClaim, made: list[ClaimInfo]) -> None:
        created = await self._create_extended(pod, write)
        claim = ClaimInfo.of(created)
        made.append(claim)
        self._report(ClaimWritten(created, instead_of=write.uid))
        made[-1] = await self._in_turn(claim, lambda it: self._allocate(pod, it, write.allocation))
        patch = extended.status_patch(pod.uid, claim.key.name, write.devices)
        await self._insist(
            lambda: self._pods.patch(pod.key.name, patch, pod.key.namespace, subresource="status")
        )

    async def _create_extended(self, pod: PodInfo, write: CreateExtendedClaim) -> Object:
        """Its name follows from the pod's uid, so that trying again cannot make a second one (C5)."""
        body = extended.body(pod.view, write.devices)
        try:
            return await self._insist(lambda: self._claims.create(body, pod.key.namespace))
        except errors.AlreadyExists:
            name = body["metadata"]["name"]
            found = await self._insist(lambda: self._claims.get(name, pod.key.namespace))
            ours = pod.uid in extended.pods_of(found) and found.fields["spec"] == body["spec"]
            if ours and not found.metadata.deletion_timestamp:
                return found
            raise Refusal(f"claim {name} is in the way of the pod's own") from None

    async def _ready(self, pod: PodInfo, claims: Sequence[ClaimInfo]) -> None:
        """Until the devices are ready (binding conditions)."""
        waiting = [one for one in claims if self._readiness(one) is not Readiness.READY]
        if waiting:
            self._report(WaitsForDevices(pod, tuple(one.key.name for one in waiting)))
        for claim in waiting:
            while (state := self._readiness(claim)) is Readiness.WAITING:
                await asyncio.sleep(READINESS_EVERY_S)
                now = await self._insist(lambda it=claim: self._claims.get(*_named(it)))  # type: ignore[misc]
                claim = ClaimInfo.of(now)
                if claim.allocation is None or not claim.is_reserved_for(pod.uid):
                    raise Refusal(f"claim {claim.key.name} was taken back while its devices were made ready")
            if state is not Readiness.READY:
                raise Refusal(f"the devices of claim {claim.key.name} were not made ready: {state.value}")

    def _readiness(self, claim: ClaimInfo) -> Readiness:
        return readiness(claim, self._clock.now(), self._binding_timeout_s)

    # -- the binding ----------------------------------------------------------------------------

    async def _bind(self, placed: Placed) -> None:
        pod = placed.state.pod
        wait_s = RETRY_FIRST_S
        while True:
            try:
                await self._pods.bind(pod.key.name, pod.key.namespace, placed.node, uid=pod.uid)
                return
            except (*_UNKNOWN, errors.Conflict) as refused:
                now = await self._insist(lambda: self._pods.get(pod.key.name, pod.key.namespace))
                if now.uid != pod.uid:
                    raise Refusal("the pod was replaced") from refused
                node = now.view(core.Pod).spec.node_name
                if node == placed.node:
                    return  # W4
                if node:
                    raise BoundElsewhere(f"the pod is bound to {node} already") from refused
                if isinstance(refused, errors.Conflict):
                    raise Refusal(str(refused)) from refused
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, RETRY_LONGEST_S)

    # -- taking it back -------------------------------------------------------------------------

    async def _take_back(self, pod: PodInfo, made: Sequence[ClaimInfo]) -> None:
        """W3. What cannot be taken back now is taken back by the claim controller, or the next attempt."""
        for claim in made:
            try:
                if extended.owner_of(claim.view.metadata) == pod.uid:
                    await self.delete_extended(claim)
                else:
                    await self._in_turn(claim, lambda it: self._release(pod, it))
            except (Refusal, errors.ApiError) as refused:
                log.warning("claim %s stays reserved for %s: %s", claim.key, pod.key, refused)

    async def _release(self, pod: PodInfo, claim: Object) -> Object:
        """Leave the claim; the last one out gives the devices back, and then the protection."""

        async def attempt(now: Object) -> Object:
            status = now.view(resource.ResourceClaim).status
            if not _is_reserved(status, pod):
                idle = status.allocation is None and FINALIZER in (now.metadata.finalizers or ())
                return await self._unprotect(now) if idle else now
            left = [one for one in now.fields["status"]["reservedFor"] if one.get("uid") != pod.uid]
            changes = {"reservedFor": left or None, **({} if left else {"allocation": None, "devices": None})}
            now = await self._claims.update_status(now.changed({"status": changes}))
            return now if left else await self._unprotect(now)

        return await self._until_definite(
            await self._insist(lambda: self._claims.get(claim.name, claim.namespace)), attempt
        )

    async def _unprotect(self, claim: Object) -> Object:
        rest = [one for one in claim.metadata.finalizers or () if one != FINALIZER]
        return await self._claims.update(claim.changed({"metadata": {"finalizers": rest}}))

    async def deallocate(self, claim: ClaimInfo, pod: PodInfo) -> None:
        """PostFilter: take back what nobody but, perhaps, this pod has reserved."""

        async def attempt(now: Object) -> Object:
            status = now.view(resource.ResourceClaim).status
            if status.allocation is None or any(one.uid != pod.uid for one in status.reserved_for):
                return now
            changes = {"reservedFor": None, "allocation": None, "devices": None}
            return await self._unprotect(await self._claims.update_status(now.changed({"status": changes})))

        await self._in_turn(claim, lambda it: self._until_definite(it, attempt))

    async def delete_extended(self, claim: ClaimInfo) -> None:
        """Remove a claim for extended resources, whatever state it is in; its allocation goes first (C1)."""

        async def attempt(now: Object) -> Object:
            status = now.view(resource.ResourceClaim).status
            if status.allocation is not None or status.reserved_for:
                changes = {"reservedFor": None, "allocation": None, "devices": None}
                now = await self._claims.update_status(now.changed({"status": changes}))
            if FINALIZER in (now.metadata.finalizers or ()):
                now = await self._unprotect(now)
            await self._claims.delete(now.name, now.namespace, uid=now.uid)
            return now

        try:
            now = await self._insist(lambda: self._claims.get(*_named(claim)))
            if now.uid == claim.uid:
                await self._until_definite(now, attempt)
        except errors.NotFound:
            pass

    # -- trying again ---------------------------------------------------------------------------

    async def _in_turn(self, claim: ClaimInfo, write: Callable[[Object], Awaitable[Object]]) -> ClaimInfo:
        """Writes to one claim come one after the other, each on top of the last: no conflicts of our own."""
        turn = self._turns.setdefault(claim.uid, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                known = turn.latest
                object = known.object if known is not None and known.is_newer_than(claim) else claim.object
                written = await write(object)
                turn.latest = ClaimInfo.of(written)
                self._report(ClaimWritten(written))
                return turn.latest
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[claim.uid]

    async def _until_definite(self, claim: Object, attempt: Callable[[Object], Awaitable[Object]]) -> Object:
        """Attempt on the claim as known; where that is old or the outcome unknown, read it first (W1)."""
        conflicts, wait_s = 0, RETRY_FIRST_S
        now = claim
        while True:
            try:
                return await attempt(now)
            except errors.Conflict as conflict:
                conflicts += 1
                last: errors.ApiError = conflict
            except _UNKNOWN as unknown:
                last = unknown
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, RETRY_LONGEST_S)
            read = await self._insist(lambda: self._claims.get(claim.name, claim.namespace))
            if read.uid != claim.uid:
                raise Refusal(f"claim {claim.name} was replaced")
            overlaps = isinstance(last, errors.Conflict) and read.resource_version == now.resource_version
            if overlaps or conflicts > CONFLICTS_MAX:  # nobody wrote the claim: its devices went to another
                raise Refusal(str(last))
            now = read

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer. For what may be repeated without harm."""
        wait_s = RETRY_FIRST_S
        while True:
            try:
                return await ask()
            except _UNKNOWN:
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, RETRY_LONGEST_S)


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock
    latest: ClaimInfo | None = None
    waiting: int = 0

    def __init__(self) -> None:
        self.lock, self.latest, self.waiting = asyncio.Lock(), None, 0


def _named(claim: ClaimInfo) -> tuple[str, str]:
    return claim.key.name, claim.key.namespace


def _consumer(pod: PodInfo) -> dict[str, str]:
    return {"resource": "pods", "name": pod.key.name, "uid": pod.uid}


def _is_reserved(status: resource.ResourceClaimStatus, pod: PodInfo) -> bool:
    return any(one.uid == pod.uid for one in status.reserved_for)


def _same_devices(found: resource.AllocationResult, wanted: resource.AllocationResult) -> bool:
    return found.devices.results == wanted.devices.results
