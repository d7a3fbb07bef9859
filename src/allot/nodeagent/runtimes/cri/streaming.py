"""Exec, attach and port-forward: streams at the address that a runtime has answered with.

A connection is upgraded to SPDY and carries a stream for each of error, stdin, stdout, stderr and resize. The
servers also take WebSockets, but in a version of their protocol (v4) that cannot say that the input has come
to its end; over SPDY a stream is closed from one side, so `exec -i` works with pipes.

The error stream ends with how the command went, as a Status of the API. A forwarded port is a pair of
streams, error and data.
"""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from allot.api import streams as protocols

from ..contract import Streams

log = logging.getLogger(__name__)
spdy = protocols.spdy

_COMMANDS, _PORTS = "v4.channel.k8s.io", "portforward.k8s.io"
_CONNECT_S = 30.0
_PIECE = 64 * 1024


class StreamFailed(OSError):
    """The runtime could not do it. The message is the runtime's."""


_LISTENS_S = 0.3
"""From taking streams until containerd listens, where the container is silent and the machine busy."""


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._inbox, self._outbox = spdy.Inbox(), spdy.Outbox()
        self._taken: dict[int, asyncio.Event] = {}
        self.heard = asyncio.Event()  # something has come that is no reply

    def open(self, **headers: str) -> int:
        number = 2 * len(self._taken) + 1
        self._taken[number] = asyncio.Event()
        self._writer.write(self._outbox.open(number, headers))
        return number

    async def taken(self, stream: int) -> None:
        await self._taken[stream].wait()

    async def send(self, stream: int, content: bytes, *, ends: bool = False) -> None:
        await self.taken(stream)  # what comes before is dropped there
        self._writer.write(spdy.data(stream, content, ends=ends))
        await self._writer.drain()

    async def received(self) -> AsyncIterator[spdy.Data]:
        """Until the peer hangs up. Whoever is slow to take it slows the peer."""
        while received := await self._reader.read(_PIECE):
            for event in self._events(received):
                match event:
                    case spdy.Data():
                        self.heard.set()
                        yield event
                    case spdy.Replied(number, ends) if number in self._taken:
                        self._taken[number].set()
                        if ends:
                            yield spdy.Data(number, b"", True)
                    case spdy.Reset(number):
                        yield spdy.Data(number, b"", True)
                    case spdy.Pinged(number) if number % 2 == 0:  # one that the peer began
                        self._writer.write(spdy.ping(number))

    def _events(self, received: bytes) -> list[spdy.Event]:
        try:
            return self._inbox.feed(received)
        except spdy.Broken as broken:
            raise StreamFailed(f"the runtime broke off: {broken}") from None

    def close(self) -> None:
        self._writer.close()


async def command(url: str, streams: Streams) -> int:
    """Until it ends: its exit code. Raises StreamFailed, and OSError."""
    async with _connected(url, _COMMANDS) as connection:
        sides = _opened(connection, streams)
        sending = []
        if streams.stdin is not None:
            stdin = connection.open(streamtype="stdin")
            sending.append(_send_input(connection, stdin, streams.stdin))
        if sides.resize is not None:
            sending.append(_send_sizes(connection, sides.resize, streams))
        return _exit_code(await _read(connection, sides, streams, sending))


async def attachment(url: str, streams: Streams, input_url: Callable[[], Awaitable[str]]) -> None:
    """Until the container ends, or somebody leaves it. Raises StreamFailed, and OSError.

    Of one connection containerd passes the input on before it listens to what the container answers, and what
    is answered at once would be lost. So the input has a connection of its own, which is asked for when
    something was heard on the other one: then containerd listens. It takes streams before that and does not
    say when it does; so where the container is silent, a moment after they were taken."""
    async with _connected(url, _COMMANDS) as connection:
        sides = _opened(connection, streams)
        sending = []
        if streams.stdin is not None:
            sending.append(_type(connection, sides, streams, streams.stdin, input_url))
        if sides.resize is not None:
            sending.append(_send_sizes(connection, sides.resize, streams))
        _exit_code(await _read(connection, sides, streams, sending))


async def _type(
    heard: _Connection,
    sides: "_Sides",
    streams: Streams,
    stdin: AsyncIterator[bytes],
    url: Callable[[], Awaitable[str]],
) -> None:
    for one in sides.ending:
        await heard.taken(one)
    with suppress(TimeoutError):
        async with asyncio.timeout(_LISTENS_S):
            await heard.heard.wait()
    try:
        async with _connected(await url(), _COMMANDS) as connection:
            connection.open(streamtype="error")
            stream = connection.open(streamtype="stdin")
            if streams.tty:
                connection.open(streamtype="resize")
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(_send_input(connection, stream, stdin))
                async for _ in connection.received():
                    pass
                sending.cancel()
    except OSError as failed:
        log.warning("nothing can be typed to the container: %s", failed)


