"""A unix socket in front of `handle`, for components on the same machine.

The socket lies in the data directory, beside the keys, and opens for nobody but its owner. So a
caller is not asked to prove who they are: whoever gets here could make any credential from the keys
(`allot credentials`), and may name anybody. Each request is authorized as that user's, as ever.

Frames, and what both sides promise about them, are in `allot.api.frames`. What is promised here:

    SOCK1  Only processes of the server's own user get an answer.
    SOCK2  What cannot be read ends its connection, and no other.
    SOCK3  What waits in memory is bounded: requests, streams, connections, what a stream is ahead of its
           reader, and answers that nobody reads (`unread`). A reader that takes nothing loses its stream;
           a process that takes nothing loses its connection.
    SOCK4  A write that has begun is carried out, whether or not somebody still waits for the answer; when
           the server closes, as far as it comes in a moment.
"""

import asyncio
import logging
import os
import socket
import stat
import struct
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from allot.api import SOCKET, Request, Response, User, errors, frames
from allot.base import unix_address

from ..fairness.shares import Room
from ..fairness.traffic import Traffic
from ..security import identities
from ..server import error_response
from .listener import Handle

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 256
REQUESTS_MAX = 800
"""More at once, on all connections together, are told to come back."""
STREAMS_MAX = 1000
USERS_MAX = 10_000
PIECE_BYTES = 1024 * 1024
_LARGE_BYTES = 64 * 1024
"""Answers that are not gathered with others, but written at once: so it shows whether they are read."""
_UNREAD_S = 60.0
"""How long a stream waits for a reader that takes nothing of it, while others on its connection read."""
_LINGER_S = 0.5
_READS = ("GET", "HEAD")
_PEER = struct.Struct("3i")  # process, user, group

_BUSY = error_response(errors.TooManyRequests("Too many requests, please try again later.", retry_after_s=1))


class SocketListener:
    """Serves a handler on a unix socket until closed."""

    def __init__(self, handle: Handle, traffic: Traffic) -> None:
        self.handle = handle
        self.traffic = traffic
        self.being_answered = 0  # streams do not count once they run
        self.connections: set[_Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()  # that answer, also for a connection that is gone
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._inode = 0

    async def open(self, path: Path) -> None:
        """Raises OSError when there cannot be a socket at `path`."""
        bound, self._inode = _bound(path)
        self._path = path
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Connection(self), sock=bound, backlog=128)

    async def close(self) -> None:
        """Stop listening, end streams, and let what is being answered finish."""
        if self._server is None:
            return
        self._server.close()
        self._remove()
        for connection in self.connections:
            connection.wind_up()
        _, late = await asyncio.wait(self.tasks, timeout=_LINGER_S) if self.tasks else ((), ())
        for task in late:  # what it needs will be gone; whoever asked hears of no answer
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_LINGER_S)
        for connection in list(self.connections):
            connection.finish()
        gone = [connection.gone for connection in self.connections]  # what was written last is on its way
        if gone:
            await asyncio.wait(gone, timeout=_LINGER_S)
        for connection in list(self.connections):
            connection.abort()
        await self._server.wait_closed()

    def _remove(self) -> None:
        """The socket's file, unless another server has put its own there meanwhile."""
        try:
            if self._path is not None and self._path.stat().st_ino == self._inode:
                self._path.unlink()
        except FileNotFoundError:
            pass


def _bound(path: Path) -> tuple[socket.socket, int]:
    """A socket at `path` that nobody else may open, and its inode. What an earlier server left gives way."""
    if path.exists():
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(f"{path} is in the way: a socket is wanted there")
        path.unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with unix_address(path) as address:
            bound.bind(address)
        path.chmod(0o600)  # nobody can have connected: it does not listen yet
    except BaseException:
        bound.close()
        raise
    return bound, path.stat().st_ino


