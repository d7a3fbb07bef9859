"""A real server in the test's process, and informers on it."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from allot.api import Request, Response, Transport, errors
from allot.apiserver import identities
from allot.client import Client, InProcessTransport
from allot.informers import Added, Change, Deleted, Informers, Pace, ResourceId, Updated
from allot.store import MemoryStore
from allot.testing import TestServer, api_server

MAPS = ResourceId("", "v1", "configmaps")
PODS = ResourceId("", "v1", "pods")
NS = "default"
QUICK = Pace(first_s=0.02, longest_s=0.1, absent_s=60, watch_s=60)
SOON_S = 10.0


class Wire:
    """A transport that counts, and that can be cut: requests fail and open watches break off."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.is_cut = False
        self.watches = 0
        self.lists = 0
        self.open_watches = 0
        self._cut = asyncio.Event()

    def cut(self) -> None:
        self.is_cut = True
        self._cut.set()

    def mend(self) -> None:
        self.is_cut = False
        self._cut = asyncio.Event()

    async def send(self, request: Request) -> Response:
        if self.is_cut:
            raise errors.Unavailable("the wire is cut")
        watching = "watch" in request.query
        self.watches += watching
        self.lists += request.method == "GET" and not watching
        response = await self.transport.send(request)
        if response.stream is None or not watching:
            return response
        return replace(response, stream=self._stream(response.stream))

    async def _stream(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self.open_watches += 1
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            while True:
                chunk = asyncio.ensure_future(anext(stream))
                await asyncio.wait((cut, chunk), return_when=asyncio.FIRST_COMPLETED)
                if cut.done():
                    chunk.cancel()
                    raise errors.Unavailable("the wire is cut")
                try:
                    yield chunk.result()
                except StopAsyncIteration:
                    return
        finally:
            cut.cancel()
            self.open_watches -= 1

    async def close(self) -> None:
        await self.transport.close()


@dataclass
class World:
    store: MemoryStore
    server: TestServer
    client: Client  # for the test's own writes; goes to the first server
    wire: Wire  # of the informers
    informers: Informers


@asynccontextmanager
async def world(pace: Pace = QUICK) -> AsyncIterator[World]:
    store = MemoryStore()
    async with api_server(store) as server:
        wire = Wire(InProcessTransport(server.api.handle, identities.ADMIN))
        async with Informers(Client(wire), random.Random(1), pace=pace) as informers:
            yield World(store, server, server.client(), wire, informers)
    await store.close()


def tell(story: Callable[[World], Awaitable[None]], pace: Pace = QUICK) -> None:
    async def whole() -> None:
        async with world(pace) as here:
            await asyncio.wait_for(story(here), 30)

    asyncio.run(whole())


async def soon(what: Callable[[], Any], within_s: float = SOON_S) -> None:
    """Wait until it is so."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not what():
        assert loop.time() < end, "it did not become so"
        await asyncio.sleep(0.005)


def config_map(name: str, namespace: str = NS, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def what_and_which(changes: list[Change]) -> list[tuple[str, str]]:
    """Changes as (what, name), for comparing."""
    words = {Added: "added", Updated: "updated", Deleted: "deleted"}
    return [(words[type(change)], change.object.name) for change in changes]
