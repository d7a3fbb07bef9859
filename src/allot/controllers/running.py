"""Running controllers: one process, one set of informers, one election.

Informers run all the time, so that a copy that takes over has its caches ready.
Controllers are made anew for each term of leadership: what they remember of an
earlier term might no longer be so. A term begins with caches that were read from the
server after the lease was won, so that nothing the predecessor did is missed.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from allot.api import Gates
from allot.base import Clock, Ids, Metrics
from allot.client import Client
from allot.informers import Election, Events, Informers, Telemetry, lead_forever

from .controller import Controller, Loop, World

MANAGER = "kube-controller-manager"
"""The name that dashboards know this process by."""


@dataclass(frozen=True, slots=True)
class Process:
    """What the controllers of one process share."""

    informers: Informers
    client_of: Callable[[Controller], Client]  # a client with that controller's rights
    clock: Clock
    rng: random.Random
    ids: Ids
    metrics: Metrics
    telemetry: Telemetry
    gates: Gates = field(default_factory=Gates)
    authorities: str = ""  # who signs the server's certificate, as PEM; "" if nobody told

    @classmethod
    def of(
        cls,
        informers: Informers,
        client_of: Callable[[Controller], Client],
        clock: Clock,
        rng: random.Random,
        ids: Ids,
        metrics: Metrics,
        gates: Gates | None = None,
        authorities: str = "",
    ) -> "Process":
        telemetry = Telemetry(metrics, clock)
        return cls(informers, client_of, clock, rng, ids, metrics, telemetry, gates or Gates(), authorities)


async def run(
    process: Process,
    controllers: Sequence[Controller],
    election: Election | None = None,
    *,
    ready: Callable[[], None] = lambda: None,
    leading: Callable[[], None] = lambda: None,
) -> None:
    """Run until cancelled. Without an election this copy is the only one and leads at once.

    `ready` is called when the caches are ready, `leading` whenever a term begins.
    """
    warm = [process.informers.use(what) for controller in controllers for what in controller.needs]
    leads = process.metrics.gauge("leader_election_master_status", "1 while this copy leads.", "name")
    running = process.metrics.gauge("running_managed_controllers", "1 while it runs.", "name", "manager")
    lease = election.settings.name if election is not None else ""

    async def term() -> None:
        leading()
        tell(1)
        try:
            await _term(process, controllers)
        finally:
            tell(0)

    def tell(leading: int) -> None:
        leads.set(leading, lease)
        for controller in controllers:
            running.set(leading, controller.name, MANAGER)

    tell(0)
    try:
        await process.informers.synced(*warm)
        ready()
        if election is None:
            await term()
        else:
            await lead_forever(election, term)
    finally:
        for informer in warm:
            process.informers.leave(informer)


async def _term(process: Process, controllers: Sequence[Controller]) -> None:
    worlds = {controller.name: _world(process, controller) for controller in controllers}
    try:
        loops = {c.name: (worlds[c.name].events, *c.make(worlds[c.name])) for c in controllers}
        used = dict.fromkeys(informer for world in worlds.values() for informer in world.used)
        await process.informers.refresh(*used)
        async with asyncio.TaskGroup() as group:
            for name, running in loops.items():
                for loop in running:
                    group.create_task(_forever(loop), name=name)
    finally:
        for world in worlds.values():
            world.end()


async def _forever(loop: Loop) -> None:
    await loop.run()


def _world(process: Process, controller: Controller) -> World:
    client = process.client_of(controller)
    events = Events(client, controller.name, process.clock, process.ids, process.telemetry, process.metrics)
    return World(
        client,
        process.informers,
        process.clock,
        process.rng,
        process.ids,
        process.metrics,
        process.telemetry,
        events,
        process.gates,
        process.authorities,
    )
