"""Hollow nodes at work against the real server, with their own rights and no more."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from allot import hollow
from allot.api import Object, Request, Response, User, kinds
from allot.apiserver import identities
from allot.base import Metrics, SystemClock
from allot.client import Client, InProcessTransport
from allot.fleet import Fleet, fleet
from allot.informers import Informers, Telemetry
from allot.testing import TestServer, api_server
from node.objects import NS

FAST = hollow.Stages(start_s=0.02, run_s=0.2, stop_s=0.02, patience_s=0.1)
SOON_S = 10.0


@dataclass
class World:
    server: TestServer
    client: Client  # the administrator
    written: list[tuple[str, str, str]]  # who, method, path of every write of a hollow node
    after: Callable[[Request], Awaitable[None]] | None = None  # called when one has been answered
    lacks: str = ""  # a group that the server does not serve

    def __post_init__(self) -> None:
        self.pods = self.client.resource("", "v1", "pods")
        self.nodes = self.client.resource("", "v1", "nodes", namespaced=False)
        self.leases = self.client.resource("coordination.k8s.io", "v1", "leases")
        self.claims = self.client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.slices = self.client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
        self.prepared = self.client.of(kinds.PREPARED_CLAIMS)

    async def make_pod(self, name: str = "p", node: str = "plain-0", **more: Any) -> Object:
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "app:1"}], **more.pop("spec", {})}
        return await self.pods.create({"metadata": {"name": name, "namespace": NS, **more}, "spec": spec})

    async def phase(self, name: str = "p") -> str:
        return str((await self.pods.get(name, NS)).fields["status"]["phase"])

    async def until_phase(self, phase: str, name: str = "p") -> Object:
        async def is_so() -> bool:
            return await self.phase(name) == phase

        await self.until(is_so)
        return await self.pods.get(name, NS)

    async def until_gone(self, name: str = "p") -> None:
        async def is_so() -> bool:
            return name not in [pod.name for pod in (await self.pods.list(NS)).objects]

        await self.until(is_so)

    async def listed(self, node: str = "plain-0") -> list[str]:
        """The claims that a node says it has prepared."""
        for one in (await self.prepared.list()).objects:
            if one.name == node:
                return [claim["uid"] for claim in one.fields["status"]["claims"]]
        return []

    async def freeze(self, plural: str) -> None:
        """Hollow nodes hear no more of a resource: their cache falls behind."""
        for task in asyncio.all_tasks():
            if task.get_name().startswith(f"informer {plural}."):
                task.cancel()
                await asyncio.wait((task,))

    async def until(self, question: Callable[[], Awaitable[Any]]) -> Any:
        loop = asyncio.get_running_loop()
        end = loop.time() + SOON_S
        while not (answer := await question()):
            assert loop.time() < end, "it did not become so"
            await asyncio.sleep(0.01)
        return answer


class Noted:
    """Notes the writes that pass."""

    def __init__(self, here: World) -> None:
        self._here = here

    async def __call__(self, request: Request, user: User) -> Response:
        if self._here.lacks and f"/apis/{self._here.lacks}/" in request.path:
            return Response(404, b"404 page not found\n", "text/plain")
        answer = await self._here.server.api.handle(request, user)
        if request.method != "GET":
            self._here.written.append((user.name, request.method, request.path))
            if self._here.after is not None:
                await self._here.after(request)
        return answer


@asynccontextmanager
async def playing(
    here: World, of: Fleet, stages: hollow.Stages = FAST, renewing: hollow.Renewing | None = None
) -> AsyncIterator[None]:
    """Hollow nodes run while the block does."""
    clock, rng = SystemClock(), random.Random(1)
    handle = Noted(here)
    transport = InProcessTransport(handle, identities.HOLLOW_NODES)
    component = Client(transport)

    def of_node(name: str) -> Client:
        return Client(InProcessTransport(handle, identities.node(name)))

    actors = hollow.Actors(component, of_node, clock, renewing or hollow.Renewing())
    metrics = Metrics()
    ready = asyncio.Event()
    async with Informers(component, rng, metrics=metrics) as informers:
        process = hollow.Process(actors, informers, Telemetry(metrics, clock))
        task = asyncio.create_task(hollow.run(process, of, stages, ready=ready.set))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        try:
            yield
            assert not task.done(), task.exception()
        finally:
            for one in (task, waiting):
                one.cancel()
            await asyncio.gather(task, waiting, return_exceptions=True)
    await transport.close()


def tell(story: Callable[[World], Awaitable[None]], name: str = "plain", nodes: int = 1) -> None:
    """A story with hollow nodes in it, on a fresh server."""

    async def whole() -> None:
        async with world() as here, playing(here, fleet(name, nodes)):
            await story(here)

    asyncio.run(whole())


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    async with api_server() as server:
        yield World(server, server.client(), [])
