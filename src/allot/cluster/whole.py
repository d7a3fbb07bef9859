"""A whole cluster: API server, controllers, scheduler, hollow nodes, and agents if asked.

The server is in this process or in one of its own; all else is here. Every part talks to the server
through a client of its own, under its own name, and is authorized like anybody else. What all of them
read is read once: the informers act for the controllers' process, which may list and watch everything,
and are shared with parts whose own role allows them the same.

On an embedded store nobody else can be at work on the same data, so all parts begin at
once. On etcd there may be other processes, so they stand for election.
"""

import asyncio
import gc
import random
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allot import controllers, hollow, scheduler
from allot.api import Transport, User
from allot.apiserver import ServingOptions, identities
from allot.base import Clock, RandomIds
from allot.client import Client, LeaseSettings
from allot.fleet import Fleet
from allot.informers import Election, Informers

from .apart import ServerApart
from .near import Server, ServerInThisProcess
from .places import PROCESSES, AgentNode, Containers, agent_here, agent_node
from .spawning import ServerProcess

if TYPE_CHECKING:
    from .agents import Machine

_LEASE_NAMESPACE = "kube-system"
_MOMENT_S = 1.0


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    serving: ServingOptions
    fleet: Fleet
    stages: hollow.Stages = field(default_factory=hollow.Stages)
    renewing: hollow.Renewing = field(default_factory=hollow.Renewing)
    agents: int = 0  # nodes of this machine, beside the fleet's
    machine: "Machine | None" = None  # this machine itself, with its own devices
    containers: Containers = PROCESSES  # on those


class ServerEnded(Exception):
    """While the cluster was starting, or so that a part failed. The message says why; empty if somebody asked
    for it."""


class Cluster:
    """A running cluster."""

    def __init__(self, options: ClusterOptions, server: Server) -> None:
        self.options = options
        self.server = server
        self._transports: list[Transport] = []

    @property
    def agents(self) -> tuple[AgentNode, ...]:
        data_dir, containers = self.options.serving.data_dir, self.options.containers
        numbered = (agent_node(data_dir, number, containers) for number in range(self.options.agents))
        machine = self.options.machine
        here = (agent_here(data_dir, machine.name, containers),) if machine is not None else ()
        return (*numbered, *here)

    def client(self, user: User, agent: str = "allot") -> Client:
        """Act as `user`, with that user's rights and no more."""
        transport = self.server.transport(user)
        self._transports.append(transport)
        return Client(transport, user_agent=agent)

    def node_client(self, name: str) -> Client:
        """For a few writes; made anew each time, so that thousands of nodes keep nothing."""
        return Client(self.server.passing(identities.node(name)), user_agent="hollow-node")

    async def close(self) -> None:
        for transport in self._transports:
            await transport.close()
        await self.server.close()


@asynccontextmanager
async def cluster(options: ClusterOptions, apart: ServerProcess | None = None) -> AsyncIterator[Cluster]:
    """Runs while the block does, and is ready when it begins. A part that fails ends the block.

    `apart` is the process for the server, if it shall have one. Raises CannotServe or what keeps a server in
    this process from starting; ServerEnded."""
    serving = options.serving
    starting = ServerApart.start(apart, serving) if apart else ServerInThisProcess.start(serving)
    running = Cluster(options, await starting)
    ended: str | None = None
    try:
        try:
            async with _parts(running) as parts, asyncio.TaskGroup() as group:
                tasks = [group.create_task(part.work, name=part.name) for part in parts]
                try:
                    ended = await _ready(parts, running.server)
                    if ended is None:
                        # What is there now stays; the collector need not look at it again.
                        gc.collect()
                        gc.freeze()
                        yield running
                finally:
                    for task in tasks:
                        task.cancel()
        except ExceptionGroup:
            ended = await _ended(running.server)
            if ended is None:
                raise
        if ended is not None:
            raise ServerEnded(ended)
    finally:
        await running.close()


async def _ready(parts: "Sequence[_Part]", server: Server) -> str | None:
    """Once all parts are. Why they never will be, if the server has ended."""

    async def all_ready() -> None:
        for part in parts:
            await part.ready.wait()

    waiting = [asyncio.ensure_future(all_ready()), asyncio.ensure_future(server.over())]
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for one in waiting:
            one.cancel()


async def _ended(server: Server) -> str | None:
    """Why a part failed, if it did because the server is no more: then that is heard of within a moment."""
    try:
        async with asyncio.timeout(_MOMENT_S):
            return await server.over()
    except TimeoutError:
        return None


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    work: Coroutine[Any, Any, None]
    ready: asyncio.Event


@asynccontextmanager
async def _parts(running: Cluster) -> AsyncIterator[list[_Part]]:
    clock, rng = running.options.serving.server.clock, random.Random()
    metrics = running.server.metrics
    reading = running.client(identities.CONTROLLER_MANAGER, "allot-informers")
    async with Informers(reading, rng, metrics=metrics) as informers:
        process = controllers.Process.of(
            informers,
            lambda controller: running.client(identities.controller(controller.account), controller.name),
            clock,
            rng,
            RandomIds(rng),
            metrics,
            running.options.serving.server.gates,
            running.server.authority,
        )
        parts = [
            _controllers(running, process),
            _scheduler(running, process),
            _hollow_nodes(running, process),
        ]
        if running.options.agents or running.options.machine is not None:
            parts.append(_agents(running, process))
        yield parts


def _controllers(running: Cluster, process: controllers.Process) -> _Part:
    standing = asyncio.Event()
    election = _election(running, identities.CONTROLLER_MANAGER, "kube-controller-manager", process.clock)
    work = controllers.run(process, controllers.ALL, election, ready=standing.set)
    return _Part("controllers", work, standing)


def _scheduler(running: Cluster, process: controllers.Process) -> _Part:
    standing = asyncio.Event()
    dependencies = scheduler.Dependencies(
        running.client(identities.SCHEDULER, "allot-scheduler"),
        process.informers,
        process.clock,
        process.ids,
        process.metrics,
        process.telemetry,
        running.options.serving.server.gates,
    )
    election = _election(running, identities.SCHEDULER, "kube-scheduler", process.clock)
    work = scheduler.run(dependencies, election=election, ready=standing.set)
    return _Part("scheduler", work, standing)


def _election(running: Cluster, user: User, lease: str, clock: Clock) -> Election | None:
    if not running.options.serving.store.startswith("etcd:"):
        return None
    settings = LeaseSettings(lease, _LEASE_NAMESPACE, f"{socket.gethostname()}_{RandomIds().uid()}")
    leases = running.client(user).resource("coordination.k8s.io", "v1", "leases")
    return Election(settings, leases, clock)


def _hollow_nodes(running: Cluster, process: controllers.Process) -> _Part:
    options = running.options
    registered = asyncio.Event()
    component = running.client(identities.HOLLOW_NODES, "hollow-nodes")
    actors = hollow.Actors(component, running.node_client, process.clock, options.renewing)
    shared = hollow.Process(actors, process.informers, process.telemetry)
    election = _election(running, identities.HOLLOW_NODES, "allot-hollow-nodes", process.clock)
    work = hollow.run(shared, options.fleet, options.stages, election, ready=registered.set)
    return _Part("hollow nodes", work, registered)


def _agents(running: Cluster, process: controllers.Process) -> _Part:
    from .agents import Agents  # gRPC costs time to import, and few clusters need it

    options, standing = running.options, asyncio.Event()
    data_dir = options.serving.data_dir
    agents = Agents(running.server, data_dir, options.fleet, options.renewing, process, options.containers)
    return _Part("agents", agents.run(options.agents, options.machine, standing.set), standing)
