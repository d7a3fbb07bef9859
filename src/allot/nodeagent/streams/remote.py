"""exec and attach: the standard streams of a command, the size of its terminal, and how it ended."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import NamedTuple

from allot.api import Duplex, streams

from ..runtimes import Streams
from .conversation import IDLE_S, Conversation, end

log = logging.getLogger(__name__)

_PIECES_MAX = 4
"""Of input that the command has not read."""

Run = Callable[[Streams], Awaitable[int]]
"""Runs a command, or follows one that runs, and says its exit code. When cancelled, it ends what it began."""


class Wanted(NamedTuple):
    """Which streams the client has an end of."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Wanted":
        is_on = [query.get(name, "").lower() in ("1", "true") for name in ("input", "output", "error", "tty")]
        return cls(*is_on)


async def run_remotely(link: Duplex, want: Wanted, run: Run, idle_s: float = IDLE_S) -> None:
    """Until the command has ended, or the client is gone: then the command is ended (INTO1)."""
    conversation = Conversation(link, idle_s)
    remote = _Remote(conversation, want)
    listening = asyncio.create_task(remote.listen())
    running = asyncio.create_task(_outcome(run, remote))
    try:
        await conversation.send(remote.greeting())
        await conversation.until_one_ends(running, listening)
        if running.done():
            last = running.result()
        elif listening.done():
            return
        else:
            await end(running)
            last = streams.channels.failed(f"nothing was said for {idle_s:g} s")
        remote.hear_no_more()
        await conversation.send(last)
        await conversation.goodbye(listening)
    finally:
        await end(running, listening)


async def _outcome(run: Run, ends: Streams) -> bytes:
    """The last message to the client."""
    try:
        return streams.channels.ended(await run(ends))
    except ConnectionError:
        raise
    except Exception as wrong:
        log.info("a command could not be run for a client: %s", wrong)
        return streams.channels.failed(str(wrong) or type(wrong).__name__)


class _Remote:
    """The client's ends of the streams, as a runtime sees them (`Streams`)."""

    def __init__(self, conversation: Conversation, want: Wanted) -> None:
        self._conversation = conversation
        self._want = want
        self.tty = want.tty
        self.stdin = self._read() if want.stdin else None
        self.resizes = self._resizes() if want.tty else None
        self._input: asyncio.Queue[bytes] = asyncio.Queue(_PIECES_MAX)  # an empty one is the end
        self._sizes: asyncio.Queue[tuple[int, int]] = asyncio.Queue(1)  # the last that was said
        self._is_over = False

    def greeting(self) -> bytes:
        """Nothing, on the first stream that the client reads: it knows that it is connected."""
        channels = streams.channels
        channel = channels.STDOUT if self._want.stdout else channels.STDERR
        return channels.message(channel if self._want.stdout or self._want.stderr else channels.ERROR, b"")

    async def write_out(self, data: bytes) -> None:
        if self._want.stdout:
            await self._conversation.send(streams.channels.message(streams.channels.STDOUT, data))

    async def write_err(self, data: bytes) -> None:
        if self._want.stderr:
            await self._conversation.send(streams.channels.message(streams.channels.STDERR, data))

    async def listen(self) -> None:
        """Until the client is gone, or does not make sense."""
        reading = streams.channels.Reading()
        try:
            async for piece in self._conversation.pieces():
                for said in reading.take(piece):
                    await self._hear(said)
        except (streams.websocket.Broken, ConnectionError) as left:
            log.debug("a client left: %s", left)

    def hear_no_more(self) -> None:
        """The command reads nothing any more: what still comes is let go of."""
        self._is_over = True
        while not self._input.empty():
            self._input.get_nowait()

    async def _hear(self, said: streams.channels.Said) -> None:
        match said:
            case streams.channels.Resized():
                if self._sizes.full():
                    self._sizes.get_nowait()
                self._sizes.put_nowait((said.columns, said.rows))
            case streams.channels.Input() if self._want.stdin and not self._is_over:
                await self._input.put(said.data)
            case streams.channels.InputEnded() if self._want.stdin and not self._is_over:
                await self._input.put(b"")

    async def _read(self) -> AsyncIterator[bytes]:
        while data := await self._input.get():
            yield data

    async def _resizes(self) -> AsyncIterator[tuple[int, int]]:
        while True:
            yield await self._sizes.get()
