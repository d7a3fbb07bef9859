"""Controllers at work against the real server, each with its own rights and no more."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from allot.api import Gates, Object, Request, Response, Transport, errors
from allot.apiserver import Options, identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client, InProcessTransport
from allot.controllers import Controller, Process, run
from allot.informers import Informers, Pace
from allot.testing import TestServer, api_server

NS = "default"
QUICK = Pace(first_s=0.02, longest_s=0.1, absent_s=60, watch_s=60)
SOON_S = 10.0


class Behind:
    """A transport over which the news of one resource can be held back."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._held = ""
        self._free = asyncio.Event()

    def hold(self, plural: str) -> None:
        self._held = f"/{plural}"
        self._free.clear()

    def let_go(self) -> None:
        self._held = ""
        self._free.set()

    async def send(self, request: Request) -> Response:
        response = await self._transport.send(request)
        if response.stream is None:
            return response
        stream = self._late(request.path, response.stream)
        return Response(response.status, b"", response.content_type, stream=stream)

    async def _late(self, path: str, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in stream:
            if self._held and path.endswith(self._held):
                await self._free.wait()
            yield chunk

    async def close(self) -> None:
        await self._transport.close()


class Record:
    """A transport that keeps what was asked, and can hold back or refuse."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.requests: list[Request] = []
        self.before: Callable[[Request], Awaitable[None]] | None = None

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        if self.before is not None:
            await self.before(request)
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()

    def count(self, method: str, part: str) -> int:
        return sum(one.method == method and part in one.path for one in self.requests)


@dataclass
class World:
    server: TestServer
    client: Client  # the administrator
    controllers: Sequence[Controller]
    metrics: Metrics = field(default_factory=Metrics)
    gates: Gates = field(default_factory=Gates)
    authorities: str = ""
    wires: dict[str, Record] = field(default_factory=dict)
    ear: Behind | None = None
    _running: asyncio.Task[None] | None = None

    @property
    def pods(self):
        return self.client.resource("", "v1", "pods")

    @property
    def claims(self):
        return self.client.resource("resource.k8s.io", "v1", "resourceclaims")

    @property
    def templates(self):
        return self.client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")

    @property
    def wire(self) -> Record:
        """Of the only controller."""
        return self.wires[self.controllers[0].account]

    async def start(self) -> None:
        """Run the controllers; returns when they lead with fresh caches."""
        ready = asyncio.Event()
        self._running = asyncio.create_task(self._run(ready))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait((waiting, self._running), return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            self._running.result()

    async def stop(self) -> None:
        """As abruptly as a crash: everything in progress is cancelled."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait((running,))

    async def _run(self, ready: asyncio.Event) -> None:
        clock, rng = SystemClock(), random.Random(7)
        self.ear = Behind(InProcessTransport(self.server.api.handle, identities.CONTROLLER_MANAGER))
        reader = Client(self.ear)
        async with Informers(reader, rng, pace=QUICK) as informers:
            ids = RandomIds(rng)
            told = (self.metrics, self.gates, self.authorities)
            process = Process.of(informers, self._client_of, clock, rng, ids, *told)
            await run(process, self.controllers, leading=ready.set)

    def _client_of(self, controller: Controller) -> Client:
        user = identities.controller(controller.account)
        wire = self.wires[controller.account] = Record(InProcessTransport(self.server.api.handle, user))
        return Client(wire, user_agent=controller.name)

    # -- looking --------------------------------------------------------------------------------

    async def find(self, resource, name: str) -> Object | None:
        try:
            return await resource.get(name, NS)
        except errors.NotFound:
            return None

    async def until(self, question: Callable[[], Awaitable[Any]]) -> Any:
        """Wait until the answer is true, and return it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SOON_S
        while not (answer := await question()):
            assert loop.time() < end, "it did not become so"
            if self._running is not None and self._running.done():
                self._running.result()
            await asyncio.sleep(0.01)
        return answer

    async def quiet(self) -> None:
        """Long enough for everything that follows from what was done."""
        await asyncio.sleep(0.25)


@asynccontextmanager
async def world(
    *controllers: Controller,
    gates: Gates | None = None,
    authorities: str = "",
    transactions: bool = False,
    claims_with_pods: bool = False,
) -> AsyncIterator[World]:
    """Without transactions, unless a story is about them: one write after the other, as anywhere else."""
    gates = gates or Gates()
    options = Options(gates=gates, transactions=transactions, claims_with_pods=claims_with_pods)
    async with api_server(options=options) as server:
        here = World(server, server.client(), controllers, gates=gates, authorities=authorities)
        try:
            yield here
        finally:
            await here.stop()


def tell(
    story: Callable[[World], Awaitable[None]],
    *controllers: Controller,
    started: bool = True,
    gates: Gates | None = None,
    authorities: str = "",
    transactions: bool = False,
    claims_with_pods: bool = False,
) -> None:
    async def whole() -> None:
        async with world(
            *controllers,
            gates=gates,
            authorities=authorities,
            transactions=transactions,
            claims_with_pods=claims_with_pods,
        ) as here:
            if started:
                await here.start()
            await asyncio.wait_for(story(here), 40)

    asyncio.run(whole())
