"""A whole cluster in one process: API server, controllers, scheduler, hollow nodes, and agents if asked.

Every part talks to the server through a client of its own, in process and under its own
name, and is authorized like anybody else. What all of them read is read once: the
informers act for the controllers' process, which may list and watch everything, and are
shared with parts whose own role allows them the same.

On an embedded store nobody else can be at work on the same data, so all parts begin at
once. On etcd there may be other processes, so they stand for election.
"""

import asyncio
import gc
import random
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from allot import controllers, hollow, scheduler
from allot.api import User
from allot.apiserver import Serving, ServingOptions, identities, serve
from allot.base import Clock, RandomIds
from allot.client import Client, InProcessTransport, LeaseSettings
from allot.fleet import Fleet
from allot.informers import Election, Informers

_LEASE_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    serving: ServingOptions
    fleet: Fleet
    stages: hollow.Stages = field(default_factory=hollow.Stages)
    renewing: hollow.Renewing = field(default_factory=hollow.Renewing)
    agents: int = 0  # nodes of this machine, beside the fleet's


class Cluster:
    """A running cluster: `serving` is its API server."""

    def __init__(self, options: ClusterOptions, serving: Serving) -> None:
        self.options = options
        self.serving = serving
        self._transports: list[InProcessTransport] = []

    def client(self, user: User, agent: str = "allot") -> Client:
        """Act as `user`, with that user's rights and no more."""
        transport = InProcessTransport(self.serving.api.handle, user)
        self._transports.append(transport)
        return Client(transport, user_agent=agent)

    def node_client(self, name: str) -> Client:
        """For a few writes; made anew each time, so that thousands of nodes keep nothing."""
        transport = InProcessTransport(self.serving.api.handle, identities.node(name))
        return Client(transport, user_agent="hollow-node")

    async def close(self) -> None:
        for transport in self._transports:
            await transport.close()
        await self.serving.close()


@asynccontextmanager
async def cluster(options: ClusterOptions) -> AsyncIterator[Cluster]:
    """Runs while the block does, and is ready when it begins. A part that fails ends the block."""
    running = Cluster(options, await serve(options.serving))
    try:
        async with _parts(running) as parts, asyncio.TaskGroup() as group:
            tasks = [group.create_task(part.work, name=part.name) for part in parts]
            await asyncio.gather(*(part.ready.wait() for part in parts))
            # What is there now stays; the collector need not look at it again.
            gc.collect()
            gc.freeze()
            try:
                yield running
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        await running.close()


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    work: Coroutine[Any, Any, None]
    ready: asyncio.Event


@asynccontextmanager
async def _parts(running: Cluster) -> AsyncIterator[list[_Part]]:
    clock, rng = running.serving.api.clock, random.Random()
    metrics = running.serving.api.metrics
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
            running.serving.authority.ca.certificate.decode(),
        )
        parts = [
            _controllers(running, process),
            _scheduler(running, process),
            _hollow_nodes(running, process),
        ]
        if running.options.agents:
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
    agents = Agents(
        running.serving,
        options.fleet,
        options.renewing,
        process.clock,
        process.ids,
        process.metrics,
        process.telemetry,
    )
    return _Part("agents", agents.run(options.agents, standing.set), standing)
