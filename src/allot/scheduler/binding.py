"""From a decision to a pod on its node: the writes, in order.

Where it sits
    The loop hands over what a cycle decided and goes on; several bindings are under way
    at once. What a binding learns it reports to the loop, which alone touches the
    snapshot.

Where the server has transactions, all of it is one request (`placing`). Else, and where devices
must be made ready in between:

Before either, where drivers are to allocate classic claims, they are asked and waited for; the pod's
room and devices stay held meanwhile.

The order (upstream's PreBind)
    for each claim         the finalizer, then allocation and reservation in one write
    extended resources     the claim is created first, and the pod's status names it
    binding conditions     the devices are waited for
    the binding            the pod gets its node
    the PodScheduling      goes, if there was one

What it promises
    BIND2  A pod is bound only when all its claims are allocated, reserved for it and ready (P1).
    BIND3  After a definite refusal the pod leaves no reservation behind, no allocation that it
           was the only one to use, and no claim for extended resources (C5). When this process
           dies on the way, the next one finds the same and goes on or takes it back. A pod that
           somebody else has bound keeps everything: it runs, or will (C6).
    BIND4  A node is written to a pod once (P4): the server refuses a second binding, and a pod
           that has its node already is never taken for a failure.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from allot.api import Object, core, errors, resource
from allot.base import Clock, InvariantBroken
from allot.client import Client, level_of
from allot.informers import Key

from . import extended
from .awaiting import Awaiting, Known, Late, Subject
from .claim import ClaimInfo
from .claiming import RETRY_FIRST_S, RETRY_LONGEST_S, UNKNOWN, ClaimWriter, Outdated, Refusal, insist
from .cycle import Placed
from .extended import DeviceRequests
from .mirror import CLAIMS
from .negotiation import Negotiated, Negotiating, Silent, Unwilling, WaitsForDrivers
from .negotiation_writes import TalkWriter
from .placing import BoundElsewhere, NotTogether, Placing, chosen
from .pod import PodInfo
from .readiness import Readiness, awaited, left_s, readiness, unready
from .settings import DRIVER_TIMEOUT_S
from .writes import (
    AllocateClaim,
    CreateExtendedClaim,
    EndTalk,
    KeepExtendedClaim,
    Negotiate,
    ReserveClaim,
    TakeCompute,
)

log = logging.getLogger(__name__)


# -- what the loop is told ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClaimWritten:
    """The server's answer to a write of ours, or what was in its way: the watch may not have told it."""

    claim: Object
    instead_of: str = ""  # the uid under which the ledger has known it


@dataclass(frozen=True, slots=True)
class WaitsForDevices:
    """Devices must be made ready before the pod can be bound."""

    placed: Placed
    claims: tuple[ClaimInfo, ...]

    @property
    def text(self) -> str:
        return f"waits on {self.placed.node} for {awaited(self.claims)}"


@dataclass(frozen=True, slots=True)
class Waited:
    """The devices of a claim were waited for."""

    drivers: frozenset[str]
    state: Readiness
    seconds: float


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """A claim for extended resources was created, or could not be."""

    created: bool


@dataclass(frozen=True, slots=True)
class Bound:
    placed: Placed


@dataclass(frozen=True, slots=True)
class Failed:
    placed: Placed
    error: str
    is_outdated: bool = False  # a claim was not as it was decided on; how it is now has been told
    is_mistake: bool = True  # else drivers said no, or nothing, as they may


@dataclass(frozen=True, slots=True)
class BoundByAnother:
    """The pod runs, or will, and neither its reservations nor its condition are our business (C6)."""

    placed: Placed


Report = (
    ClaimWritten
    | WaitsForDevices
    | WaitsForDrivers
    | Negotiated
    | Waited
    | ExtendedClaim
    | Bound
    | Failed
    | BoundByAnother
)