class _Connection(asyncio.Protocol):
    def __init__(self, listener: SocketListener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._inbox = frames.Inbox(frames.REQUEST_BYTES_MAX)
        self._outbox = frames.Outbox(self._write, self._loop.call_soon, frames.ANSWER_BYTES_MAX)
        self._turns = frames.Turns(self._take, self._broken, self._loop.call_soon)
        self._source = SOCKET
        self._users: dict[int, User] = {}
        self._answering: dict[int, tuple[asyncio.Task[None], bool]] = {}  # and whether it only reads
        self._streams: dict[int, _Window] = {}
        self._flows = asyncio.Event()  # unless their buffers are full
        self._flows.set()
        self._held = 0  # bytes of answers that wait until it does

    # -- what the event loop calls --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        process, user = _peer(self._transport)
        if len(self._listener.connections) >= CONNECTIONS_MAX or user != os.getuid():  # SOCK1
            self._transport.abort()
            return
        self._source = f"{SOCKET}, process {process}"
        self._listener.connections.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._turns.add(self._inbox.feed(data))
        except frames.Broken as broken:
            self._broken(broken)

    def pause_writing(self) -> None:
        """Their buffers are full: until they read, nothing more is taken from them."""
        self._flows.clear()
        if self._transport is not None:
            waiting = self._transport.get_write_buffer_size() + self._held
            self._listener.traffic.unread.full(self, waiting, lambda: self._loop.call_soon(self.abort))
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._listener.traffic.unread.flows(self)
        self._flows.set()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        for window in self._streams.values():
            window.wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.connections.discard(self)
        self._turns.stop()
        self.gone.set_result(None)
        self._listener.traffic.unread.flows(self)
        self._flows.set()
        for number in self._answering:
            self._unwanted(number)

    # -- what the listener calls ----------------------------------------------------------------

    def wind_up(self) -> None:
        """Take no more, end streams; what is left is being answered."""
        self._turns.stop()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        for number in self._streams:
            self._answering[number][0].cancel()

    def finish(self) -> None:
        self._outbox.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # -- frames ---------------------------------------------------------------------------------

    def _broken(self, why: Exception) -> None:
        log.warning("a connection to the socket is ended: %s", why)
        self.abort()

    def _take(self, frame: frames.Frame) -> None:
        match frame.kind:
            case frames.ASK:
                self._asked(frame.number, frames.read_ask(frame.payload), len(frame.payload))
            case frames.TAKEN:
                window = self._streams.get(frame.number)
                if window is not None:
                    window.open(frame.bytes_taken())
            case frames.LEAVE:
                self._unwanted(frame.number)
            case frames.MEET:
                self._meet(frame.number, frames.read_meet(frame.payload))
            case other:
                raise frames.Broken(f"a frame of kind {other}")

    def _meet(self, number: int, who: frames.Meet) -> None:
        if not who.name:
            raise frames.Broken("a user without a name")
        if number not in self._users and len(self._users) >= USERS_MAX:
            raise frames.Broken("too many users")
        groups = who.groups
        if identities.AUTHENTICATED not in groups:
            groups = (*groups, identities.AUTHENTICATED)
        self._users[number] = User(who.name, groups, who.uid, who.extra)

    def _asked(self, number: int, ask: frames.Ask, size: int) -> None:
        user = self._users.get(ask.user)
        if user is None:
            raise frames.Broken("a request for a user who was not named")
        if number in self._answering:
            raise frames.Broken("two requests with one number")
        room = Room(self._listener.traffic.shares, user.name)
        refusal = self._refusal(ask, size, room)
        if refusal is not None:
            self._answer(number, refusal)
            return
        request = Request(ask.method, ask.path, ask.query, ask.headers, ask.body, self._source)
        task = self._loop.create_task(self._respond(number, request, user, room))
        self._answering[number] = (task, ask.method in _READS)
        self._listener.tasks.add(task)
        task.add_done_callback(self._listener.tasks.discard)
        self._listener.being_answered += 1

    def _unwanted(self, number: int) -> None:
        """Nobody waits for this answer any more. Reading for it ends; writing does not (SOCK4)."""
        task, reads = self._answering.get(number, (None, False))
        if task is not None and reads:
            self._loop.call_soon(task.cancel)  # soon: by then it has begun, and will tidy up

    def _refusal(self, ask: frames.Ask, size: int, room: Room) -> Response | None:
        """What is said no to before it is looked at."""
        if self._listener.being_answered >= REQUESTS_MAX or len(self._streams) >= STREAMS_MAX:
            return _BUSY
        body = len(ask.body)
        if body > frames.BODY_BYTES_MAX:
            return error_response(
                errors.TooLarge(f"Request entity too large: limit is {frames.BODY_BYTES_MAX}")
            )
        if size - body > frames.HEAD_BYTES_MAX:
            return error_response(errors.BadRequest("the head of the request is too large"))
        try:
            room.make_now(body)
        except errors.TooManyRequests as refused:
            return error_response(refused)
        return None

    # -- answers --------------------------------------------------------------------------------

    async def _respond(self, number: int, request: Request, user: User, room: Room) -> None:
        try:
            try:
                while not self._flows.is_set():
                    await self._flows.wait()  # what nobody reads need not be made
                response = await self._listener.handle(request, user)
            finally:
                room.close()
                self._listener.being_answered -= 1
            if request.method == "HEAD":
                response = await _only_head(response)
            if response.stream is None and len(response.body) <= PIECE_BYTES:
                await self._answer_when_read(number, response)
            else:
                await self._stream(number, response)
        except asyncio.CancelledError:
            pass  # nobody waits for it
        except Exception as failed:
            log.error("a request failed: %s %s", request.method, request.path, exc_info=failed)
            self._answer(number, error_response(errors.Internal("an internal error occurred")))
        finally:
            self._answering.pop(number, None)

    def _answer(self, number: int, response: Response, *, streams: bool = False) -> None:
        body = b"" if streams else response.body
        head = frames.Answer(response.status, body, response.content_type, response.headers, streams)
        self._outbox.head(frames.ANSWER, number, head)

    async def _answer_when_read(self, number: int, response: Response) -> None:
        """A process that reads nothing gets no more of what it asked for before."""
        size = len(response.body)
        while not self._flows.is_set():
            self._held += size
            self._listener.traffic.unread.holds(self, size)
            try:
                await self._flows.wait()
            finally:
                self._held -= size
        self._answer(number, response)
        if size > _LARGE_BYTES:
            self._outbox.flush()

    async def _stream(self, number: int, response: Response) -> None:
        """Send pieces until the stream ends, nobody reads it any more, or it is cut off."""
        window = self._streams[number] = _Window()
        self._answer(number, response, streams=True)
        why = ""
        try:
            async with aclosing(_pieces(response)) as pieces:
                async for piece in pieces:
                    if window.left <= 0 or not self._flows.is_set():
                        async with asyncio.timeout(_UNREAD_S):
                            while window.left <= 0 or not self._flows.is_set():
                                await window.opened()
                    window.left -= len(piece)
                    self._outbox.raw(frames.PIECE, number, piece)
        except TimeoutError:
            why = "it was not read"
        except asyncio.CancelledError:
            why = "the server ended it"
        finally:
            del self._streams[number]
        self._outbox.raw(frames.END, number, why.encode())

    def _write(self, ready: bytearray) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(ready)


async def _only_head(response: Response) -> Response:
    if response.stream is not None:
        await cast(Any, response.stream).aclose()
    return Response(response.status, b"", response.content_type, response.headers)


async def _pieces(response: Response) -> AsyncGenerator[bytes | memoryview, None]:
    """The body of an answer, in pieces of a bounded size."""
    if response.stream is None:
        for piece in _cut(response.body):
            yield piece
        return
    async with aclosing(cast(Any, response.stream)) as stream:
        async for piece in stream:
            if len(piece) <= PIECE_BYTES:
                yield piece
            else:
                for part in _cut(piece):
                    yield part


def _cut(body: bytes) -> list[memoryview]:
    view = memoryview(body)
    return [view[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)]


class _Window:
    """How far a stream may run ahead of its reader."""

    __slots__ = ("_waiting", "left")

    def __init__(self) -> None:
        self.left = frames.WINDOW_BYTES
        self._waiting: asyncio.Future[None] | None = None

    def open(self, count: int) -> None:
        self.left += count
        self.wake()

    def wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def opened(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        await self._waiting


def _peer(transport: asyncio.Transport) -> tuple[int, int]:
    """The process at the other end, and its user."""
    peer = transport.get_extra_info("socket")
    process, user, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return process, user
