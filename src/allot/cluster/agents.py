"""Agents of real nodes in this process, each with the drivers of a fleet's devices beside it.

Every agent and every driver acts with the rights of its own node. Pods on them are processes of this machine,
which end with the cluster.

    DATA-DIR/agents/0, 1, ...      what each knows, and where further drivers may register
    DATA-DIR/agents/containers     what runs on them
"""

import asyncio
import random
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from allot import driver
from allot.apiserver import identities, security
from allot.base import Clock, Ids, Metrics
from allot.client import Client, Credential
from allot.drivers import sim
from allot.fleet import Fleet
from allot.informers import Informers, Telemetry
from allot.node import Renewing
from allot.nodeagent import Agent, Process, ProcessRuntime, Settings
from allot.wire import UnixSockets

from .near import Server

GRACE_S = 5.0
"""What containers have to end in when the cluster ends."""


def name_of(number: int) -> str:
    return f"agent-{number}"


class Agents:
    def __init__(
        self,
        server: Server,
        data_dir: Path,
        fleet: Fleet,
        renewing: Renewing,
        clock: Clock,
        ids: Ids,
        metrics: Metrics,
        telemetry: Telemetry,
    ) -> None:
        self._server = server
        self._data_dir = data_dir
        self._fleet = fleet
        self._renewing = renewing
        self._clock, self._ids = clock, ids
        self._metrics, self._telemetry = metrics, telemetry
        self._root = data_dir.absolute() / "agents"

    async def run(self, count: int, ready: Callable[[], None]) -> None:
        """Until cancelled; then whatever runs on them is ended. `ready` is called once all are there."""
        async with ProcessRuntime(self._root / "containers").attached() as runtime:
            try:
                async with asyncio.TaskGroup() as group:
                    standing = [asyncio.Event() for _ in range(count)]
                    for number, event in enumerate(standing):
                        group.create_task(self._agent(number, runtime, event.set), name=name_of(number))
                    for event in standing:
                        await event.wait()
                    ready()
            finally:
                await _end_all(runtime)

    async def _agent(self, number: int, runtime: ProcessRuntime, ready: Callable[[], None]) -> None:
        name, root = name_of(number), self._root / str(number)
        user = identities.node(name)
        authority = security.read_authority(self._data_dir)
        assert authority is not None, "the server has made its keys"
        pair = authority.client(user.name, user.groups, self._clock.now())
        async with AsyncExitStack() as stack:
            client = self._client(name, "allot-node")
            stack.push_async_callback(client.close)
            informers = await stack.enter_async_context(Informers(client, random.Random()))
            process = Process(
                client,
                informers,
                self._clock,
                self._ids,
                self._metrics,
                self._telemetry,
                UnixSockets(),
                runtime,
                Credential(certificate=pair.certificate, key=pair.key),
                authority.ca.certificate,
            )
            agent = Agent(Settings(name, root, (root / "cdi",), renewing=self._renewing), process)
            registered = asyncio.Event()
            working = asyncio.create_task(agent.run(registered.set), name=f"agent of {name}")
            stack.push_async_callback(_ended, working)
            await _either(registered, working)
            await self._drivers(name, root, stack)
            ready()
            await working

    async def _drivers(self, node: str, root: Path, stack: AsyncExitStack) -> None:
        """After the agent, whose first deed is to wipe what was published before."""
        for one in sim.drivers(self._fleet.name, node):
            client = self._client(node, f"allot-driver/{one.name}")
            stack.push_async_callback(client.close)
            places = driver.Places(one.name, root, root / "cdi")
            around = driver.Surroundings(client, clock=self._clock)
            await stack.enter_async_context(driver.running(one, driver.Node(node), places, around))

    def _client(self, node: str, agent: str) -> Client:
        return Client(self._server.transport(identities.node(node)), user_agent=agent)


async def _either(registered: asyncio.Event, working: "asyncio.Task[None]") -> None:
    """Until it is registered. Raises what ended it before."""
    waiting = asyncio.create_task(registered.wait())
    try:
        await asyncio.wait((waiting, working), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        waiting.cancel()


async def _ended(working: "asyncio.Task[None]") -> None:
    working.cancel()
    await asyncio.wait((working,))


async def _end_all(runtime: ProcessRuntime) -> None:
    """By their records: what an earlier process began is among them."""
    for number, patience_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        for attempt in await runtime.attempts():
            if attempt.runs:
                await runtime.signal(attempt, number)
        for _ in range(round(patience_s / 0.05)):
            if not any(attempt.runs for attempt in await runtime.attempts()):
                return
            await asyncio.sleep(0.05)
