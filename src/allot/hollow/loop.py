"""Hollow nodes from their first word to the last: register, then play."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import allot
from allot.api import errors
from allot.client import level_of
from allot.fleet import Fleet
from allot.informers import Change, Election, Informers, ResourceId, Telemetry, lead_forever

from .actors import Actors
from .node_loop import Nodes
from .pod_loop import Pods
from .register_loop import Registering
from .settings import Stages

log = logging.getLogger(__name__)

T = TypeVar("T")
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 30.0

PODS = ResourceId("", "v1", "pods")
NODES = ResourceId("", "v1", "nodes", namespaced=False)
CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")
PREPARED = ResourceId("node.allot.dev", "v1alpha1", "preparedclaims", namespaced=False)


@dataclass(frozen=True, slots=True)
class Process:
    """What hollow nodes share with others in their process."""

    actors: Actors
    informers: Informers
    telemetry: Telemetry


async def run(
    process: Process,
    fleet: Fleet,
    stages: Stages,
    election: Election | None = None,
    *,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Until cancelled; with an election, only while this copy leads.

    `ready` is called when every node of the fleet has registered, by whichever copy.
    """

    async def term(ready: Callable[[], None]) -> None:
        await _term(process, fleet, stages, ready)

    if election is None:
        await term(ready)
        return
    async with asyncio.TaskGroup() as group:
        group.create_task(_registered(process.informers, fleet, ready))
        group.create_task(lead_forever(election, lambda: term(lambda: None)))


async def _registered(informers: Informers, fleet: Fleet, ready: Callable[[], None]) -> None:
    """Wait until all nodes of the fleet are there."""
    missing, complete = set(fleet.names), asyncio.Event()

    def on_node(change: Change) -> None:
        missing.discard(change.object.name)
        if not missing:
            complete.set()

    nodes = informers.use(NODES)
    stop = nodes.handle(on_node)
    try:
        await nodes.wait_synced()
        if missing:
            await complete.wait()
        ready()
    finally:
        stop()
        informers.leave(nodes)


async def _term(process: Process, fleet: Fleet, stages: Stages, ready: Callable[[], None]) -> None:
    """What is known is read anew at its beginning."""
    actors, informers = process.actors, process.informers
    leased = await _insist(lambda: Registering(actors, fleet, allot.__version__).run())
    used = pods, claims, nodes, prepared = [informers.use(what) for what in (PODS, CLAIMS, NODES, PREPARED)]
    try:
        await informers.refresh(*used)
        living = Nodes(actors, nodes, process.telemetry, leased)
        playing = Pods(actors, stages, used, process.telemetry)
        stops = [
            nodes.handle(living.on_node),
            nodes.handle(playing.on_node),
            claims.handle(playing.on_claim),
            pods.handle(playing.on_pod),
            prepared.handle(playing.on_prepared),
        ]
        ready()
        try:
            async with asyncio.TaskGroup() as group:
                for work in (living.renew, living.waking.run, playing.playing.run, playing.saying.run):
                    group.create_task(work())
        finally:
            for stop in stops:
                stop()
    finally:
        for informer in used:
            informers.leave(informer)


async def _insist(work: Callable[[], Awaitable[T]]) -> T:
    """Do it, and again from the beginning as often as the server does not let us."""
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            return await work()
        except errors.ApiError as refused:
            level = level_of(refused, logging.WARNING)
            log.log(level, "hollow nodes cannot begin, trying again in %.1f s: %s", wait_s, refused)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
