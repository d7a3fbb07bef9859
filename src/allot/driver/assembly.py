"""A driver: what its author declares, and everything put together around it.

    driver = Driver("gpu.example.com", pools, prepare, unprepare)
    driver.main()

Nothing here knows how calls or requests travel: sockets and client are handed in, and so are real ones
(`main`), those of a test, or those of a simulator.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from allot.api import resource
from allot.base import Clock, Files, HeldByAnother, MachineFiles, Metrics, SystemClock
from allot.client import Client
from allot.informers import Informers, Telemetry
from allot.wire import Sockets, UnixSockets, cdi, dra, health

from .claims import Allocated, Claim, Edits, Given
from .configs import Config
from .deeds import first_of_several
from .devices import Pool
from .health import Healths, Reports
from .injecting import Injecting
from .metadata import DIRECTORY as METADATA
from .metadata import Metadata
from .places import Places, check_name
from .plugin import Deeds, Plugin, Prepare, Unprepare
from .publish_loop import Publishing
from .registering import Registration, registered
from .state import Entry, State, boot_id
from .status_loop import Statuses

PUBLISH_LOCK = "publish.lock"
TAKEOVER_S = 0.5


@dataclass(frozen=True, slots=True)
class Node:
    """Where the driver runs."""

    name: str
    fake: bool = False  # there is no hardware: make it up


Pools = Callable[[Node], Iterable[Pool] | AsyncIterator[Iterable[Pool]]]
"""The pools of a node: once, or, as an async generator, all of them again whenever they change."""


def nothing(entry: Entry) -> None:
    """To undo, for a driver whose `prepare` does nothing to the device itself."""


@dataclass(frozen=True, slots=True)
class Driver:
    name: str
    pools: Pools
    prepare: Prepare
    unprepare: Unprepare = nothing
    configs: tuple[type[Config], ...] = ()
    health: Reports | None = None
    put_away: Unprepare = nothing
    """Let go of what is the machine's, and keep what is the claim's: no container runs (`putting_away`)."""

    def __post_init__(self) -> None:
        check_name(self.name)

    def main(self, argv: Sequence[str] | None = None) -> int:
        """As a program: reads flags, runs until interrupted, returns the exit status."""
        from .main import main

        return main(self, argv)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a driver is handed."""

    client: Client
    sockets: Sockets = field(default_factory=UnixSockets)
    clock: Clock = field(default_factory=SystemClock)
    rng: random.Random = field(default_factory=random.Random)
    metrics: Metrics = field(default_factory=Metrics)
    boot: str = field(default_factory=boot_id)  # tells one boot of the machine from another
    files: Files = field(default_factory=MachineFiles)


@dataclass(frozen=True, slots=True)
class Running:
    plugin: Plugin
    publishing: Publishing
    registration: Registration


@asynccontextmanager
async def running(driver: Driver, node: Node, places: Places, around: Surroundings) -> AsyncIterator[Running]:
    """The driver at work while the block runs. Raises BadState, OSError, BadPools."""
    with first_of_several():
        async with (
            Informers(around.client, around.rng, metrics=around.metrics) as informers,
            _running(driver, node, places, around, informers) as work,
        ):
            yield work


@asynccontextmanager
async def _running(
    driver: Driver, node: Node, places: Places, around: Surroundings, informers: Informers
) -> AsyncIterator[Running]:
    client, clock, metrics = around.client, around.clock, around.metrics
    telemetry = Telemetry(metrics, clock)
    statuses = Statuses(driver.name, client, clock, telemetry)
    deeds = Deeds(driver.prepare, driver.unprepare, driver.configs)
    plugin = Plugin(
        driver.name,
        replace(deeds, prepare=pretended, unprepare=nothing) if node.fake else deeds,
        client.of(resource.RESOURCE_CLAIM),
        State(places.data, around.boot, around.files),
        Injecting(
            cdi.SpecDirectory(places.cdi, around.files),
            driver.name,
            Metadata(places.data / METADATA, driver.name, around.files),
        ),
        clock,
        metrics,
        statuses,
    )
    await plugin.start()
    publishing = Publishing(driver.name, node.name, client, informers, clock, telemetry, metrics)
    beside: list[Callable[[], Coroutine[Any, Any, None]]] = [
        partial(_published, driver, node, places.data / PUBLISH_LOCK, around.files, publishing),
        statuses.run,
    ]
    service = dra.served(plugin.prepare, plugin.unprepare)
    versions = [version.name for version in dra.VERSIONS]
    if driver.health is not None:
        healths = Healths(driver.health, clock)
        service += health.served(healths.watch)
        versions += [version.name for version in health.VERSIONS]
        beside.append(healths.run)
    async with (
        registered(places, around.sockets, service, versions, metrics) as said,
        asyncio.TaskGroup() as group,
    ):
        working = [group.create_task(deed()) for deed in beside]
        yield Running(plugin, publishing, said)
        for task in working:
            task.cancel()
    await plugin.stop()


async def _published(driver: Driver, node: Node, lock: Path, files: Files, publishing: Publishing) -> None:
    """Of two instances the older publishes, until it ends: two with different pools would never agree."""
    while True:
        try:
            turn = await asyncio.to_thread(files.lock, lock)
            break
        except HeldByAnother:
            await asyncio.sleep(TAKEOVER_S)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(publishing.run())
            given = driver.pools(node)
            if isinstance(given, AsyncIterator):
                async for pools in given:
                    publishing.publish(tuple(pools))
            else:
                publishing.publish(tuple(given))
    finally:
        turn.release()


def pretended(claim: Claim) -> Given:
    """In place of a driver's own `prepare` where there is no hardware: the container is told its devices."""
    return {one: Edits(env=(variable(claim, one),)) for one in claim.devices}


def variable(claim: Claim, one: Allocated) -> str:
    """DEVICE_<NAME>=<driver>/<pool>/<device>."""
    return f"DEVICE_{capitals(one.device)}={claim.driver}/{one.pool}/{one.device}"


def capitals(text: str) -> str:
    """As part of a variable's name."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in text.upper())
