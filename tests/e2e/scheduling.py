"""A cluster whose parts are processes, with pods to place: what the scheduler's tests look at.

Nodes are objects without a machine: a pod that is bound stays so until it is deleted. Every
change of a pod is watched from the beginning, across restarts of the server.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from allot.api import Object, errors
from allot.client import Client, HttpsTransport, Resource, kubeconfig
from e2e.process import Component, Lease, Scheduler, ServerProcess

NS = "default"
GROUP = "resource.k8s.io"
DRIVER = "gpu.example.com"
GPU = "example.com/gpu"
FINALIZER = "resource.kubernetes.io/delete-protection"
NODES, DEVICES = 6, 8
SHARED = "shared"
SOON_S = 40.0

Fields = dict[str, Any]


@dataclass
class Sightings:
    """Where pods were seen to be, by uid, over their whole life (P4)."""

    nodes: dict[str, str] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)

    def see(self, pod: Object) -> None:
        before, now = self.nodes.get(pod.uid, ""), node_of(pod)
        if before and before != now:
            self.moved.append(f"{pod.name} was on {before} and is on {now or 'none'}")
        self.nodes[pod.uid] = now

    async def follow(self, pods: Resource) -> None:
        """Without gaps where the server allows it; where it has forgotten (410), from how things are."""
        version = ""
        while True:
            with suppress(errors.ApiError, OSError):
                if not version:
                    page = await pods.list(NS)
                    for pod in page.objects:
                        self.see(pod)
                    version = page.resource_version
                try:
                    async for event in pods.watch(NS, resource_version=version):
                        self.see(event.object)
                        version = event.object.resource_version
                except errors.Gone:
                    version = ""
            await asyncio.sleep(0.05)


class World:
    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.client = Client(HttpsTransport(kubeconfig.load(server.kubeconfig)))
        self.pods = self.client.resource("", "v1", "pods")
        self.claims = self.client.resource(GROUP, "v1", "resourceclaims")
        self.leases = self.client.resource("coordination.k8s.io", "v1", "leases")
        self.seen = Sightings()
        self.parts: list[Component] = []
        self._watching: asyncio.Task[None] | None = None

    # -- running --------------------------------------------------------------------------------

    def add(self, part: Component) -> Component:
        self.parts.append(part)
        return part

    def scheduler(self, name: str, *more: str, lease: Lease | None = None) -> Component:
        """One that works at once, unless it has to share a lease."""
        alone = () if lease is not None else ("--no-leader-elect",)
        return self.add(Scheduler(self.server, name, lease, *alone, *more))

    async def __aenter__(self) -> "World":
        self._watching = asyncio.create_task(self.seen.follow(self.pods))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        for part in self.parts:
            if part.process.returncode is None:
                await asyncio.to_thread(part.end, signal.SIGKILL)
        await self.client.close()

    async def leader(self) -> str:
        with suppress(errors.ApiError):
            lease = await self.leases.get("kube-scheduler", "kube-system")
            return lease.fields["spec"].get("holderIdentity") or ""
        return ""

    # -- making ---------------------------------------------------------------------------------

    async def burst(self, prefix: str, count: int, **spec: Any) -> list[str]:
        """So many pods at once: claims from a template, extended resources and a shared claim in turn."""
        pods = [pod(f"{prefix}{number}", number % 3, **spec) for number in range(count)]
        await asyncio.gather(*(self.pods.create(one, NS) for one in pods))
        return [one["metadata"]["name"] for one in pods]

    async def delete_pods(self) -> None:
        for one in (await self.pods.list(NS)).objects:
            await self.pods.delete(one.name, NS, grace_period_s=0)

    # -- looking --------------------------------------------------------------------------------

    async def held(self) -> list[str]:
        """Every device that a claim has, as often as it is had."""
        return list(chain.from_iterable(map(devices_of, (await self.claims.list(NS)).objects)))

    async def bound(self) -> list[str]:
        return [one.name for one in (await self.pods.list(NS)).objects if node_of(one)]

    async def all_bound(self) -> bool:
        return all(map(node_of, (await self.pods.list(NS)).objects))

    async def until(self, question: Callable[[], Awaitable[Any]], what: str) -> Any:
        """An answer that is true. While the server is away there is none."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SOON_S
        while True:
            with suppress(errors.ApiError, OSError):
                if answer := await question():
                    return answer
            assert loop.time() < end, f"{what}: did not become so"
            await asyncio.sleep(0.02)

    async def becomes(self, count: int, is_so: Callable[[Object], bool]) -> None:
        """Until so many claims are so: seen by a watch, so that whoever acts on it acts in the middle."""
        page = await self.claims.list(NS)
        found = {one.name for one in page.objects if is_so(one)}
        if len(found) >= count:
            return
        async for event in self.claims.watch(NS, resource_version=page.resource_version):
            if is_so(event.object):
                found.add(event.object.name)
            if len(found) >= count:
                return

    async def check(self) -> None:
        """Every pod is placed with what it asked for, once; nobody else has anything."""
        await self.until(self._nobody_else, "C3, C5: claims that nobody uses are gone")
        pods = (await self.pods.list(NS)).objects
        claims = {one.name: one for one in (await self.claims.list(NS)).objects}
        devices = list(chain.from_iterable(map(devices_of, claims.values())))
        assert len(devices) == len(set(devices)), "D1: a device is held twice"
        for claim in claims.values():
            status = claim.fields.get("status") or {}
            if status.get("allocation"):
                assert FINALIZER in (claim.metadata.finalizers or ()), f"C1: {claim.name} is unprotected"
        for one in pods:
            claim = claims[claim_of(one)]
            assert node_of(one), f"P2: {one.name} is not placed"
            reserved = [user["uid"] for user in claim.fields["status"]["reservedFor"]]
            assert one.uid in reserved, f"P1: {one.name} has not reserved {claim.name}"
            assert claim.name == SHARED or reserved == [one.uid]
            assert all(where.startswith(f"{node_of(one)}/") for where in devices_of(claim)), "D4: elsewhere"
        assert not self.seen.moved, f"P4: {self.seen.moved}"

    async def _nobody_else(self) -> bool:
        used = {claim_of(one) for one in (await self.pods.list(NS)).objects}
        return {one.name for one in (await self.claims.list(NS)).objects} == used | {SHARED}

    async def check_given_back(self) -> None:
        """All pods go; then nothing is held, protected or left over."""
        await self.delete_pods()

        async def nothing_left() -> bool:
            left = (await self.claims.list(NS)).objects
            return [one.name for one in left] == [SHARED] and not await self.held()

        await self.until(nothing_left, "everything given back")
        shared = await self.claims.get(SHARED, NS)
        assert not shared.metadata.finalizers and not (shared.fields.get("status") or {}).get("reservedFor")


