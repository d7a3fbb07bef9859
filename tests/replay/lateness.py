"""A line on which answers to writes, and what watches tell, come late, each at its own time: they cross."""

import asyncio
import random
from collections.abc import AsyncIterator

from msgspec.structs import replace

from allot.api import Request, Response, Transport

LONGEST_S = 0.06


class Late:
    def __init__(self, transport: Transport, chance: random.Random) -> None:
        self._transport = transport
        self._chance = chance

    async def send(self, request: Request) -> Response:
        answer = await self._transport.send(request)
        if answer.stream is not None:
            return replace(answer, stream=self._dawdling(answer.stream))
        if request.method != "GET":
            await self._dawdle()
        return answer

    async def close(self) -> None:
        await self._transport.close()

    async def _dawdling(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in stream:
            await self._dawdle()
            yield piece

    async def _dawdle(self) -> None:
        if self._chance.random() < 0.5:
            await asyncio.sleep(self._chance.random() * LONGEST_S)
