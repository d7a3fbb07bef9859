"""Agents of real nodes in this process, each with drivers beside it: of a fleet's devices, or this machine's.

Every agent and every driver acts with the rights of its own node; what agents hear is heard once for all of
them. Pods on them are processes of this machine, which end with the cluster. `places` says where each is.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from allot import controllers, driver
from allot.api import classic, errors, numeric
from allot.apiserver import identities, security
from allot.client import Client, Credential
from allot.drivers import finding, sim
from allot.fleet import Fleet
from allot.node import Renewing
from allot.nodeagent import Agent, Process, Runtime, Settings, runtimes
from allot.wire import UnixSockets

from .near import Server
from .places import PROCESSES, AgentNode, Containers, agent_here, agent_node, agents_root, own_name

log = logging.getLogger(__name__)

Drivers = Callable[[AgentNode], Sequence[driver.Driver]]

GRACE_S = 5.0
"""What containers have to end in when the cluster ends."""


class Machine(NamedTuple):
    """This machine as a node."""

    name: str
    devices: finding.Here

    @property
    def sentence(self) -> str:
        return f"this machine is node {self.name}: {self.devices.sentence}"


def this_machine(data_dir: Path) -> Machine:
    """With what is found on it now."""
    name = own_name()
    return Machine(name, finding.found(name, agent_here(data_dir, name).root))


class Agents:
    def __init__(
        self,
        server: Server,
        data_dir: Path,
        fleet: Fleet,
        renewing: Renewing,
        process: controllers.Process,
        containers: Containers = PROCESSES,
    ) -> None:
        """`process` is the one they share, with its informers."""
        self._server = server
        self._data_dir = data_dir
        self._fleet = fleet
        self._renewing = renewing
        self._process = process
        self._containers = containers

    async def run(self, count: int, machine: Machine | None, ready: Callable[[], None]) -> None:
        """So many with a fleet's devices, and one for this machine. Until cancelled; then whatever runs on
        them is ended. `ready` is called once all are there."""
        data_dir, containers = self._data_dir, self._containers
        wanted = [(agent_node(data_dir, number, containers), self._of_fleet) for number in range(count)]
        if machine is not None:
            await self._offer(machine)
            own = [one.driver for one in machine.devices.found]
            wanted.append((agent_here(data_dir, machine.name, containers), lambda node: own))
        root, cdi = agents_root(data_dir), tuple(dict.fromkeys(node.cdi_dir for node, _ in wanted))
        name, sockets = containers.runtime, UnixSockets()
        async with runtimes.attached(name, root, cdi, sockets, ends_pods=True) as runtime:
            try:
                async with asyncio.TaskGroup() as group:
                    standing = [asyncio.Event() for _ in wanted]
                    for (node, drivers), event in zip(wanted, standing, strict=True):
                        group.create_task(self._agent(node, drivers, runtime, event.set), name=node.name)
                    for event in standing:
                        await event.wait()
                    ready()
            finally:
                if await _end_all(runtime) and machine is not None:
                    await self._put_away(machine)

    async def _put_away(self, machine: Machine) -> None:
        """Nothing of this machine stays taken by a cluster that is down: its data directory may go next."""
        node = agent_here(self._data_dir, machine.name, self._containers)
        for one in machine.devices.found:
            places = driver.Places(one.driver.name, node.root, node.cdi_dir)
            try:
                await driver.put_away(one.driver, places)
            except (driver.BadState, OSError) as wrong:
                log.warning("%s keeps what it has of this machine: %s", one.driver.name, wrong)

    async def _offer(self, machine: Machine) -> None:
        """Classes for its devices: made once, and the administrator's from then on. The same actor offers
        what a fleet has."""
        client = Client(self._server.transport(identities.HOLLOW_NODES), user_agent="allot-here")
        offering = client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
        try:
            for one in finding.classes(machine.devices):
                with contextlib.suppress(errors.AlreadyExists):
                    await offering.create(one)
        finally:
            await client.close()

    async def _agent(
        self, node: AgentNode, drivers: Drivers, runtime: Runtime, ready: Callable[[], None]
    ) -> None:
        user = identities.node(node.name)
        authority = security.read_authority(self._data_dir)
        assert authority is not None, "the server has made its keys"
        shared = self._process
        pair = authority.client(user.name, user.groups, shared.clock.now())
        async with AsyncExitStack() as stack:
            client = self._client(node.name, "allot-node")
            stack.push_async_callback(client.close)
            process = Process(
                client,
                shared.informers,
                shared.clock,
                shared.ids,
                shared.metrics,
                shared.telemetry,
                UnixSockets(),
                runtime,
                Credential(certificate=pair.certificate, key=pair.key),
                authority.ca.certificate,
                is_sharing=True,
            )
            agent = Agent(self._settings(node), process)
            registered = asyncio.Event()
            working = asyncio.create_task(agent.run(registered.set), name=f"agent of {node.name}")
            stack.push_async_callback(_ended, working)
            await _either(registered, working)
            await self._drivers(node, drivers(node), stack)
            ready()
            await working

    def _settings(self, node: AgentNode) -> Settings:
        gates = self._process.gates
        return Settings(
            node.name,
            node.root,
            (node.cdi_dir,),
            renewing=self._renewing,
            heeds_classic=gates[classic.limits.GATE],
            publishes_capacity=gates[numeric.limits.GATE],
        )

    def _of_fleet(self, node: AgentNode) -> Sequence[driver.Driver]:
        return sim.drivers(self._fleet.name, node.name)

    async def _drivers(
        self, node: AgentNode, drivers: Sequence[driver.Driver], stack: AsyncExitStack
    ) -> None:
        """After the agent, whose first deed is to wipe what was published before."""
        for one in drivers:
            client = self._client(node.name, f"allot-driver/{one.name}")
            stack.push_async_callback(client.close)
            places = driver.Places(one.name, node.root, node.cdi_dir)
            around = driver.Surroundings(client, clock=self._process.clock)
            await stack.enter_async_context(driver.running(one, driver.Node(node.name), places, around))
        for plugin in sim.plugins(self._fleet.name, node.name):
            plugged = await stack.enter_async_context(
                driver.plugged(plugin, driver.Node(node.name), node.root)
            )
            await plugged.registered.wait()

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


async def _end_all(runtime: Runtime) -> bool:
    """By their records: what an earlier process began is among them. Whether nothing runs any more."""
    for number, patience_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        for attempt in await runtime.attempts():
            if attempt.runs:
                await runtime.signal(attempt, number)
        for _ in range(round(patience_s / 0.05)):
            if not any(attempt.runs for attempt in await runtime.attempts()):
                return True
            await asyncio.sleep(0.05)
    return False