class Binder:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        report: Callable[[Report], None],
        awaiting: Awaiting,
        *,
        binding_timeout_s: float,
        driver_timeout_s: float = DRIVER_TIMEOUT_S,
    ) -> None:
        self._pods = client.resource("", "v1", "pods")
        self._clock = clock
        self._awaiting = awaiting
        self._report = report
        self._binding_timeout_s = binding_timeout_s
        self.claims = ClaimWriter(client, clock, lambda claim: report(ClaimWritten(claim)))
        self.talks = TalkWriter(client)
        self._placing = Placing(client, self.claims, self.talks)
        self._negotiating = Negotiating(clock, awaiting, self.talks, report, driver_timeout_s)

    async def bind(self, placed: Placed) -> None:
        """Make the writes. Reports how it ended, whatever happens: a pod of which nothing is heard would wait
        for ever."""
        try:
            await self._attempt(placed)
        except InvariantBroken:
            raise
        except Exception as bug:  # what was to be taken back cannot be read: the next attempt looks again
            log.exception("giving up on binding %s failed", placed.state.pod.key)
            self._report(Failed(placed, f"internal error: {bug!r}"))

    async def _attempt(self, placed: Placed) -> None:
        made = _listed_before(placed)
        try:
            whole = await self._negotiating.settled(placed, made)
            if not await self._place(whole):
                await self._prepare(whole, made)
                await self._bind(whole)
                await self._end_talk(whole)
        except BoundElsewhere as other:
            log.info("pod %s was not bound to %s: %s", placed.state.pod.key, placed.node, other)
            self._report(BoundByAnother(placed))
        except (Refusal, errors.ApiError) as refused:
            level = level_of(refused, logging.INFO)
            log.log(level, "pod %s was not bound to %s: %s", placed.state.pod.key, placed.node, refused)
            await self._give_up(placed, made, refused)
        except InvariantBroken:
            raise
        except Exception as bug:  # perhaps one that only this pod meets: the others must not wait for it
            log.exception("binding %s failed in an unforeseen way", placed.state.pod.key)
            await self._give_up(placed, made, Refusal(f"internal error: {bug!r}"))
        else:
            self._report(Bound(placed))

    async def _give_up(
        self, placed: Placed, made: Sequence[ClaimInfo], why: Refusal | errors.ApiError
    ) -> None:
        if await self._node_of(placed.state.pod):
            self._report(BoundByAnother(placed))
            return
        await self._take_back(placed.state.pod, made)
        is_mistake = not isinstance(why, Unwilling | Silent)
        self._report(Failed(placed, str(why), isinstance(why, Outdated), is_mistake))

    async def require_unbound(self, pod: PodInfo) -> None:
        """Raises Refusal, or an ApiError, unless the server says that the pod waits for a node. A watch
        may be behind, and whoever takes a claim from a pod that runs takes its devices."""
        now = await insist(lambda: self._pods.get(pod.key.name, pod.key.namespace))
        node = now.view(core.Pod).spec.node_name
        if now.uid != pod.uid or node:
            raise Refusal(f"the pod is bound to {node} already" if node else "the pod was replaced")

    async def _node_of(self, pod: PodInfo) -> str:
        """Where the server says that the pod is; nowhere if it is gone or cannot be read."""
        try:
            now = await insist(lambda: self._pods.get(pod.key.name, pod.key.namespace))
        except errors.ApiError:
            return ""
        return now.view(core.Pod).spec.node_name if now.uid == pod.uid else ""

    async def _place(self, placed: Placed) -> bool:
        """Everything at once. False where it has to be done one after the other; nothing is written then."""
        if not self._placing.takes(placed):
            return False
        has_extended = any(isinstance(write, CreateExtendedClaim) for write in placed.writes)
        try:
            made = await self._placing.place(placed)
        except NotTogether as why:
            log.debug("pod %s is placed one write after the other: %s", placed.state.pod.key, why)
            return False
        except (Refusal, errors.ApiError):
            if has_extended:
                self._report(ExtendedClaim(created=False))
            raise
        if has_extended:
            self._report(ExtendedClaim(created=True))
        for one in made:
            self._report(ClaimWritten(one.claim, one.instead_of))
        return True

    async def _prepare(self, placed: Placed, made: list[ClaimInfo]) -> None:
        """All writes before the binding. `made` are the claims that this attempt has written."""
        pod = placed.state.pod
        found: list[ClaimInfo] = []  # reserved by an attempt before this one, or by another scheduler
        for write in placed.writes:
            match write:
                case AllocateClaim(claim, allocation):
                    made.append(await self.claims.allocate(pod, claim, allocation))
                case ReserveClaim(claim):
                    reserved, is_ours = await self.claims.reserve(pod, claim)
                    (made if is_ours else found).append(reserved)
                case CreateExtendedClaim():
                    await self._serve_extended(pod, write, made)
                case Negotiate():
                    raise InvariantBroken("BIND2: drivers are waited for before anything is written")
                case EndTalk() | TakeCompute():
                    pass  # after the binding, and with it
                case KeepExtendedClaim(claim, devices):
                    made.append(await self.claims.keep_extended(pod, claim))  # or it goes, with the others
                    await self._name_extended(pod, claim, devices)
                case _:
                    assert_never(write)
        await self._ready(placed, [*found, *made])

    async def _serve_extended(self, pod: PodInfo, write: CreateExtendedClaim, made: list[ClaimInfo]) -> None:
        try:
            claim = await self.claims.create_extended(pod, write.devices)
        except (Refusal, errors.ApiError):
            self._report(ExtendedClaim(created=False))
            raise
        made.append(claim)
        self._report(ExtendedClaim(created=True))
        self._report(ClaimWritten(claim.object, instead_of=write.uid))
        made[-1] = await self.claims.allocate(pod, claim, write.allocation)
        await self._name_extended(pod, claim, write.devices)

    async def _name_extended(self, pod: PodInfo, claim: ClaimInfo, devices: DeviceRequests) -> None:
        """The pod's status says which claim it is, and which container uses what of it."""
        patch = extended.status_patch(pod.uid, claim.key.name, devices)
        await insist(lambda: self._pods.patch(pod.key.name, patch, pod.key.namespace, subresource="status"))

    async def _ready(self, placed: Placed, claims: Sequence[ClaimInfo]) -> None:
        """Until the devices are ready (binding conditions)."""
        waiting = {one.key: one for one in claims if self._readiness(one) is not Readiness.READY}
        if any(self._readiness(one) is Readiness.WAITING for one in waiting.values()):
            self._report(WaitsForDevices(placed, tuple(waiting.values())))
        began_s = self._clock.monotonic_s()
        while waiting:
            claim, state = await self._settled(placed.state.pod, claims, waiting)
            drivers = frozenset(one.driver for one in _results(claim) if one.binding_conditions)
            self._report(Waited(drivers, state, self._clock.monotonic_s() - began_s))
            if state is not Readiness.READY:
                why = f"{state.value}: {_what_is_wrong(claim)}"
                raise Refusal(f"the devices of claim {claim.key.name} were not made ready: {why}")
            del waiting[claim.key]

    async def _settled(
        self, pod: PodInfo, claims: Sequence[ClaimInfo], waiting: Mapping[Key, ClaimInfo]
    ) -> tuple[ClaimInfo, Readiness]:
        """The first of those that wait whose devices need not be waited for any more, as it is then. While
        it waits for one, the pod may lose any of its claims."""
        subjects = {Subject(CLAIMS, claim.key): claim.uid for claim in claims}

        def judge(known: Known) -> tuple[ClaimInfo, Readiness] | None:
            found = [_still_held(known[one], uid, pod) for one, uid in subjects.items()]
            states = ((claim, self._readiness(claim)) for claim in found if claim.key in waiting)
            return next((one for one in states if one[1] is not Readiness.WAITING), None)

        times_s = {key: self._left_s(claim) for key, claim in waiting.items()}
        first = min(times_s, key=lambda key: times_s[key])
        found = await self._awaiting.until(subjects, judge, times_s[first])
        if not isinstance(found, Late):
            return found
        late = Subject(CLAIMS, first)
        return _still_held(found.known[late], subjects[late], pod), Readiness.LATE

    def _left_s(self, claim: ClaimInfo) -> float:
        return left_s(claim, self._clock.now(), self._binding_timeout_s)

    def _readiness(self, claim: ClaimInfo) -> Readiness:
        return readiness(claim, self._clock.now(), self._binding_timeout_s)

    async def _bind(self, placed: Placed) -> None:
        pod = placed.state.pod
        wait_s = RETRY_FIRST_S
        while True:
            try:
                await self._pods.bind(
                    pod.key.name, pod.key.namespace, placed.node, uid=pod.uid, **chosen(placed)
                )
                return
            except (*UNKNOWN, errors.Conflict) as refused:
                now = await insist(lambda: self._pods.get(pod.key.name, pod.key.namespace))
                if now.uid != pod.uid:
                    raise Refusal("the pod was replaced") from refused
                node = now.view(core.Pod).spec.node_name
                if node == placed.node:
                    return  # BIND4
                if node:
                    raise BoundElsewhere(f"the pod is bound to {node} already") from refused
                if isinstance(refused, errors.Conflict):
                    raise Refusal(str(refused)) from refused
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, RETRY_LONGEST_S)

    async def _end_talk(self, placed: Placed) -> None:
        """The pod has its node. What cannot be removed now is found and removed later (P5)."""
        for write in placed.writes:
            if isinstance(write, EndTalk):
                try:
                    await self.talks.end(write.talk)
                except errors.ApiError as refused:
                    level = level_of(refused, logging.WARNING)
                    log.log(level, "podscheduling %s stays for now: %s", write.talk.key, refused)

    async def _take_back(self, pod: PodInfo, made: Sequence[ClaimInfo]) -> None:
        """BIND3. What cannot be taken back now is taken back by the claim controller, or the next attempt."""
        for claim in made:
            try:
                if extended.owner_of(claim.view.metadata) == pod.uid:
                    await self.claims.delete_extended(pod, claim)
                else:
                    await self.claims.release(pod, claim)
            except errors.NotFound:
                pass  # nothing stays
            except (Refusal, errors.ApiError) as refused:
                level = level_of(refused, logging.WARNING)
                log.log(level, "claim %s stays reserved for %s: %s", claim.key, pod.key, refused)
            except InvariantBroken:
                raise
            except (
                Exception
            ):  # what somebody wrote into the claim cannot be read: the pod must not wait for it
                log.exception("claim %s stays reserved for %s", claim.key, pod.key)


