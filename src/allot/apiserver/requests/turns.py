"""Long answers take turns.

The event loop runs all that is ready before it looks at its sockets again. A hundred clients that ask
for a long list at the same moment are ready at once, and so are a hundred watchers of a large object
that changed: everybody else would wait until a hundred pieces are made. So one piece is made in a
pass of the loop, and who wants something short waits for one of them and not for all.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Iterable

from allot.api import Object

LONG_BYTES = 64 * 1024
"""What is shorter is made at once."""


class Turns:
    """Those who wait are served in the order in which they came.

    Nobody holds a turn: the next one comes in the next pass, whatever becomes of whoever has this one. In the
    simulator he may stand still for minutes, in the midst of what the server does for him.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_taken = False  # in this pass, or in the next
        self._nobodys = contextvars.Context()

    async def take(self) -> None:
        """Returns in a pass of the loop in which nobody else gets a turn."""
        loop = asyncio.get_running_loop()
        if self._is_taken:
            waiter = loop.create_future()
            self._waiting.append(waiter)
            await waiter
        else:
            self._is_taken = True
            loop.call_soon(self._go_on, loop, context=self._nobodys)
            await asyncio.sleep(0)

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():  # else whoever it was has left
                waiter.set_result(None)
                loop.call_soon(self._go_on, loop, context=self._nobodys)
                return
        self._is_taken = False

    async def take_for(self, objects: Iterable[Object]) -> None:
        """At once if what is to be said of these objects is short."""
        size = 0
        for object in objects:
            size += len(object.stored)
            if size > LONG_BYTES:
                await self.take()
                return
