"""A connection through the server to a node's agent: bytes, as they are, in both directions.

What it promises
    TUNNEL1  Neither side gets ahead of the other by more than the buffers of two connections: who sends to
             one that does not read waits.
    TUNNEL2  When one side ends, the other is closed, after what was said before the end.
    TUNNEL3  One on which nothing is said for IDLE_S is closed.
"""

import asyncio
from collections.abc import Awaitable, Callable

from allot.api import Duplex

IDLE_S = 4 * 3600.0
READ_BYTES = 64 * 1024


class Tunnel:
    """To be called with the client's end."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle_s: float = IDLE_S
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._idle_s = idle_s
        self._moved_s = 0.0

    async def talk(self, client: Duplex) -> None:
        self._moved()
        there = asyncio.ensure_future(self._carry(client.read, self._to_node))
        back = asyncio.ensure_future(self._carry(self._from_node, client.write))
        try:
            await self._until_one_ends(there, back)
        finally:
            there.cancel()
            back.cancel()
            self._writer.close()
            await asyncio.wait((there, back))

    async def _until_one_ends(self, *ways: "asyncio.Future[None]") -> None:
        while True:
            left_s = self._moved_s + self._idle_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                return
            done, _ = await asyncio.wait(ways, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return

    async def _carry(
        self, read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        try:
            while data := await read():
                self._moved()
                await write(data)
        except OSError:
            pass  # one of them is gone

    async def _from_node(self) -> bytes:
        return await self._reader.read(READ_BYTES)

    async def _to_node(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def _moved(self) -> None:
        self._moved_s = asyncio.get_running_loop().time()
