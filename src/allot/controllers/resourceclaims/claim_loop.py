"""A claim's way back: reservations go, devices return, the finalizer, and the claim itself."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from allot.api import Object, errors, resource
from allot.client import Resource, Write, member_of
from allot.informers import Again, Informer, Key

from ..controller import World
from . import releasing
from .consumers import Consumers, is_pod
from .memory import UNANSWERED, Gone, HalfDone
from .released import Releases
from .releasing import OwnerStanding, ReleasePlan, Verdict
from .views import Pod, claim_of, pod_of

WAIT_FOR_NODE_S = 300.0
"""A node's word wakes the loop at once; this is for what no watch tells."""

CACHE_BEHIND_S = 30.0
"""The server knows a pod that the cache does not. It may end before the cache ever hears of it."""

HALF_DONE_S = 30.0
"""For so long a claim that is protected and has nothing is left to the scheduler, whose next write gives it
something. One that is slower than this finds it changed, and begins anew."""


class ClaimLoop:
    def __init__(
        self,
        world: World,
        pods: Informer,
        claims: Informer,
        releases: Releases,
        consumers: Consumers,
        gone: Gone,
    ) -> None:
        self._consumers = consumers
        self._pods = pods
        self._claims = claims
        self._releases = releases
        self._gone = gone
        self._half_done = HalfDone()
        self._clock = world.clock
        self._client = world.client
        self._write: Resource = world.client.of(resource.RESOURCE_CLAIM)
        self._ask_pods: Resource = world.client.resource("", "v1", "pods")

    async def reconcile(self, key: Key) -> Again | None:
        claim = self._claims.cache.get(key.name, key.namespace)
        if claim is None:
            self._consumers.leave(key)
            return None
        view = claim_of(claim)
        leaving, is_behind = await self._leaving(view)
        if resource.shape.is_classic(view):
            self._consumers.leave(key, view.status.reserved_for)
        plan, wait_s = releasing.plan(claim, leaving), 0.0
        if releasing.is_half_done(view):
            wait_s = HALF_DONE_S - self._half_done.for_s(claim, self._clock.monotonic_s())
            plan = replace(plan, unprotects=wait_s <= 0)
        try:
            is_unneeded = False
            if plan.is_unreserved:
                is_unneeded, cannot_know = await self._is_unneeded(claim)
                is_behind |= cannot_know
            if not await self._let_go_at_once(claim, plan, leaving.values(), is_unneeded):
                if plan.lets_go and not await self._releases.released(view, leaving.values()):
                    return Again(WAIT_FOR_NODE_S)
                if not await self._carry_out_at_once(claim, plan, is_unneeded):
                    await self._carry_out(claim, plan, is_unneeded)
        except errors.NotFound:
            return None  # somebody deleted it, which is where this was going
        if wait_s > 0:
            return Again(wait_s)
        return Again(CACHE_BEHIND_S) if is_behind else None

    def forget(self, key: Key) -> None:
        """The claim is gone, and its consumers are nobody's concern any more."""
        self._consumers.leave(key)

    def is_at_rest(self, claim: Object, *, is_new: bool) -> bool:
        """Whether `reconcile` would do nothing about the claim, and whatever changes that is heard of.

        For that, those who hold it must be known and need it, and of a claim that nobody holds the
        pod that it was made for. An owner that is not known may have been replaced before anybody
        listened: a new claim is looked at for that, once.
        """
        view = claim_of(claim)
        if view.metadata.deletion_timestamp or releasing.is_idle(view) or releasing.is_half_done(view):
            return False
        if view.status.reserved_for:
            namespace = claim.namespace
            return all(
                self._consumers.is_known(_key(view), one)
                if _is_followed(view, one)
                else self._verdict(one, self._pod(namespace, one.name)) is Verdict.KEEP
                for one in view.status.reserved_for
            )
        owner = view.metadata.controlling_pod
        if owner is None:
            return True
        pod = self._pod(claim.namespace, owner.name)
        if pod is None:
            return not is_new
        is_needed = releasing.owner_standing(owner.uid, pod) is OwnerStanding.NEEDS_IT
        return is_needed and not self._is_superfluous(view, pod)

    # -- reservations ---------------------------------------------------------------------------

    async def _leaving(self, claim: resource.ResourceClaim) -> tuple[dict[str, str], bool]:
        """The consumers that leave: uid -> the node they ran on, "" where that is not known.
        And whether the server had to be asked about one that stays."""
        leaving: dict[str, str] = {}
        is_behind = False
        for consumer in claim.status.reserved_for:
            if _is_followed(claim, consumer):
                if not await self._consumers.is_there(_key(claim), consumer):
                    leaving[consumer.uid] = ""
                continue
            pod = self._pod(claim.metadata.namespace, consumer.name)
            verdict = self._verdict(consumer, pod)
            if verdict is Verdict.ASK and await self._is_needed(claim.metadata.namespace, consumer):
                verdict, is_behind = Verdict.KEEP, True
            if verdict is not Verdict.KEEP:
                is_same = pod is not None and pod.metadata.uid == consumer.uid
                leaving[consumer.uid] = (
                    pod.spec.node_name if pod is not None and is_same else self._gone.node_of(consumer.uid)
                )
        return leaving, is_behind

    def _verdict(self, consumer: resource.ResourceClaimConsumerReference, pod: Pod | None) -> Verdict:
        return releasing.judge(consumer, pod, consumer.uid in self._gone)

    async def _is_needed(self, namespace: str, consumer: resource.ResourceClaimConsumerReference) -> bool:
        """Ask the server about a pod that the cache does not know."""
        live = await self._live(namespace, consumer.name)
        if live is None or live.metadata.uid != consumer.uid:
            self._gone.add(consumer.uid)
            return False
        return not live.is_done

    # -- writing --------------------------------------------------------------------------------

    async def _let_go_at_once(
        self, claim: Object, plan: ReleasePlan, ran_on: Collection[str], is_unneeded: bool
    ) -> bool:
        """With the nodes' word in the same transaction. False, and nothing written: they have to be asked."""
        if not plan.lets_go:
            return False
        expected = self._releases.expected(claim_of(claim), ran_on)
        return expected is not None and await self._carry_out_at_once(claim, plan, is_unneeded, expected)

    async def _carry_out_at_once(
        self, claim: Object, plan: ReleasePlan, is_unneeded: bool, expected: Sequence[Write] = ()
    ) -> bool:
        """Status, finalizer and deletion in one transaction. False, and nothing written, where it is one of
        them alone, where the server has no transactions or is not as expected, and where it refuses one of
        them: that the claim may not go does not keep its devices."""
        is_one = (plan.status is not None) + plan.unprotects + is_unneeded + len(expected) < 2
        if is_one or not self._client.has_transactions:
            return False
        writes = [*expected, *self._writes(claim, plan, is_unneeded)]
        try:
            await self._client.gathered(writes, has_time=True)
        except errors.Conflict as differs:
            member = member_of(differs)
            if member is None or member >= len(expected):
                raise
            return False
        except errors.NotFound:
            if self._client.has_transactions:
                raise  # it is the claim that is not there
            return False
        except UNANSWERED:
            raise
        except errors.ApiError:
            return False
        return True

    def _writes(self, claim: Object, plan: ReleasePlan, is_unneeded: bool) -> Iterator[Write]:
        """Of a transaction. Only the first can say which version of the claim it was decided on."""
        writes, name, namespace = self._write.writes, claim.name, claim.namespace
        unprotected = {**_this(claim), "finalizers": releasing.without_finalizer(claim)}
        if plan.status is not None and plan.unprotects:
            body = {"metadata": unprotected, "status": plan.status}
            yield writes.patch_with_status(name, body, namespace)
        elif plan.status is not None:
            body = {"metadata": _this(claim), "status": plan.status}
            yield writes.patch(name, body, namespace, subresource="status")
        elif plan.unprotects:
            yield writes.patch(name, {"metadata": unprotected}, namespace)
        if is_unneeded:
            yield writes.delete(name, namespace, uid=claim.uid)

    async def _carry_out(self, claim: Object, plan: ReleasePlan, is_unneeded: bool) -> None:
        """One after the other: status, finalizer, deletion (C1); each only if nobody wrote in between."""
        name, namespace = claim.name, claim.namespace
        if plan.status is not None:
            body = {"metadata": _this(claim), "status": plan.status}
            claim = await self._write.patch(name, body, namespace, subresource="status")
        if plan.unprotects:
            unprotected = {**_this(claim), "finalizers": releasing.without_finalizer(claim)}
            claim = await self._write.patch(name, {"metadata": unprotected}, namespace)
        if is_unneeded:
            version = claim.resource_version
            await self._write.delete(name, namespace, uid=claim.uid, resource_version=version)

    async def _is_unneeded(self, claim: Object) -> tuple[bool, bool]:
        """Whether it was generated for a pod that is done, and so goes now, without waiting for its owner to
        go. And whether the cache turned out to be behind."""
        view = claim_of(claim)
        owner = view.metadata.controlling_pod
        if owner is None or view.metadata.deletion_timestamp:
            return False, False
        pod = self._pod(claim.namespace, owner.name)
        match releasing.owner_standing(owner.uid, pod):
            case OwnerStanding.DONE:
                return True, False
            case OwnerStanding.NEEDS_IT:
                return pod is not None and self._is_superfluous(view, pod), False
            case OwnerStanding.REPLACED:
                live = await self._live(claim.namespace, owner.name)
                is_replaced = live is not None and live.metadata.uid != owner.uid
                return is_replaced, live is not None and not is_replaced
            case OwnerStanding.UNKNOWN:
                return False, False

    def _is_superfluous(self, claim: resource.ResourceClaim, pod: Pod) -> bool:
        entry = claim.metadata.annotations.get(resource.limits.POD_CLAIM_NAME_ANNOTATION, "")
        status = pod.recorded(entry)
        name = status.resource_claim_name if status is not None else None
        recorded = self._claims.cache.get(name, pod.metadata.namespace) if name else None
        return releasing.is_superfluous(claim, pod, recorded)

    def _pod(self, namespace: str, name: str) -> Pod | None:
        found = self._pods.cache.get(name, namespace)
        return None if found is None else pod_of(found)

    async def _live(self, namespace: str, name: str) -> Pod | None:
        try:
            return pod_of(await self._ask_pods.get(name, namespace))
        except errors.NotFound:
            return None


def _is_followed(claim: resource.ResourceClaim, consumer: resource.ResourceClaimConsumerReference) -> bool:
    """Of structured claims, whoever lists a consumer that is not a pod removes it."""
    return resource.shape.is_classic(claim) and not is_pod(consumer)


def _key(claim: resource.ResourceClaim) -> Key:
    return Key(claim.metadata.namespace, claim.metadata.name)


def _this(claim: Object) -> dict[str, str]:
    """The version that a write was decided on."""
    return {"uid": claim.uid, "resourceVersion": claim.resource_version}
