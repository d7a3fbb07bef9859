"""A driver: what its author declares, and everything put together around it.

    driver = Driver("gpu.example.com", pools, prepare, unprepare)
    driver.main()

Nothing here knows how calls or requests travel: sockets and client are handed in, and so are real ones
(`main`), those of a test, or those of a simulator.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from allot.api import names, resource
from allot.base import Clock, FileLock, HeldByAnother, Metrics, SystemClock
from allot.client import Client
from allot.informers import Informers, Telemetry
from allot.wire import Sockets, UnixSockets, cdi, dra, health

from .claims import Allocated, Claim, Edits, Given
from .configs import Config
from .devices import Pool
from .health import Healths, Reports
from .injecting import Injecting
from .places import Places
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

    def __post_init__(self) -> None:
        wrong = names.subdomain(self.name)
        if wrong or len(self.name) > resource.limits.DRIVER_NAME_MAX:
            raise ValueError(f"{self.name!r} cannot be the name of a driver: {wrong or 'it is too long'}")

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


@dataclass(frozen=True, slots=True)
class Running:
    plugin: Plugin
    publishing: Publishing
    registration: Registration


@asynccontextmanager
async def running(driver: Driver, node: Node, places: Places, around: Surroundings) -> AsyncIterator[Running]:
    """The driver at work while the block runs. Raises BadState, OSError, BadPools."""
    with _first_of_several():
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
        State(places.data, around.boot),
        Injecting(cdi.SpecDirectory(places.cdi), driver.name),
        clock,
        metrics,
        statuses,
    )
    await plugin.start()
    publishing = Publishing(driver.name, node.name, client, informers, clock, telemetry, metrics)
    tasks = [_published(driver, node, places.data, publishing), statuses.run()]
    service = dra.served(plugin.prepare, plugin.unprepare)
    if driver.health is not None:
        healths = Healths(driver.health, clock)
        service += health.served(healths.watch)
        tasks.append(healths.run())
    has_health = driver.health is not None
    async with (
        registered(places, around.sockets, service, has_health=has_health, metrics=metrics) as said,
        asyncio.TaskGroup() as group,
    ):
        working = [group.create_task(task) for task in tasks]
        yield Running(plugin, publishing, said)
        for task in working:
            task.cancel()
    await plugin.stop()


async def _published(driver: Driver, node: Node, data: Path, publishing: Publishing) -> None:
    """Of two instances the older publishes, until it ends: two with different pools would never agree."""
    while True:
        try:
            turn = await asyncio.to_thread(FileLock, data / PUBLISH_LOCK)
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


@contextmanager
def _first_of_several() -> Iterator[None]:
    """What fails in the background ends the block with its own error, and not with a group of it."""
    try:
        yield
    except BaseExceptionGroup as several:
        first: BaseException = several
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


def pretended(claim: Claim) -> Given:
    """In place of a driver's own `prepare` where there is no hardware: the container is told its devices."""
    return {one: Edits(env=(variable(claim, one),)) for one in claim.devices}


def variable(claim: Claim, one: Allocated) -> str:
    """DEVICE_<NAME>=<driver>/<pool>/<device>, with `_` for what the name of a variable may not contain."""
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in one.device.upper())
    return f"DEVICE_{name}={claim.driver}/{one.pool}/{one.device}"
