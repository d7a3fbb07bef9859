"""Schedulers that are recorded while they work on a real API server."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from allot.api import Gates, Transport
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client, InProcessTransport
from allot.informers import Informers, Telemetry
from allot.replay import Bounds, Choice, Keeper, RecordFile, Replayed, Writing, read, replayed
from allot.scheduler import Dependencies, Scheduler, Settings
from scheduler.cluster import QUICK, Cluster, cluster

from .lateness import Late

LARGE = Bounds(64 * 1024 * 1024, timedelta(days=1))


@asynccontextmanager
async def recording(path: Path, bounds: Bounds = LARGE) -> AsyncIterator[Writing]:
    troubles: list[str] = []
    writing = Writing(RecordFile(path, bounds), bounds, SystemClock(), troubles.append)
    writing.start()
    try:
        yield writing
    finally:
        await asyncio.to_thread(writing.close)
    assert not troubles, troubles


async def scheduling(here: Cluster, writing: Writing, settings: Settings, seed: int, *, late: bool) -> None:
    rng, clock = random.Random(seed), SystemClock()
    line: Transport = InProcessTransport(here.server.api.handle, identities.SCHEDULER)
    client = Client(Late(line, random.Random(seed)) if late else line)
    async with Informers(client, rng, pace=QUICK) as informers:
        dependencies = Dependencies(
            client,
            informers,
            clock,
            RandomIds(rng),
            Metrics(),
            Telemetry(Metrics(), clock),
            here.gates,
            recorder=Keeper(writing.put, clock),
        )
        await Scheduler(dependencies, settings).run()


def tell(
    path: Path,
    story: Callable[[Cluster], Awaitable[None]],
    *,
    gates: Gates | None = None,
    settings: Settings | None = None,
    bounds: Bounds = LARGE,
    transactions: bool = True,
    seed: int = 8,
    late: bool = False,
) -> None:
    """A story whose scheduler is recorded."""

    async def whole() -> None:
        async with cluster(gates, transactions=transactions) as here, recording(path, bounds) as writing:
            await here.start_controllers()
            work = asyncio.ensure_future(scheduling(here, writing, settings or Settings(), seed, late=late))
            try:
                await asyncio.wait_for(story(here), 60)
            finally:
                work.cancel()
                await asyncio.wait([work])
            if not work.cancelled():
                work.result()

    asyncio.run(whole())


def again(path: Path, choice: Choice | None = None) -> Replayed:
    return replayed(read(path), choice)
