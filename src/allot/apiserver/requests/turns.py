"""Long answers take turns.

The event loop runs all that is ready before it looks at its sockets again. A hundred clients that ask
for a long list at the same moment are ready at once, and so are a hundred watchers of a large object
that changed: everybody else would wait until a hundred pieces are made. So one piece is made in a
pass of the loop, and who wants something short waits for one of them and not for all.
"""

import asyncio
from collections.abc import Iterable

from allot.api import Object

LONG_BYTES = 64 * 1024
"""What is shorter is made at once."""


class Turns:
    """Those who wait are served in the order in which they came."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()

    async def take(self) -> None:
        """Returns in a pass of the loop in which nobody else gets a turn."""
        async with self._one_at_a_time:
            await asyncio.sleep(0)

    async def take_for(self, objects: Iterable[Object]) -> None:
        """At once if what is to be said of these objects is short."""
        size = 0
        for object in objects:
            size += len(object.stored)
            if size > LONG_BYTES:
                await self.take()
                return
