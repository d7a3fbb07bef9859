"""What happens in clusters whose schedulers are recorded."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

from allot.api import errors
from scheduler.cluster import NS, Cluster

EXTENDED = "example.com/gpu"
Story = Callable[[Cluster], Awaitable[None]]


async def priorities(here: Cluster) -> None:
    for value in (0, 1, 5, 10, 20):
        await here.create("priorityclasses", {"metadata": {"name": f"p{value}"}, "value": value})


def come_and_go(seed: int, deeds: int = 80) -> Story:
    """Pods of every sort come and go faster than their writes are heard of."""
    chance = random.Random(seed)

    async def story(here: Cluster) -> None:
        await here.device_class(extendedResourceName=EXTENDED)
        await here.template()
        await here.template("two", count=2)
        await priorities(here)
        for name in "abcd":
            await here.node(name, cpu="4")
            await here.devices(name, 2)
        there: list[str] = []
        for number in range(deeds):
            if chance.random() < 0.3 and there:
                gone = there.pop(chance.randrange(len(there)))
                with contextlib.suppress(errors.NotFound):
                    await here.resource("pods").delete(gone, NS, grace_period_s=0)
            else:
                asks: list[dict[str, Any]] = [
                    {"template": chance.choice(("one", "two"))},
                    {"requests": {EXTENDED: "1", "cpu": "1"}},
                    {"requests": {"cpu": str(chance.randint(1, 4))}},
                ]
                rank = f"p{chance.choice((0, 0, 5, 10))}"
                await here.pod(
                    f"p{number}",
                    priorityClassName=rank,
                    terminationGracePeriodSeconds=0,
                    **chance.choice(asks),
                )
                there.append(f"p{number}")
            if chance.random() < 0.3:
                await asyncio.sleep(0.02)
        await here.quiet()

    return story
