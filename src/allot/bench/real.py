"""The scheduler that is measured: the real one, as `allot scheduler` runs it."""

import random
from collections.abc import Callable

from allot import scheduler
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client
from allot.informers import Informers, Telemetry

from .cast import Wanted
from .place import Connect


async def real_scheduler(
    connect: Connect,
    wanted: Wanted,
    ready: Callable[[], None],
    recorder: scheduler.Recorder = scheduler.UNRECORDED,
) -> None:
    clock, rng, metrics = SystemClock(), random.Random(wanted.seed), Metrics()
    client = Client(connect(identities.SCHEDULER), user_agent="allot-scheduler")
    settings = scheduler.Settings(scoring=wanted.scoring or scheduler.Scoring())
    async with Informers(client, rng, metrics=metrics) as informers:
        dependencies = scheduler.Dependencies(
            client,
            informers,
            clock,
            RandomIds(rng),
            metrics,
            Telemetry(metrics, clock),
            wanted.gates,
            recorder=recorder,
        )
        await scheduler.run(dependencies, settings, leading=ready)