class _Sides(NamedTuple):
    """The streams of a command but for its input."""

    error: int
    stdout: int
    stderr: int | None  # None: it has a terminal
    resize: int | None

    @property
    def ending(self) -> set[int]:
        """Those that end with it."""
        return {one for one in self[:3] if one is not None}


def _opened(connection: _Connection, streams: Streams) -> _Sides:
    return _Sides(
        connection.open(streamtype="error"),
        connection.open(streamtype="stdout"),
        None if streams.tty else connection.open(streamtype="stderr"),
        connection.open(streamtype="resize") if streams.tty else None,
    )


async def _read(
    connection: _Connection, sides: _Sides, streams: Streams, sending: list[Coroutine[Any, Any, None]]
) -> bytes:
    """What it prints, until it ends; what the error stream says of that."""
    tasks = [asyncio.create_task(one) for one in sending]
    how, left = b"", sides.ending
    try:
        async for piece in connection.received():
            if piece.stream == sides.error:
                how += piece.data
            elif piece.data and piece.stream == sides.stdout:
                await streams.write_out(piece.data)
            elif piece.data and piece.stream == sides.stderr:
                await streams.write_err(piece.data)
            if piece.ends:
                left.discard(piece.stream)
            if not left:
                break
    finally:
        await _cancelled(*tasks)
    return how


async def _send_input(connection: _Connection, stream: int, stdin: AsyncIterator[bytes]) -> None:
    with suppress(OSError):  # whoever reads is told why, and ends this
        async for piece in stdin:
            for at in range(0, len(piece), _PIECE):
                await connection.send(stream, piece[at : at + _PIECE])
        await connection.send(stream, b"", ends=True)


async def _send_sizes(connection: _Connection, stream: int, streams: Streams) -> None:
    if streams.resizes is None:
        return
    with suppress(OSError):
        async for columns, rows in streams.resizes:
            size = json.dumps({"Width": columns, "Height": rows}) + "\n"
            await connection.send(stream, size.encode())


def _exit_code(how: bytes) -> int:
    """Raises StreamFailed: it was not even begun, or nobody knows how it went."""
    if not how:
        raise StreamFailed("the runtime hung up before the command ended")
    try:
        status = json.loads(how)
    except ValueError:
        raise StreamFailed(how.decode(errors="replace")) from None
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode" and str(cause.get("message", "")).isdecimal():
            return int(cause["message"])
    raise StreamFailed(str(status.get("message") or how.decode()))


async def loopback(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A port of a pod that has the machine's network. Raises OSError."""
    return await asyncio.open_connection("127.0.0.1", port)


async def forward(url: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a port inside a pod's network. Raises OSError.

    The two ends of a pair of sockets: one is the caller's, the other is pumped to and from the runtime.
    """
    ours, theirs = socket.socketpair()
    pumped = asyncio.create_task(_pump(url, port, ours), name=f"port {port}")
    _PUMPS.add(pumped)
    pumped.add_done_callback(_PUMPS.discard)
    return await asyncio.open_connection(sock=theirs)


_PUMPS: set["asyncio.Task[None]"] = set()
"""The loop holds tasks weakly. Each ends with its connection."""


async def _pump(url: str, port: int, end: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=end)
    try:
        async with _connected(url, _PORTS) as connection:
            about = {"port": str(port), "requestid": "0"}
            error = connection.open(streamtype="error", **about)
            data = connection.open(streamtype="data", **about)
            sending = [
                asyncio.create_task(connection.send(error, b"", ends=True)),
                asyncio.create_task(_send_input(connection, data, _pieces(reader))),
            ]
            try:
                async for piece in connection.received():
                    if piece.stream == error and piece.data:
                        raise StreamFailed(piece.data.decode(errors="replace"))
                    if piece.stream == data:
                        writer.write(piece.data)
                        await writer.drain()
                        if piece.ends:
                            break
            finally:
                await _cancelled(*sending)
    except OSError as failed:
        log.warning("port %d cannot be forwarded: %s", port, failed)
    finally:
        writer.close()


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(_PIECE):
        yield piece


@asynccontextmanager
async def _connected(url: str, protocol: str) -> AsyncIterator[_Connection]:
    parts = urlsplit(url)
    async with asyncio.timeout(_CONNECT_S):
        is_tls = parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
        reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=is_tls or None)
        try:
            headers = {
                "Host": parts.netloc,
                "Connection": "Upgrade",
                "Upgrade": "SPDY/3.1",
                "X-Stream-Protocol-Version": protocol,
                "Content-Length": "0",
            }
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            writer.write(_request(target, headers))
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 101 " not in head.split(b"\r\n", 1)[0]:
                said = (await reader.read(_PIECE) or head).decode(errors="replace").strip()
                raise StreamFailed(f"the runtime refused to stream: {said}")
        except asyncio.IncompleteReadError:
            writer.close()
            raise StreamFailed("the runtime hung up before it answered") from None
        except BaseException:
            writer.close()
            raise
    connection = _Connection(reader, writer)
    try:
        yield connection
    finally:
        connection.close()


def _request(target: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


async def _cancelled(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
