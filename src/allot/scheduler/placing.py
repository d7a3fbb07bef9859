"""A whole placement in one request, where the server has transactions.

The claims protected, allocated and reserved, the claim for extended resources created, the pod bound
and its PodScheduling gone: all of it or nothing. `binding` needs five requests for that, with a crash
point between any two; it does so on a server without transactions, and where devices must be made ready
before the pod is bound.

What it promises
    PLACE1  Nothing is left behind by a placement that was refused: nothing of it was written.
    PLACE2  A placement of which no answer came is sent again, on what was read since. It compares the claims
            and takes a pod without a node only, so of all that were sent at most one is carried out.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from allot.api import Object, compute, core, errors, resource
from allot.client import Client, Write, member_of

from . import extended
from .claim import ClaimInfo
from .claiming import (
    CONFLICTS_MAX,
    RETRY_FIRST_S,
    RETRY_LONGEST_S,
    UNKNOWN,
    ClaimWriter,
    Outdated,
    Refusal,
    insist,
    reservation,
)
from .cycle import Placed
from .negotiation_writes import TalkWriter
from .pod import PodInfo
from .writes import (
    AllocateClaim,
    CreateExtendedClaim,
    EndTalk,
    KeepExtendedClaim,
    Negotiate,
    ReserveClaim,
    TakeCompute,
    taken,
)
from .writes import Write as Step


class NotTogether(Exception):
    """This server, or this placement, wants one write after the other. Nothing was written."""


class BoundElsewhere(Exception):
    """Somebody else bound the pod."""


@dataclass(frozen=True, slots=True)
class Made:
    """A claim as the placement left it."""

    claim: Object
    instead_of: str = ""  # the uid under which the ledger has known it


@dataclass(slots=True)
class _Draft:
    """The requests of a placement, and which of them answers with each claim as it is in the end."""

    writes: list[Write]
    claims: list[tuple[int, str]]
    ending: int | None = None  # of them, the one with which the talk about the pod ends


class Placing:
    def __init__(self, client: Client, claims: ClaimWriter, talks: TalkWriter) -> None:
        self._client = client
        self._talks = talks
        self._claims = claims
        self._claim_writes = client.resource(resource.limits.GROUP, "v1", "resourceclaims").writes
        self._pods = client.resource("", "v1", "pods")

    def takes(self, placed: Placed) -> bool:
        """Whether several requests become one: the server can, and nothing is to be waited for."""
        beside = [one for one in placed.writes if not isinstance(one, TakeCompute)]  # that is in the binding
        return self._client.has_transactions and bool(beside) and all(map(_is_at_once, beside))

    async def place(self, placed: Placed) -> Sequence[Made]:
        """Raises NotTogether, BoundElsewhere, Refusal (Outdated), or an ApiError of the pod's."""
        known = [write.claim for write in placed.writes if isinstance(write, AllocateClaim | ReserveClaim)]
        async with self._claims.turns(known) as latest:
            made = await self._until_definite(placed, latest)
            for one in made:
                if one.claim.uid in latest:
                    latest[one.claim.uid] = ClaimInfo.of(one.claim)
        return made

    async def _until_definite(self, placed: Placed, latest: Mapping[str, ClaimInfo]) -> Sequence[Made]:
        conflicts, wait_s, is_unsure = 0, RETRY_FIRST_S, False
        now = dict(latest)
        while True:
            try:
                draft = self._draft(placed, now)
            except Outdated:
                for claim in now.values():
                    self._claims.tell(claim.object)
                raise
            try:
                answers = await self._client.gathered(draft.writes)
            except errors.ApiError as refused:
                self._judge(refused)
                is_ending = draft.ending is not None and member_of(refused) == draft.ending
                if is_ending and not isinstance(refused, UNKNOWN):
                    placed = _without_ending(placed)  # somebody was faster (STATE-08)
                    continue
                if isinstance(refused, UNKNOWN):
                    is_unsure = True
                    await asyncio.sleep(wait_s)
                    wait_s = min(wait_s * 2, RETRY_LONGEST_S)
                else:
                    conflicts += 1
                if await self._is_bound(placed, is_unsure, refused):
                    return await self._found(placed, now)
                before = {uid: claim.object.resource_version for uid, claim in now.items()}
                now = await self._read(now)
                is_moved = any(now[uid].object.resource_version != seen for uid, seen in before.items())
                is_final = conflicts > CONFLICTS_MAX or not is_moved
                if not isinstance(refused, UNKNOWN) and is_final:
                    raise Refusal(str(refused)) from refused
            else:
                return [Made(answers[at], uid) for at, uid in draft.claims]

    def _judge(self, refused: errors.ApiError) -> None:
        """Raises NotTogether where it is the transaction that the server does not take, or cannot read."""
        is_unread = isinstance(refused, errors.BadRequest)  # also a member that an older server does not know
        is_too_much = isinstance(refused, errors.TooLarge)
        has_none = member_of(refused) is None and not self._client.has_transactions
        if is_unread or is_too_much or has_none:
            raise NotTogether(str(refused)) from refused

    # -- how things are after a refusal ----------------------------------------------------------------

    async def _is_bound(self, placed: Placed, is_unsure: bool, refused: errors.ApiError) -> bool:
        """Whether a placement that went unanswered was carried out. Raises where the pod cannot be placed."""
        pod = placed.state.pod
        now = await insist(lambda: self._pods.get(pod.key.name, pod.key.namespace))
        if now.uid != pod.uid:
            raise Refusal("the pod was replaced") from refused
        node = now.view(core.Pod).spec.node_name
        if node == placed.node and is_unsure:
            return True
        if node:
            raise BoundElsewhere(f"the pod is bound to {node} already") from refused
        return False

    async def _read(self, claims: Mapping[str, ClaimInfo]) -> dict[str, ClaimInfo]:
        found = {uid: await self._claims.read(claim) for uid, claim in claims.items()}
        for uid, claim in found.items():
            if claim.uid != uid:
                raise Refusal(f"claim {claim.key.name} was replaced")
        return found

    async def _found(self, placed: Placed, claims: Mapping[str, ClaimInfo]) -> Sequence[Made]:
        """What a placement has made of which no answer came."""
        made = [Made(claim.object) for claim in (await self._read(claims)).values()]
        pod = placed.state.pod
        for write in placed.writes:
            if isinstance(write, CreateExtendedClaim):
                name = extended.claim_name(pod.key.name, pod.uid)
                claims_of = self._client.resource(resource.limits.GROUP, "v1", "resourceclaims")
                found = await insist(lambda: claims_of.get(name, pod.key.namespace))  # noqa: B023
                made.append(Made(found, write.uid))
        return made

    # -- the requests ----------------------------------------------------------------------------------

    def _draft(self, placed: Placed, now: Mapping[str, ClaimInfo]) -> _Draft:
        """Raises Outdated where a claim is not as it was decided on."""
        pod, draft = placed.state.pod, _Draft([], [])
        for write in placed.writes:
            match write:
                case AllocateClaim(claim, allocation):
                    self._allocate(draft, pod, now[claim.uid].object, allocation)
                case ReserveClaim(claim):
                    self._reserve(draft, pod, now[claim.uid].object, claim)
                case CreateExtendedClaim():
                    self._serve_extended(draft, pod, write)
                case KeepExtendedClaim():
                    raise NotTogether("a claim that is there already is looked at first")
                case EndTalk() | TakeCompute():
                    pass  # after the binding, and with it
                case Negotiate():
                    raise NotTogether("drivers are waited for first")
        bind = self._pods.writes.bind
        draft.writes.append(bind(pod.key.name, pod.key.namespace, placed.node, uid=pod.uid, **chosen(placed)))
        for write in placed.writes:
            if isinstance(write, EndTalk):
                draft.ending = len(draft.writes)
                draft.writes.append(self._talks.ending(write.talk))
        return draft

    def _allocate(
        self, draft: _Draft, pod: PodInfo, now: Object, allocation: resource.AllocationResult
    ) -> None:
        finalizers, status = self._claims.allocated(pod, now, allocation)
        metadata: dict[str, Any] = {"uid": now.uid, "resourceVersion": now.resource_version}
        writes, body = self._claim_writes, {"metadata": metadata, "status": status}
        draft.claims.append((len(draft.writes), ""))
        if finalizers is None:
            draft.writes.append(writes.patch(now.name, body, now.namespace, subresource="status"))
        else:
            metadata["finalizers"] = finalizers
            draft.writes.append(writes.patch_with_status(now.name, body, now.namespace))

    def _reserve(self, draft: _Draft, pod: PodInfo, now: Object, decided_on: ClaimInfo) -> None:
        reserved = reservation(pod, now, decided_on)
        if reserved is None:
            return  # it is listed
        seen = {"uid": now.uid, "resourceVersion": now.resource_version}
        body = {"metadata": seen, "status": {"reservedFor": reserved}}
        draft.claims.append((len(draft.writes), ""))
        draft.writes.append(self._claim_writes.patch(now.name, body, now.namespace, subresource="status"))

    def _serve_extended(self, draft: _Draft, pod: PodInfo, write: CreateExtendedClaim) -> None:
        body = extended.body(pod.view, write.devices)
        metadata, namespace = body["metadata"], pod.key.namespace
        metadata["finalizers"] = [resource.limits.FINALIZER]
        body["status"] = self._claims.allocated_from_the_start(pod, write.allocation)
        draft.claims.append((len(draft.writes), write.uid))
        draft.writes.append(self._claim_writes.create_with_status(body, namespace))
        named = extended.status_patch(pod.uid, metadata["name"], write.devices)
        draft.writes.append(self._pods.writes.patch(pod.key.name, named, namespace, subresource="status"))


def chosen(placed: Placed) -> dict[str, dict[str, str]]:
    """What the Binding says of compute resources: the choice and the node are one write."""
    given = taken(placed.writes)
    if not given:
        return {}
    return {"annotations": {compute.limits.RECORD_ANNOTATION: compute.records.written(given)}}


def _without_ending(placed: Placed) -> Placed:
    return replace(placed, writes=tuple([one for one in placed.writes if not isinstance(one, EndTalk)]))


def _is_at_once(write: Step) -> bool:
    """Devices with binding conditions are made ready between the allocation and the binding."""
    match write:
        case AllocateClaim(_, allocation) | CreateExtendedClaim(_, _, allocation):
            held: resource.AllocationResult | None = allocation
        case ReserveClaim(claim):
            held = claim.allocation
        case EndTalk():
            return True
        case _:
            return False
    return held is None or not any(one.binding_conditions for one in held.devices.results)
