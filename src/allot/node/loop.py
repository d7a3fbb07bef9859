"""The loops of nodes together: who hears what, and what runs."""

import asyncio
from collections.abc import Callable

from .hosts import Heard
from .lease_loop import LeaseLoop
from .pod_loop import PodLoop


async def lead(
    heard: Heard, leases: LeaseLoop, pods: PodLoop, ready: Callable[[], None] = lambda: None
) -> None:
    """Until cancelled. `ready` is called once everything that is there has been heard of."""
    stops = [
        heard.nodes.handle(leases.on_node),
        heard.nodes.handle(pods.on_node),
        heard.pods.handle(pods.on_pod),
    ]
    if heard.prepared is not None:
        stops.append(heard.prepared.handle(pods.prepared.on_prepared))
    if heard.claims is not None:
        stops.append(heard.claims.handle(pods.on_claim))
    ready()
    try:
        async with asyncio.TaskGroup() as group:
            for work in (leases.renew, leases.waking.run, pods.playing.run, pods.prepared.saying.run):
                group.create_task(work())
    finally:
        for stop in stops:
            stop()
