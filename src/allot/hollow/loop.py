"""Hollow nodes from their first word to the last: register, then play."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import allot
from allot.api import Object, errors
from allot.client import level_of
from allot.fleet import Fleet
from allot.informers import Change, Election, Informers, Telemetry, lead_forever
from allot.node import (
    FOLLOWED,
    NODES,
    Heard,
    Hosts,
    LeaseLoop,
    PodLoop,
    lead,
    lists_prepared,
    pods_by_node,
)

from .actors import Actors
from .machine import HollowMachine
from .register_loop import Registering
from .registering import awake, is_awake, is_hollow
from .settings import Stages, wished

log = logging.getLogger(__name__)

T = TypeVar("T")
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 30.0


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
    any_name = next(iter(fleet.names), "none")
    has_lists = await _insist(lambda: lists_prepared(actors.component, any_name))
    heard = Heard.of(informers, FOLLOWED if has_lists else (*FOLLOWED[:-1], None))
    try:
        await informers.refresh(*heard.informers)
        hosts = Hosts(is_hollow, actors.of_node, actors.clock, process.telemetry, "hollow")
        machine = HollowMachine(
            actors.clock,
            lambda pod: wished(pod, stages),
            pods_on=pods_by_node(heard.pods).__getitem__,
            network_of=lambda node: _network(heard.node(node)),
        )
        leases = LeaseLoop(hosts, heard, actors.renewing, _awake, leased)
        pods = PodLoop(hosts, heard, machine, patience_s=stages.patience_s)
        stop = heard.nodes.handle(machine.on_node)
        try:
            await lead(heard, leases, pods, ready)
        finally:
            stop()
    finally:
        for informer in heard.informers:
            informers.leave(informer)


def _awake(node: Object, now: str) -> list[dict[str, Any]] | None:
    return None if is_awake(node) else awake(node.fields, now)


def _network(node: Object | None) -> str:
    return str((node.fields.get("spec") or {}).get("podCIDR") or "") if node is not None else ""


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
