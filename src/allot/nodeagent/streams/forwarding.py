"""port-forward: the streams of a SPDY connection, each to a port of the pod.

A client opens two streams for each connection that it forwards: one for errors, which it reads, and one for
data. Where the port does not answer, the one says so and the other ends.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from allot.api import Duplex, streams

from .conversation import IDLE_S, Conversation, end

log = logging.getLogger(__name__)

STREAMS_MAX = 1000
_PIECES_MAX = 16
"""Of data that a port has not taken. Beyond it the whole connection waits: SPDY has no other way here."""
STUCK_S = 30.0
"""For so long. Then the port that takes nothing is given up, for the sake of the others."""
_READ_BYTES = 64 * 1024

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[int], Awaitable[Connection]]
"""To a port of the pod. Raises OSError, or what says why the runtime cannot."""


async def forward_ports(link: Duplex, pod: str, connect: Connect, idle_s: float = IDLE_S) -> None:
    """Until the client is gone. Connections that are open then are closed (INTO1)."""
    conversation = Conversation(link, idle_s)
    forwarding = _Forwarding(conversation, pod, connect)
    listening = asyncio.create_task(forwarding.listen())
    try:
        await conversation.until_one_ends(listening)
        if not listening.done():
            await conversation.goodbye(listening)
    finally:
        await end(listening, *forwarding.tasks)


class _Stream:
    """One that carries data."""

    def __init__(self, number: int, port: int, request: str) -> None:
        self.number = number
        self.port = port
        self.request = request  # what the stream for its errors has in common with it
        self.arrived: asyncio.Queue[bytes] = asyncio.Queue(_PIECES_MAX)  # an empty one is the end
        self.task: asyncio.Task[None] | None = None


class _Forwarding:
    def __init__(self, conversation: Conversation, pod: str, connect: Connect) -> None:
        self._conversation = conversation
        self._pod = pod
        self._connect = connect
        self._outbox = streams.spdy.Outbox()
        self._errors: dict[str, int] = {}  # by request
        self._data: dict[int, _Stream] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        """Until the client is gone, or does not make sense."""
        inbox = streams.spdy.Inbox()
        try:
            async for piece in self._conversation.pieces():
                for event in inbox.feed(piece.data):
                    await self._hear(event)
        except (streams.websocket.Broken, streams.spdy.Broken, ConnectionError) as left:
            log.debug("a client left: %s", left)

    async def _hear(self, event: streams.spdy.Event) -> None:
        match event:
            case streams.spdy.Opened():
                await self._opened(event)
            case streams.spdy.Data() if (stream := self._data.get(event.stream)) is not None:
                if event.data:
                    await self._add(stream, event.data)
                if event.ends:
                    await self._add(stream, b"")
            case streams.spdy.Reset() if (stream := self._data.pop(event.stream, None)) is not None:
                if stream.task is not None:
                    stream.task.cancel()
                await self._end_errors(stream, "")
            case streams.spdy.Reset():
                self._errors = {of: one for of, one in self._errors.items() if one != event.stream}
            case streams.spdy.Pinged():
                await self._send(streams.spdy.ping(event.number))

    async def _add(self, stream: _Stream, piece: bytes) -> None:
        try:
            async with asyncio.timeout(STUCK_S):
                await stream.arrived.put(piece)
        except TimeoutError:
            self._data.pop(stream.number, None)
            if stream.task is not None:
                stream.task.cancel()
            why = f"port {stream.port} of pod {self._pod} has taken nothing for {STUCK_S:g} s"
            await self._end_errors(stream, f"error forwarding port {stream.port}: {why}")
            await self._send(streams.spdy.reset(stream.number, streams.spdy.REFUSED))

    async def _opened(self, event: streams.spdy.Opened) -> None:
        sort, request = event.headers.get("streamtype"), event.headers.get("requestid", "")
        port = event.headers.get("port", "")
        is_good = sort in ("data", "error") and port.isdigit() and 0 < int(port) < 1 << 16
        if not is_good or len(self._data) + len(self._errors) >= STREAMS_MAX:
            await self._send(streams.spdy.reset(event.stream, streams.spdy.REFUSED))
            return
        await self._send(self._outbox.reply(event.stream))
        if sort == "error":
            self._errors[request] = event.stream
            return
        stream = self._data[event.stream] = _Stream(event.stream, int(port), request)
        stream.task = asyncio.create_task(self._forward(stream))
        self.tasks.add(stream.task)
        stream.task.add_done_callback(self.tasks.discard)

    async def _forward(self, stream: _Stream) -> None:
        wrong = ""
        try:
            reader, writer = await self._connect(stream.port)
        except Exception as refused:
            wrong = f"error forwarding port {stream.port} to pod {self._pod}: {refused}"
        else:
            await self._carry(stream, reader, writer)
        # From here on what still comes for it is dropped.
        self._data.pop(stream.number, None)
        _let_go(stream.arrived)
        with suppress(ConnectionError):
            await self._end_errors(stream, wrong)
            await self._send(streams.spdy.data(stream.number, b"", ends=True))

    async def _end_errors(self, stream: _Stream, wrong: str) -> None:
        """The client waits for it, whether anything went wrong or not."""
        error = self._errors.pop(stream.request, None)
        if error is not None:
            await self._send(streams.spdy.data(error, wrong.encode(), ends=True))

    async def _carry(
        self, stream: _Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Until the port has said all. The client may have said all long before."""
        sending = asyncio.create_task(_into(writer, stream.arrived))
        try:
            while data := await reader.read(_READ_BYTES):
                await self._send(streams.spdy.data(stream.number, data))
        except OSError as broke:
            log.debug("a connection to port %d broke: %s", stream.port, broke)
        finally:
            writer.close()
            await end(sending)

    async def _send(self, data: bytes) -> None:
        await self._conversation.send(streams.websocket.frame(streams.websocket.BINARY, data))


async def _into(writer: asyncio.StreamWriter, arrived: "asyncio.Queue[bytes]") -> None:
    try:
        while data := await arrived.get():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        while await arrived.get():
            pass  # the port takes no more, and may still have something to say


def _let_go(arrived: "asyncio.Queue[bytes]") -> None:
    """Whoever waits to add to it goes on."""
    while not arrived.empty():
        arrived.get_nowait()