def _listed_before(placed: Placed) -> list[ClaimInfo]:
    """Classic claims that list the pod already: its driver did that, or an attempt before this one. Whoever
    it was, a pod that is not bound keeps none of them (UNRSV-01)."""
    reserved = (write.claim for write in placed.writes if isinstance(write, ReserveClaim))
    return [one for one in reserved if one.is_classic and one.is_reserved_for(placed.state.pod.uid)]


def _still_held(claim: Object | None, uid: str, pod: PodInfo) -> ClaimInfo:
    """Raises Refusal when the pod has lost a claim that it was to use, or keeps one from going that somebody
    has deleted."""
    now = ClaimInfo.of(claim) if claim is not None and claim.uid == uid else None
    if now is None or now.allocation is None or not now.is_reserved_for(pod.uid):
        name = f"claim {claim.name}" if claim is not None else "a claim of the pod"
        raise Refusal(f"{name} was taken back while its devices were made ready")
    if now.is_deleting:
        raise Refusal(f"claim {now.key.name} is being deleted")
    return now


def _what_is_wrong(claim: ClaimInfo) -> str:
    """What its driver says, or did not say."""
    failures = [words for one in unready(claim) for words in one.failures]
    return ", ".join(failures) if failures else f"no {awaited([claim])}"


def _results(claim: ClaimInfo) -> Sequence[resource.DeviceRequestAllocationResult]:
    return claim.allocation.devices.results if claim.allocation is not None else ()
