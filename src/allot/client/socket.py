"""The transport over a unix socket, for components on the server's own machine.

    shared = Socket(data_dir / "api.sock")
    scheduler = Client(shared.transport(identities.SCHEDULER))

Whoever may open the socket holds the keys of the cluster anyway, and says for whom they act; each
request is then authorized as that user's. Everybody in a process shares one connection, so what
they ask in one turn of the event loop leaves in one write.

What it promises
    CSOCK1  A request is sent once. Only connecting is tried again.
    CSOCK2  A failure says what is known: Unavailable when nothing was sent, Timeout when the outcome is
            unknown.
    CSOCK3  At most `requests_max` requests at once; streams do not count once they run.
    CSOCK4  `close` ends everything that is open for that user; with the last user the connection ends.
"""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

from allot.api import Request, Response, User, errors
from allot.base import os_reason, unix_address

from .link import Link, LinkLost, LinkStream
from .reach import noted, outage

_STREAMING = ("watch", "follow")


@dataclass(frozen=True, slots=True)
class SocketLimits:
    requests_max: int = 512
    answer_s: float = 60.0
    stream_grace_s: float = 30.0  # over the timeoutSeconds that a watch asked for
    connect_waits_s: tuple[float, ...] = (0.05, 0.2)  # between attempts to connect


DEFAULT_LIMITS = SocketLimits()


class Socket:
    """The way to one server, shared by all who take it. Opened when it is first used."""

    def __init__(
        self, path: Path, limits: SocketLimits = DEFAULT_LIMITS, outage_level: int = logging.WARNING
    ) -> None:
        """`outage_level` is where it is logged that the server is away, or back."""
        self.path = path
        self.limits = limits
        self.places = asyncio.Semaphore(limits.requests_max)
        self.outage = outage(str(path), outage_level)
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._users: set[SocketTransport] = set()

    def transport(self, user: User) -> "SocketTransport":
        transport = SocketTransport(self, user)
        self._users.add(transport)
        return transport

    def passing(self, user: User) -> "SocketTransport":
        """For a few requests of somebody of whom there are thousands: nothing of it is kept, and it need not
        be closed. Use it while somebody else has a `transport`."""
        return SocketTransport(self, user)

    async def link(self) -> Link:
        """A connection that is open, as far as anybody knows."""
        if self._link is not None and self._link.is_open:
            return self._link
        async with self._connecting:
            if self._link is None or not self._link.is_open:
                self._link = await self._connect()
            return self._link

    def leave(self, transport: "SocketTransport") -> None:
        self._users.discard(transport)
        if self._link is None:
            return
        self._link.abandon(transport)
        if not self._users:
            self._link.close()
            self._link = None

    async def _connect(self) -> Link:
        for wait_s in (*self.limits.connect_waits_s, None):
            try:
                with unix_address(self.path) as address:
                    _, link = await asyncio.get_running_loop().create_unix_connection(
                        lambda: Link(self.limits.answer_s), address
                    )
                return link
            except OSError as failure:
                if wait_s is None:
                    why = os_reason(failure)
                    raise errors.Unavailable(f"cannot reach the server at {self.path}: {why}") from failure
                await asyncio.sleep(wait_s)
        raise AssertionError("the last attempt raises")


class SocketTransport:
    """Made by `Socket.transport`, for one user."""

    def __init__(self, shared: Socket, user: User) -> None:
        self._socket = shared
        self._user = user
        self._streams: set[LinkStream] = set()
        self._closed = False

    async def send(self, request: Request) -> Response:
        if self._closed:
            raise errors.Unavailable("the client is closed")
        async with self._socket.places:
            response = await noted(self._socket.outage, self._exchange(request))
            stream = response.stream
            if not isinstance(stream, LinkStream):
                return response
            if not any(request.asks_for(option) for option in _STREAMING):  # a long list, in pieces
                whole = await stream.whole()
                return Response(response.status, whole, response.content_type, response.headers)
        self._keep(stream, request.query.get("timeoutSeconds", ""))
        return response

    async def close(self) -> None:
        self._closed = True
        for stream in list(self._streams):
            await stream.aclose()
        self._socket.leave(self)
        await asyncio.sleep(0)  # lets the event loop tell those who wait

    async def _exchange(self, request: Request) -> Response:
        link = await self._socket.link()
        if self._closed:
            raise errors.Unavailable("the client is closed")
        try:
            return await link.exchange(self._user, request, self)
        except LinkLost as lost:
            text = f"{self._socket.path}: {request.method} {request.path}: {lost}"
            raise errors.Timeout(text) from lost

    def _keep(self, stream: LinkStream, asked_s: str) -> None:
        if stream.ended:
            return
        self._streams.add(stream)
        stream.on_end = self._streams.discard
        if asked_s.isdigit():
            stream.end_after(int(asked_s) + self._socket.limits.stream_grace_s)
