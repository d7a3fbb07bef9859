"""Who takes part beside the load: the controllers and the scheduler, each with its own rights."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from allot.api import Gates
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client
from allot.controllers import ALL, Controller, Process, resourceclaims
from allot.controllers import run as run_controllers
from allot.informers import Informers
from allot.scheduler import Scoring

from .place import Connect

_COLLECTOR = "garbage-collector-controller"

CASTS: dict[str, Sequence[Controller]] = {
    "claims": (resourceclaims.CONTROLLER,),
    "claims+gc": tuple(one for one in ALL if one in (resourceclaims.CONTROLLER,) or one.name == _COLLECTOR),
    "all": ALL,
}
"""Which controllers run: the one that makes and releases claims, also the one that deletes what
nobody owns any more, or every one that there is."""

_READY_S = 120.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a scheduler is told."""

    gates: Gates
    scoring: Scoring | None  # None for its own choice
    seed: int


Scheduler = Callable[[Connect, Wanted, Callable[[], None]], Coroutine[Any, Any, None]]
"""Runs until cancelled; calls what it is handed when it is ready to place pods."""


class Fallen(Exception):
    """A component ended by itself."""


@asynccontextmanager
async def performing(
    connect: Connect, controllers: Sequence[Controller], scheduler: Scheduler, wanted: Wanted
) -> AsyncIterator[Callable[[], None]]:
    """Everybody at work. Yields a check that raises Fallen once one of them has ended."""
    tasks: dict[str, asyncio.Task[None]] = {}

    def check() -> None:
        for name, task in tasks.items():
            if task.done():
                error = None if task.cancelled() else task.exception()
                raise Fallen(f"the {name} ended by itself: {error!r}") from error

    async def start(name: str, main: Callable[[Callable[[], None]], Coroutine[Any, Any, None]]) -> None:
        ready = asyncio.Event()
        tasks[name] = asyncio.create_task(main(ready.set), name=name)
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait((waiting, tasks[name]), timeout=_READY_S, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        check()
        if not ready.is_set():
            raise Fallen(f"the {name} is not ready after {_READY_S:.0f} s")

    try:
        await start("controllers", lambda ready: _control(connect, controllers, wanted.seed, ready))
        await start("scheduler", lambda ready: scheduler(connect, wanted, ready))
        yield check
    finally:
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values())


async def _control(
    connect: Connect, controllers: Sequence[Controller], seed: int, ready: Callable[[], None]
) -> None:
    rng = random.Random(seed)

    def client_of(controller: Controller) -> Client:
        return Client(connect(identities.controller(controller.account)), user_agent=controller.name)

    async with Informers(Client(connect(identities.CONTROLLER_MANAGER)), rng) as informers:
        process = Process.of(informers, client_of, SystemClock(), rng, RandomIds(rng), Metrics())
        await run_controllers(process, controllers, leading=ready)
