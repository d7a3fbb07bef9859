"""All controllers at work in this process, with every request counted: for benchmarks.

    async with controlling(connect, clock) as counts: ...

`connect(account)` is the way to the server with the rights of a controller's account, or with
those of the process itself for "". Requests are counted by who made them, verb and resource.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from allot.api import Request, Response, Transport
from allot.base import Clock, Metrics, RandomIds
from allot.client import Client, LeaseSettings
from allot.controllers import ALL, Controller, Process, run
from allot.informers import Election, Informers

Connect = Callable[[str], Transport]

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Counts:
    """Requests by verb and resource, of any number of wires."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def wire(self, transport: Transport) -> Transport:
        return _Wire(transport, self)

    async def quiet(self, for_s: float = 1.0) -> None:
        """Until nothing has been asked for a while, but for the lease."""
        before = -1
        while before != (now := sum(self.made.values()) - self.made["update leases"]):
            before = now
            await asyncio.sleep(for_s)


class _Wire:
    def __init__(self, transport: Transport, counts: Counts) -> None:
        self._transport = transport
        self._counts = counts

    async def send(self, request: Request) -> Response:
        call = call_of(request.method, request.path, request.query)
        self._counts.made[call] += 1
        response = await self._transport.send(request)
        if response.status >= 400:
            self._counts.refused[call] += 1
        return response

    async def close(self) -> None:
        await self._transport.close()


def call_of(method: str, path: str, query: Mapping[str, str]) -> str:
    """Such as "patch pods/status": the verb, the plural and the subresource."""
    group, *steps = path.strip("/").split("/")
    steps = steps[1:] if group == "api" else steps[2:]  # without the version, and the group
    if steps[:1] == ["namespaces"] and len(steps) > 2 and steps[2] != "status":
        steps = steps[2:]
    plural, name, subresource = (*steps, "", "", "")[:3]
    if not plural:
        return "get discovery"
    reading = "watch" if "watch" in query else "get" if name else "list"
    verb = _VERBS.get(method, reading)
    return f"{verb} {plural}/{subresource}" if subresource else f"{verb} {plural}"


@asynccontextmanager
async def controlling(connect: Connect, clock: Clock) -> AsyncIterator[Counts]:
    """Every controller, leading, until the block ends."""
    counts, rng, leading = Counts(), random.Random(1), asyncio.Event()
    client = Client(counts.wire(connect("")))
    settings = LeaseSettings("kube-controller-manager", "kube-system", "bench")
    election = Election(settings, client.resource("coordination.k8s.io", "v1", "leases"), clock)

    def client_of(controller: Controller) -> Client:
        return Client(counts.wire(connect(controller.account)))

    async def work() -> None:
        async with Informers(client, rng) as informers:
            process = Process.of(informers, client_of, clock, rng, RandomIds(rng), Metrics())
            await run(process, ALL, election, leading=leading.set)

    working = asyncio.create_task(work())
    waiting = asyncio.create_task(leading.wait())
    await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        working.result()
    try:
        yield counts
    finally:
        working.cancel()
        await asyncio.wait((working,))
