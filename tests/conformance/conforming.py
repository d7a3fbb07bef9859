"""A driver under the hostile kubelet, restarts included."""

import random
from contextlib import AsyncExitStack

from allot.base import RandomIds
from allot.conformance import Settings, Verdict, play
from allot.driver import Node, Places, Surroundings, running
from allot.wire import UnixSockets
from driver.world import NODE, tell, until


def not_tried(make):
    """Which cases could not be tried with the driver that `make` makes; none may fail."""

    async def story(world):
        name = make().name
        places = Places(name, world.places.root, world.places.cdi)
        async with AsyncExitStack() as life:

            async def begin():
                around = Surroundings(world.server.client())
                await life.enter_async_context(running(make(), Node(NODE), places, around))

            async def restart():
                await life.aclose()
                await begin()

            await begin()
            await until(world.devices)
            settings = Settings(
                places.registration_socket,
                UnixSockets(),
                RandomIds(random.Random(1)),
                client=world.client,
                cdi=places.cdi,
                restart=restart,
            )
            return await play(settings)

    report = tell(story)
    assert report.failed == (), report.text()
    return {one.case for one in report.outcomes if one.verdict is Verdict.NOT_TRIED}
