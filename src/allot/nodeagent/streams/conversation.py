"""A WebSocket on a connection: what the client says, piece by piece, and frames to it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from allot.api import Duplex, streams

IDLE_S = 4 * 3600.0
GOODBYE_S = 5.0
"""For the client to agree that it is over. It does so when it has read what was sent before."""


class Conversation:
    def __init__(self, link: Duplex, idle_s: float = IDLE_S) -> None:
        self._link = link
        self._inbox = streams.websocket.Inbox()
        self._idle_s = idle_s
        self._said_s = asyncio.get_running_loop().time()

    async def pieces(self) -> AsyncIterator[streams.websocket.Piece]:
        """Until the client has said that it is over, or is gone. Raises Broken and ConnectionError."""
        websocket = streams.websocket
        while data := await self._link.read():
            for event in self._inbox.feed(data):
                if isinstance(event, websocket.Piece):
                    self._said()
                    yield event
                elif event.opcode == websocket.PING:
                    await self._link.write(websocket.frame(websocket.PONG, event.payload))
                elif event.opcode == websocket.CLOSE:
                    return

    async def send(self, frame: bytes) -> None:
        """Raises ConnectionError."""
        self._said()
        await self._link.write(frame)

    async def until_one_ends(self, *tasks: "asyncio.Task[Any]") -> None:
        """Or until nothing has been said for too long (INTO3)."""
        loop = asyncio.get_running_loop()
        while not any(task.done() for task in tasks):
            left_s = self._said_s + self._idle_s - loop.time()
            if left_s <= 0:
                return
            await asyncio.wait(tasks, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)

    async def goodbye(self, listening: "asyncio.Task[None]") -> None:
        """Say that it is over, and wait a moment for the client to say the same. Raises ConnectionError."""
        await self._link.write(streams.websocket.closing())
        await asyncio.wait((listening,), timeout=GOODBYE_S)

    def _said(self) -> None:
        self._said_s = asyncio.get_running_loop().time()


async def end(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel them and wait until they have ended, however they do."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
