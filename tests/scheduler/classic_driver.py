"""A driver of classic claims that speaks the API alone, with a plain client (3063-GOAL-10).

It has so many devices on each node and counts them by what its claims say. What it does by itself can be
switched off, one thing after the other, so that a story meets a driver that is slow, stubborn or gone.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from allot.api import Object, errors
from allot.client import Client

from .classic import DRIVER

GROUP, VERSION = "resource.k8s.io", "v1alpha1"
TICK_S = 0.02
Fields = dict[str, Any]


class Driver:
    def __init__(self, client: Client, devices: Mapping[str, int], name: str = DRIVER) -> None:
        self.name = name
        self.devices = dict(devices)
        self.answers = True  # which nodes will not do
        self.allocates = True
        self.deallocates = True
        self.reserves = True  # what it allocates, for the pod
        self.shareable = False
        self.refuses: set[str] = set()  # nodes, whatever it has there
        self.lies_about: dict[str, str] = {}  # a node that was selected: another, for which it allocates
        self.allocations = 0
        self.deallocations = 0
        self._finalizer = f"{name}/deletion-protection"
        self._claims = client.resource(GROUP, VERSION, "resourceclaims")
        self._classes = client.resource(GROUP, VERSION, "resourceclasses", namespaced=False)
        self._talks = client.resource(GROUP, VERSION, "podschedulings")
        self._pods = client.resource("", "v1", "pods")

    async def run(self) -> None:
        while True:
            with contextlib.suppress(errors.Conflict, errors.NotFound, errors.Invalid):
                await self.look()  # who was not fast enough looks again
            await asyncio.sleep(TICK_S)

    async def look(self) -> None:
        claims = {one.name: one for one in (await self._claims.list()).objects}
        if self.deallocates:
            for claim in claims.values():
                await self._give_back(claim)
        if self.allocates:
            for claim in claims.values():
                is_due = claim.fields["spec"].get("allocationMode") == "Immediate" and not _allocation(claim)
                if is_due and await self._is_mine(claim):
                    await self._allocate(claim, next(iter(self.devices)), None)
        for talk in (await self._talks.list()).objects:
            await self._answer(talk, claims)

    async def _answer(self, talk: Object, claims: Mapping[str, Object]) -> None:
        try:
            pod = await self._pods.get(talk.name, talk.namespace)
        except errors.NotFound:
            return
        if [one["uid"] for one in talk.fields["metadata"]["ownerReferences"]] != [pod.uid]:
            return
        wanted = {}
        made = {
            one["name"]: one.get("resourceClaimName")
            for one in (pod.fields.get("status") or {}).get("resourceClaimStatuses") or ()
        }
        for entry in pod.fields["spec"].get("resourceClaims") or ():
            claim = claims.get(entry.get("resourceClaimName") or made.get(entry["name"]) or "")
            if claim is not None and not _allocation(claim) and await self._is_mine(claim):
                wanted[entry["name"]] = claim
        if not wanted:
            return
        spec = talk.fields.get("spec") or {}
        selected = spec.get("selectedNode") or ""
        nodes = {*(spec.get("potentialNodes") or ()), *([selected] if selected else ())}
        unfit = sorted(one for one in nodes if self._free(one, claims) < len(wanted))
        if selected and selected not in unfit:
            if self.allocates:
                for claim in wanted.values():
                    await self._allocate(claim, self.lies_about.get(selected, selected), pod)
            return
        if self.answers:
            await self._say(talk, dict.fromkeys(wanted, unfit))

    async def _say(self, talk: Object, unfit: Mapping[str, list[str]]) -> None:
        said = {one["name"]: one for one in (talk.fields.get("status") or {}).get("resourceClaims") or ()}
        now = {**said, **{name: {"name": name, "unsuitableNodes": no} for name, no in unfit.items()}}
        known = {name: sorted(one.get("unsuitableNodes") or ()) for name, one in said.items()}
        if known != {name: sorted(one.get("unsuitableNodes") or ()) for name, one in now.items()}:
            status = {"resourceClaims": list(now.values())}
            await self._talks.update_status({**talk.fields, "status": status})

    async def _allocate(self, claim: Object, node: str, pod: Object | None) -> None:
        finalizers = claim.metadata.finalizers or []
        if self._finalizer not in finalizers:
            claim = await self._claims.update(
                claim.changed({"metadata": {"finalizers": [*finalizers, self._finalizer]}})
            )
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        allocation = {
            "resourceHandle": f"{node}/{claim.uid}",
            "availableOnNodes": {"nodeSelectorTerms": [term]},
            "shareable": self.shareable,
        }
        status: Fields = {"driverName": self.name, "allocation": allocation}
        if pod is not None and self.reserves:
            status["reservedFor"] = [{"resource": "pods", "name": pod.name, "uid": pod.uid}]
        await self._claims.update_status({**claim.fields, "status": status})
        self.allocations += 1

    async def _give_back(self, claim: Object) -> None:
        status = claim.fields.get("status") or {}
        is_asked = status.get("deallocationRequested") or claim.metadata.deletion_timestamp
        if (
            not is_asked
            or status.get("reservedFor")
            or self._finalizer not in (claim.metadata.finalizers or [])
        ):
            return
        if _allocation(claim):
            claim = await self._claims.update_status({**claim.fields, "status": {}})
            self.deallocations += 1
        rest = [one for one in claim.metadata.finalizers or [] if one != self._finalizer]
        await self._claims.update(claim.changed({"metadata": {"finalizers": rest}}))

    async def _is_mine(self, claim: Object) -> bool:
        name = claim.fields["spec"].get("resourceClassName")
        if not name or claim.metadata.deletion_timestamp:
            return False
        try:
            return (await self._classes.get(name)).fields["driverName"] == self.name
        except errors.NotFound:
            return False

    def _free(self, node: str, claims: Mapping[str, Object]) -> int:
        if node in self.refuses:
            return 0
        mine = [
            one for one in claims.values() if (one.fields.get("status") or {}).get("driverName") == self.name
        ]
        handles = [str(_allocation(one)["resourceHandle"]) for one in mine]
        return self.devices.get(node, 0) - sum(one.startswith(f"{node}/") for one in handles)


def _allocation(claim: Object) -> Any:
    return (claim.fields.get("status") or {}).get("allocation")
