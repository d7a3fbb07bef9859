"""A scheduler as upstream had it: it remembers nothing of what it asked drivers, and holds no room.

Every few seconds it looks at its pods anew. It chooses a node by chance, each time another, writes it down
and forgets it; once everything is allocated it reserves, binds, and removes the PodScheduling. Where nothing
fits it has one idle claim deallocated, by chance. It keeps the rules of the API and no others, with a plain
client, and lives beside ours for pods that name it.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

from allot.api import Object, core, errors, podclaims
from allot.apiserver import identities
from allot.client import Client
from allot.informers import Change, Deleted, Informers, Key, Pace, ResourceId

from .classic_things import COMMON, FORGETFUL, GROUP, VERSION, ClassicThings, consumer, node_of
from .component import Connect
from .faults import LATE_S_MAX

_PODS = ResourceId("", "v1", "pods")
_NODES = ResourceId("", "v1", "nodes", namespaced=False)
_CLAIMS = ResourceId(GROUP, VERSION, "resourceclaims")
_TALKS = ResourceId(GROUP, VERSION, "podschedulings")
LEFTOVER_S = 60.0


async def schedule(connect: Connect, rng: random.Random, pace: Pace) -> None:
    client = Client(connect(identities.SCHEDULER))
    async with Informers(client, rng, pace=pace) as informers:
        await _Scheduler(client, informers, rng).run(informers)


class _Scheduler:
    def __init__(self, client: Client, informers: Informers, rng: random.Random) -> None:
        self._rng = rng
        self._things = ClassicThings(client)
        self._write_pods = client.resource("", "v1", "pods")
        pods, nodes, claims, talks = (informers.use(one) for one in (_PODS, _NODES, _CLAIMS, _TALKS))
        self._nodes, self._claims, self._talks = nodes, claims, talks
        self._mine: dict[Key, Object] = {}
        self._not_before_s: dict[str, float] = {}  # by uid of a pod: until when what was sent may arrive
        self._woken = asyncio.Event()
        pods.handle(self._pod_changed)
        for one in (nodes, claims, talks):
            one.handle(lambda change: self._woken.set())

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        if isinstance(change, Deleted) or pod.metadata.deletion_timestamp:
            self._mine.pop(Key.of(pod), None)
        elif pod.fields["spec"].get("schedulerName") == FORGETFUL:
            self._mine[Key.of(pod)] = pod
        self._woken.set()

    async def run(self, informers: Informers) -> None:
        await informers.synced()
        while True:
            try:
                async with asyncio.timeout(LEFTOVER_S):
                    await self._woken.wait()
            except TimeoutError:
                pass  # a hint may have been missed
            await asyncio.sleep(self._rng.uniform(1, 5))
            self._woken.clear()
            for pod in list(self._mine.values()):
                if self._not_before_s.get(pod.uid, 0.0) > _now_s():
                    self._woken.set()
                    continue
                try:
                    await (self._end if pod.fields["spec"].get("nodeName") else self._try)(pod)
                except errors.ApiError:
                    # Somebody was faster, or it went wrong: look again once nothing of it can arrive.
                    self._not_before_s[pod.uid] = _now_s() + LATE_S_MAX
                    self._woken.set()

    async def _end(self, pod: Object) -> None:
        talk = self._talk_of(pod)
        if talk is not None:
            await self._things.podschedulings.delete(talk.name, talk.namespace, uid=talk.uid)

    async def _try(self, pod: Object) -> None:
        claims = self._claims_of(pod)
        if claims is None or any(_is_taken(one, pod) for one in claims.values()):
            await self._leave(pod, self._listing(pod))
            return
        pending = {entry: one for entry, one in claims.items() if not _allocation(one)}
        nodes = self._fitting(pod, claims, pending)
        if not nodes:
            await self._move_one(pod, list(claims.values()))
        elif pending:
            await self._ask(pod, pending, nodes)
        else:
            await self._bind(pod, list(claims.values()), self._rng.choice(nodes))

    async def _bind(self, pod: Object, claims: Sequence[Object], node: str) -> None:
        try:
            for claim in sorted(claims, key=lambda one: one.name):
                if not _is_listed(claim, pod):
                    users = [*_users(claim), consumer(pod.name, pod.uid)]
                    await self._write_users(claim, users)
        except (errors.Conflict, errors.Invalid):
            await self._leave(pod, claims)
            raise
        await self._write_pods.bind(pod.name, pod.namespace, node, uid=pod.uid)
        await self._end(pod)

    async def _is_bound(self, pod: Object) -> bool:
        """By the word of the server: nothing is taken from a pod that runs (C6)."""
        now = await self._write_pods.get(pod.name, pod.namespace)
        return now.uid != pod.uid or bool(now.fields["spec"].get("nodeName"))

    async def _leave(self, pod: Object, claims: Sequence[Object]) -> None:
        """Who cannot have all of them keeps none: of these, whichever the server says it has."""
        if not claims or await self._is_bound(pod):
            return
        for claim in claims:
            now = await self._things.resourceclaims.get(claim.name, claim.namespace)
            if _is_listed(now, pod):
                await self._write_users(now, [one for one in _users(now) if one["uid"] != pod.uid])

    async def _write_users(self, claim: Object, users: Sequence[Any]) -> None:
        status = {**(claim.fields.get("status") or {}), "reservedFor": list(users)}
        await self._things.resourceclaims.update_status({**claim.fields, "status": status})

    async def _move_one(self, pod: Object, claims: Sequence[Object]) -> None:
        idle = [
            one
            for one in claims
            if _allocation(one)
            and one.fields["spec"].get("allocationMode") != "Immediate"
            and all(user["uid"] == pod.uid for user in _users(one))
        ]
        if idle and not await self._is_bound(pod):
            claim = self._rng.choice(idle)
            status = {**claim.fields["status"], "deallocationRequested": True, "reservedFor": []}
            await self._things.resourceclaims.update_status({**claim.fields, "status": status})

    async def _ask(self, pod: Object, pending: Mapping[str, Object], nodes: Sequence[str]) -> None:
        if await self._is_bound(pod):
            return
        talk = self._talk_of(pod)
        answers = _answers(talk)
        posted = ((talk.fields.get("spec") or {}).get("potentialNodes") or ()) if talk is not None else ()
        choice = list(nodes) if len(pending) == 1 else [one for one in nodes if one in posted]
        spec: dict[str, Any] = {"potentialNodes": list(nodes)}
        if choice and (len(pending) == 1 or all(entry in answers for entry in pending)):
            spec["selectedNode"] = self._rng.choice(choice)
        if talk is not None:
            await self._things.podschedulings.update({**talk.fields, "spec": spec})
            return
        stale = self._talks.cache.get(pod.name, pod.namespace)
        if stale is not None:
            await self._things.podschedulings.delete(stale.name, stale.namespace, uid=stale.uid)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        metadata = {"name": pod.name, "ownerReferences": [owner]}
        await self._things.podschedulings.create({"metadata": metadata, "spec": spec}, pod.namespace)

    # -- what it knows --------------------------------------------------------------------------

    def _claims_of(self, pod: Object) -> dict[str, Object] | None:
        """By entry of the pod; None while one is not there, not its own or not to be used."""
        found = {}
        for use in podclaims.used(pod.view(core.Pod)):
            claim = self._claims.cache.get(use.name, pod.namespace) if use.name else None
            if claim is None or claim.metadata.deletion_timestamp or not _is_classic(claim):
                return None
            owners = claim.fields["metadata"].get("ownerReferences") or ()
            if use.is_generated and not any(owner["uid"] == pod.uid for owner in owners):
                return None
            is_instant = claim.fields["spec"].get("allocationMode") == "Immediate"
            if (claim.fields.get("status") or {}).get("deallocationRequested"):
                return None
            if is_instant and not _allocation(claim):
                return None
            found[use.entry] = claim
        return found

    def _listing(self, pod: Object) -> list[Object]:
        """Whatever the pod has reserved, usable or not."""
        names = (use.name for use in podclaims.used(pod.view(core.Pod)))
        known = (self._claims.cache.get(name, pod.namespace) for name in names if name)
        return [one for one in known if one is not None and _is_listed(one, pod)]

    def _fitting(self, pod: Object, claims: Mapping[str, Object], pending: Mapping[str, Object]) -> list[str]:
        fixed = {node_of(_allocation(one)) for one in claims.values() if _allocation(one)} - {""}
        answers = _answers(self._talk_of(pod))
        refused = {node for entry in pending for node in answers.get(entry, ())}
        return [
            node.name
            for node in self._nodes.cache
            if (not fixed or fixed == {node.name})
            and node.name not in refused
            and not node.fields["spec"].get("taints")
        ]

    def _talk_of(self, pod: Object) -> Object | None:
        talk = self._talks.cache.get(pod.name, pod.namespace)
        owners = (talk.fields["metadata"].get("ownerReferences") or ()) if talk is not None else ()
        return talk if any(one["uid"] == pod.uid for one in owners) else None


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _answers(talk: Object | None) -> dict[str, Any]:
    said = ((talk.fields.get("status") or {}).get("resourceClaims") or ()) if talk is not None else ()
    return {one["name"]: one.get("unsuitableNodes") or () for one in said}


def _is_classic(claim: Object) -> bool:
    return bool(claim.fields["spec"].get("resourceClassName"))


def _allocation(claim: Object) -> Any:
    return (claim.fields.get("status") or {}).get("allocation")


def _users(claim: Object) -> Sequence[Any]:
    return (claim.fields.get("status") or {}).get("reservedFor") or ()


def _is_listed(claim: Object, pod: Object) -> bool:
    return any(one["uid"] == pod.uid for one in _users(claim))


def _is_taken(claim: Object, pod: Object) -> bool:
    """By others, who do not share it."""
    is_shared = claim.name == COMMON
    return bool(_users(claim)) and not is_shared and not _is_listed(claim, pod)
