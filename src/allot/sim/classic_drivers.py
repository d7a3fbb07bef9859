"""A driver of classic claims that speaks the API alone, with a plain client, and is not to be relied on.

While faults last it answers late, lists nodes that it has room on, refuses what it offered, and now and then
allocates for another node than was selected. What it promises it keeps: its finalizer is there before
anything else (C9), allocation and reservation are one write, and the flag goes with the allocation (C10).
It imports nothing of what it is used to judge. What is allocated it knows from the claims alone, so that a
restart knows it too.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from allot.api import Object, errors
from allot.apiserver import identities
from allot.client import Client
from allot.informers import Informers, Pace, ResourceId

from .classic_things import (
    COMMON,
    DEVICES_PER_NODE,
    GROUP,
    VERSION,
    ClassicThings,
    consumer,
    finalizer_of,
    node_of,
    only_on,
)
from .component import Connect

_CLAIMS = ResourceId(GROUP, VERSION, "resourceclaims")
_TALKS = ResourceId(GROUP, VERSION, "podschedulings")
_CLASSES = ResourceId(GROUP, VERSION, "resourceclasses", namespaced=False)
_PODS = ResourceId("", "v1", "pods")
_NODES = ResourceId("", "v1", "nodes", namespaced=False)
REFRESH_S = 30.0
LATE_S = 50.0
"""Longer than anybody waits for an answer."""
Fields = Mapping[str, Any]


async def drive(
    connect: Connect,
    driver: str,
    rng: random.Random,
    pace: Pace,
    misbehaves: Callable[[], bool],
) -> None:
    client = Client(connect(identities.ADMIN))
    async with Informers(client, rng, pace=pace) as informers:
        await _Driver(client, informers, driver, rng, misbehaves).run()


class _Driver:
    def __init__(
        self,
        client: Client,
        informers: Informers,
        name: str,
        rng: random.Random,
        misbehaves: Callable[[], bool],
    ) -> None:
        self._things = ClassicThings(client)
        self._pods_now = client.resource("", "v1", "pods")
        self._informers = informers
        self._name = name
        self._rng = rng
        self._misbehaves = misbehaves
        self._woken = asyncio.Event()
        self._claims, self._talks, self._classes, self._pods, self._nodes = (
            informers.use(what) for what in (_CLAIMS, _TALKS, _CLASSES, _PODS, _NODES)
        )
        self._given: dict[str, str] = {}  # by uid of a claim: the node, until the cache shows it
        for one in (self._claims, self._talks, self._classes, self._pods):
            one.handle(lambda change: self._woken.set())

    async def run(self) -> None:
        await self._informers.synced()
        while True:
            try:
                async with asyncio.timeout(REFRESH_S):
                    await self._woken.wait()
            except TimeoutError:
                pass  # it looks again all the same
            is_late = self._misbehaves() and self._rng.random() < 0.08
            await asyncio.sleep(self._rng.uniform(10, LATE_S) if is_late else self._rng.uniform(0.1, 1.0))
            self._woken.clear()
            for work in (self._settle, self._talk):
                try:
                    await work()
                except errors.ApiError:
                    self._woken.set()  # somebody was faster, or it went wrong: look again
                    await asyncio.sleep(self._rng.uniform(0.2, 1.0))

    # -- claims ---------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Give back what is asked for or not wanted, abort what was left half done, and allocate at once
        what wants to be."""
        wanted = {uid for uid, _ in self._selected()}
        for claim in list(self._claims.cache):
            status, is_marked = claim.fields.get("status") or {}, self._is_marked(claim)
            if _allocation(claim):
                self._given.pop(claim.uid, None)
            is_over = bool(claim.metadata.deletion_timestamp) or status.get("deallocationRequested")
            if is_over and is_marked and not status.get("reservedFor"):
                await self._give_back(claim)
            elif is_marked and not self._is_meant(claim, wanted):
                await self._unmark(claim)
            if self._is_instant(claim) and not is_over and not _allocation(claim) and self._is_mine(claim):
                node = next((one.name for one in self._nodes.cache if self._room(one.name) > 0), "")
                if node:
                    await self._allocate(claim, node, None)

    async def _allocate(self, claim: Object, node: str, pod: Object | None) -> None:
        claim = await self._mark(claim)
        shareable = claim.name == COMMON
        allocation = {"resourceHandle": node, "availableOnNodes": only_on(node), "shareable": shareable}
        status: dict[str, Any] = {"driverName": self._name, "allocation": allocation}
        if pod is not None and self._rng.random() < 0.8:
            status["reservedFor"] = [consumer(pod.name, pod.uid)]
        self._given[claim.uid] = node
        await self._things.resourceclaims.update_status({**claim.fields, "status": status})

    async def _give_back(self, claim: Object) -> None:
        if _allocation(claim):
            claim = await self._things.resourceclaims.update_status({**claim.fields, "status": {}})
        self._given.pop(claim.uid, None)
        await self._unmark(claim)

    async def _mark(self, claim: Object) -> Object:
        if self._is_marked(claim):
            return claim
        finalizers = [*(claim.metadata.finalizers or ()), finalizer_of(self._name)]
        return await self._things.resourceclaims.update(
            claim.changed({"metadata": {"finalizers": finalizers}})
        )

    async def _unmark(self, claim: Object) -> None:
        rest = [one for one in claim.metadata.finalizers or () if one != finalizer_of(self._name)]
        await self._things.resourceclaims.update(claim.changed({"metadata": {"finalizers": rest}}))

    def _is_meant(self, claim: Object, wanted: Set[str]) -> bool:
        """It is allocated, or is to be: an attempt that nobody wants any more is given up (C9)."""
        is_under_way = claim.uid in wanted or claim.uid in self._given
        return bool(_allocation(claim)) or is_under_way or self._is_instant(claim)

    # -- what schedulers ask --------------------------------------------------------------------

    async def _talk(self) -> None:
        for talk in list(self._talks.cache):
            pod = self._pods.cache.get(talk.name, talk.namespace)
            if pod is None or pod.metadata.deletion_timestamp or not _is_about(talk, pod):
                continue
            wanted = dict(self._pending(pod))
            spec = talk.fields.get("spec") or {}
            selected, nodes = spec.get("selectedNode") or "", spec.get("potentialNodes") or ()
            if not wanted:
                continue
            is_odd = self._misbehaves() and self._rng.random() < 0.1
            can = self._nodes.cache.get(selected) is not None
            if selected and can and (self._room(selected) >= len(wanted)) != is_odd:
                live = await self._pods_now.get(pod.name, pod.namespace)
                if live.uid == pod.uid and not live.fields["spec"].get("nodeName"):
                    await self._allocate_all(wanted, selected, pod)
                continue
            said = {*nodes, *self._said(talk, wanted), *([selected] if selected else ())}
            unfit = {one for one in said if self._room(one) < len(wanted)}
            if selected:
                unfit.add(selected)
            if is_odd:
                unfit ^= {one for one in nodes if self._rng.random() < 0.5}
            await self._answer(talk, wanted, sorted(unfit))

    async def _allocate_all(self, wanted: Mapping[str, Object], selected: str, pod: Object) -> None:
        for claim in wanted.values():
            node = selected
            if self._misbehaves() and self._rng.random() < 0.04:
                others = {one.name for one in self._nodes.cache}
                node = self._rng.choice(sorted(others | {selected}))
            await self._allocate(claim, node, pod)

    async def _answer(self, talk: Object, wanted: Mapping[str, Object], unfit: list[str]) -> None:
        said = {one["name"]: one for one in (talk.fields.get("status") or {}).get("resourceClaims") or ()}
        now = {**said, **{name: {"name": name, "unsuitableNodes": unfit} for name in wanted}}
        if {name: set(one.get("unsuitableNodes") or ()) for name, one in now.items()} != {
            name: set(one.get("unsuitableNodes") or ()) for name, one in said.items()
        }:
            status = {"resourceClaims": list(now.values())}
            await self._things.podschedulings.update_status({**talk.fields, "status": status})

    def _said(self, talk: Object, wanted: Mapping[str, Object]) -> Iterator[str]:
        for one in (talk.fields.get("status") or {}).get("resourceClaims") or ():
            if one["name"] in wanted:
                yield from one.get("unsuitableNodes") or ()

    # -- what it knows --------------------------------------------------------------------------

    def _selected(self) -> Iterator[tuple[str, str]]:
        for talk in self._talks.cache:
            pod = self._pods.cache.get(talk.name, talk.namespace)
            selected = (talk.fields.get("spec") or {}).get("selectedNode")
            if pod is not None and selected and _is_about(talk, pod):
                for claim in dict(self._pending(pod)).values():
                    yield claim.uid, selected

    def _pending(self, pod: Object) -> Iterator[tuple[str, Object]]:
        made = {
            one["name"]: one.get("resourceClaimName") or ""
            for one in (pod.fields.get("status") or {}).get("resourceClaimStatuses") or ()
        }
        for entry in pod.fields["spec"].get("resourceClaims") or ():
            name = entry.get("resourceClaimName") or made.get(entry["name"]) or ""
            claim = self._claims.cache.get(name, pod.namespace) if name else None
            if claim is None or _allocation(claim) or claim.metadata.deletion_timestamp:
                continue
            if self._is_mine(claim) and not self._is_instant(claim):
                yield entry["name"], claim

    def _room(self, node: str) -> int:
        handles = {claim.uid: _handle(claim) for claim in self._claims.cache if self._is_mine(claim)}
        return DEVICES_PER_NODE - sum(one == node for one in (self._given | handles).values())

    def _is_mine(self, claim: Object) -> bool:
        if (claim.fields.get("status") or {}).get("driverName"):
            return bool(claim.fields["status"]["driverName"] == self._name)
        known = self._classes.cache.get(claim.fields["spec"].get("resourceClassName") or "", "")
        return known is not None and known.fields["driverName"] == self._name

    def _is_marked(self, claim: Object) -> bool:
        return finalizer_of(self._name) in (claim.metadata.finalizers or ())

    @staticmethod
    def _is_instant(claim: Object) -> bool:
        return bool(claim.fields["spec"].get("allocationMode") == "Immediate")


def _is_about(talk: Object, pod: Object) -> bool:
    return any(one["uid"] == pod.uid for one in talk.fields["metadata"].get("ownerReferences") or ())


def _allocation(claim: Object) -> Any:
    return (claim.fields.get("status") or {}).get("allocation")


def _handle(claim: Object) -> str:
    found = _allocation(claim)
    return node_of(found) if found else ""