async def furnish(server: ServerProcess) -> None:
    """Six nodes with eight devices each, a class that serves an extended resource, a template."""
    client = Client(HttpsTransport(kubeconfig.load(server.kubeconfig)))
    nodes = client.resource("", "v1", "nodes", namespaced=False)
    slices = client.resource(GROUP, "v1", "resourceslices", namespaced=False)
    for number in range(NODES):
        made = await nodes.create({"metadata": {"name": f"n{number}"}})
        have = {"cpu": "64", "memory": "64Gi", "pods": "110"}
        await nodes.update_status(made.changed({"status": {"capacity": have, "allocatable": have}}))
        await slices.create(_slice(f"n{number}"))
    classes = client.resource(GROUP, "v1", "deviceclasses", namespaced=False)
    await classes.create({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}})
    templates = client.resource(GROUP, "v1", "resourceclaimtemplates")
    await templates.create({"metadata": {"name": "one"}, "spec": {"spec": _wanted()}}, NS)
    claims = client.resource(GROUP, "v1", "resourceclaims")
    await claims.create({"metadata": {"name": SHARED}, "spec": _wanted()}, NS)
    await client.close()


def node_of(pod: Object) -> str:
    return str(pod.fields["spec"].get("nodeName") or "")


def devices_of(claim: Object) -> list[str]:
    allocation = (claim.fields.get("status") or {}).get("allocation") or {}
    return [f"{one['pool']}/{one['device']}" for one in (allocation.get("devices") or {}).get("results", ())]


def claim_of(pod: Object) -> str:
    """The claim that the pod says it uses."""
    status = pod.fields["status"]
    if "resourceClaims" not in pod.fields["spec"]:
        return str(status["extendedResourceClaimStatus"]["resourceClaimName"])
    (use,) = pod.fields["spec"]["resourceClaims"]
    return str(use.get("resourceClaimName") or status["resourceClaimStatuses"][0]["resourceClaimName"])


def is_protected(claim: Object) -> bool:
    return FINALIZER in (claim.metadata.finalizers or ())


def is_allocated(claim: Object) -> bool:
    return bool(devices_of(claim))


def pod(name: str, way: int, **spec: Any) -> Fields:
    """That asks for a device: 0 by a claim of its own, 1 by an extended resource, 2 by the shared claim."""
    uses = [{"resourceClaimTemplateName": "one"}, None, {"resourceClaimName": SHARED}][way]
    resources = {"claims": [{"name": "gpu"}]} if uses else {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    claims = {"resourceClaims": [{"name": "gpu", **uses}]} if uses else {}
    containers = [{"name": "main", "image": "example/app:1", "resources": resources}]
    anywhere = [{"operator": "Exists"}]  # nodes without a machine are found to be unreachable after a while
    return {
        "metadata": {"name": name},
        "spec": {"containers": containers, "tolerations": anywhere, **claims, **spec},
    }


def _wanted() -> Fields:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


def _slice(node: str) -> Fields:
    devices = [{"name": f"gpu-{number}"} for number in range(DEVICES)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": f"{node}-gpus"},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices},
    }
