"""The body of an answer as it arrives: pieces from the connection, all that is there for the reader.

Connections differ in how they hear that their reader is slow: `pushed` and `taken` are theirs.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from allot.api import errors


class Arriving:
    """One reader, who may leave at any time."""

    def __init__(self, abandon: Callable[[], None]) -> None:
        self._abandon = abandon
        self._pieces: deque[bytes] = deque()
        self._ended = False
        self._broken = ""
        self._waiting: asyncio.Future[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def ended(self) -> bool:
        return self._ended

    def end_after(self, seconds: float) -> None:
        """End the stream by then: the peer may be gone without a word."""
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._give_up)

    def push(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.pushed(len(piece))
        self._wake()

    def pushed(self, size: int) -> None:
        """So much more waits for the reader."""

    def taken(self, size: int) -> None:
        """The reader took so much, which is all that there was."""

    def end(self, broken: str = "") -> None:
        if self._ended:
            return
        self._ended = True
        self._broken = broken
        if self._deadline is not None:
            self._deadline.cancel()
        self._wake()

    def __aiter__(self) -> "Arriving":
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self._ended:
                if self._broken:
                    raise errors.Unavailable(f"the stream broke off: {self._broken}")
                raise StopAsyncIteration
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        everything = b"".join(self._pieces) if len(self._pieces) > 1 else self._pieces[0]
        self._pieces.clear()
        self.taken(len(everything))
        return everything

    async def aclose(self) -> None:
        """End the stream from this side."""
        self._pieces.clear()
        self._give_up()

    def _give_up(self) -> None:
        if not self._ended:
            self.end()
            self._abandon()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
