"""The transport over HTTPS: connections kept alive, credentials kept fresh.

What it promises
    HTTPS1  A request is sent twice only if the first sending cannot have had an effect: no
            connection came about; or it only reads, and the server closed a kept connection
            before it answered a byte; or it was refused for its credentials (401) and there
            are newer ones.
    HTTPS2  A failure says what is known: Unavailable when nothing was sent, Timeout when
            the outcome is unknown.
    HTTPS3  At most `connections_max` requests at once; streams have connections of their
            own and do not count.
    HTTPS4  `close` ends everything that is open.
"""

import asyncio
import contextlib
import socket
import ssl
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from allot.api import Request, Response, errors
from allot.base import Clock, SystemClock, os_reason

from .access import Access, BadAccess, Credential, tls_context
from .connection import BrokenConnection, Connection, Stream
from .reach import noted, outage

_SAFE = ("GET", "HEAD", "OPTIONS")
_STREAMING = ("watch", "follow")
_YES = ("true", "1")


@dataclass(frozen=True, slots=True)
class Limits:
    connections_max: int = 64
    connect_s: float = 10.0
    answer_s: float = 60.0
    stream_grace_s: float = 30.0  # over the timeoutSeconds that a watch asked for
    idle_s: float = 20.0  # shorter than servers keep connections, so that they rarely close under us
    connect_waits_s: tuple[float, ...] = (0.05, 0.2)  # between attempts to connect


DEFAULT_LIMITS = Limits()


class HttpsTransport:
    def __init__(
        self, access: Access, *, limits: Limits = DEFAULT_LIMITS, clock: Clock | None = None
    ) -> None:
        self._server = access.server
        self._credentials = access.credentials
        self._limits = limits
        self._clock = clock or SystemClock()
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._places = asyncio.Semaphore(limits.connections_max)
        self._tls: tuple[Credential, ssl.SSLContext] | None = None
        self._closed = False
        self._outage = outage(str(access.server))

    async def send(self, request: Request) -> Response:
        try:
            response = await self._send_noted(request, await self._credentials.current())
            if response.status == 401 and await self._credentials.refused():
                response = await self._send_noted(request, await self._credentials.current())
        except BadAccess as wrong:
            raise errors.Unauthorized(str(wrong)) from wrong
        return response

    async def close(self) -> None:
        self._closed = True
        for connection in list(self._open):
            connection.close()
        self._idle.clear()
        await asyncio.sleep(0)  # lets the event loop tell the connections

    # -- one request ----------------------------------------------------------------------------

    async def _send_noted(self, request: Request, credential: Credential) -> Response:
        if self._closed:
            raise errors.Unavailable("the client is closed")
        return await noted(self._outage, self._send_as(request, credential))

    async def _send_as(self, request: Request, credential: Credential) -> Response:
        encoded = _encoded(request, self._server.authority, self._server.base_path, credential)
        if any(request.query.get(name) in _YES for name in _STREAMING):
            return await self._stream(request, encoded, credential)
        async with self._places:
            return await self._exchange(request, encoded, credential, wants_stream=False)

    async def _exchange(
        self, request: Request, encoded: bytes, credential: Credential, wants_stream: bool
    ) -> Response:
        """Try kept connections while they turn out to be stale, then a fresh one."""
        while True:
            connection, fresh = await self._connection(credential)
            try:
                async with asyncio.timeout(self._limits.answer_s):
                    response = await connection.exchange(encoded, wants_stream)
            except BrokenConnection as broken:
                stale = not fresh and not connection.answered
                if stale and (not connection.sent or request.method in _SAFE):
                    continue
                raise errors.Timeout(f"{self._server}: {request.method} {request.path}: {broken}") from broken
            except TimeoutError as late:
                text = f"{self._server}: {request.method} {request.path}: no answer in time"
                raise errors.Timeout(text) from late
            if response.stream is None:
                self._keep(connection)
            return response

    async def _stream(self, request: Request, encoded: bytes, credential: Credential) -> Response:
        response = await self._exchange(request, encoded, credential, wants_stream=True)
        asked_s = request.query.get("timeoutSeconds", "")
        if isinstance(response.stream, Stream) and asked_s.isdigit():
            response.stream.end_after(int(asked_s) + self._limits.stream_grace_s)
        return response

    # -- connections ----------------------------------------------------------------------------

    async def _connection(self, credential: Credential) -> tuple[Connection, bool]:
        """A connection, and whether it is a fresh one."""
        context = self._context(credential)
        now_s = self._clock.monotonic_s()
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and now_s - connection.idle_since_s < self._idle_s(connection):
                return connection, False
            connection.close()
            self._open.discard(connection)
        return await self._connect(context), True

    def _context(self, credential: Credential) -> ssl.SSLContext | None:
        """Connections belong to a certificate: another one means other connections."""
        if not self._server.tls:
            return None
        shown = Credential(certificate=credential.certificate, key=credential.key)
        if self._tls is None or self._tls[0] != shown:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
            self._tls = (shown, tls_context(self._server, shown))
        return self._tls[1]

    def _idle_s(self, connection: Connection) -> float:
        told_s = connection.idle_s_max
        return self._limits.idle_s if told_s is None else min(self._limits.idle_s, told_s - 1)

    async def _connect(self, context: ssl.SSLContext | None) -> Connection:
        for wait_s in (*self._limits.connect_waits_s, None):
            try:
                return await self._connect_once(context)
            except ssl.SSLCertVerificationError as untrusted:
                raise errors.Unavailable(f"{self._server}: {untrusted}") from untrusted
            except (OSError, TimeoutError) as failure:
                if wait_s is None or self._closed:
                    why = "no connection in time" if isinstance(failure, TimeoutError) else os_reason(failure)
                    raise errors.Unavailable(f"cannot reach the server at {self._server}: {why}") from failure
                await asyncio.sleep(wait_s)
        raise AssertionError("the last attempt raises")

    async def _connect_once(self, context: ssl.SSLContext | None) -> Connection:
        server = self._server
        name = (server.server_name or server.host) if context else None
        async with asyncio.timeout(self._limits.connect_s):
            transport, connection = await asyncio.get_running_loop().create_connection(
                Connection, server.host, server.port, ssl=context, server_hostname=name
            )
        _keep_alive(transport.get_extra_info("socket"))
        connection.on_lost = self._open.discard
        self._open.add(connection)
        return connection

    def _keep(self, connection: Connection) -> None:
        if connection.reusable and not self._closed:
            connection.idle_since_s = self._clock.monotonic_s()
            self._idle.append(connection)
        else:
            connection.close()


def _encoded(request: Request, authority: str, base_path: str, credential: Credential) -> bytes:
    path = quote(base_path + request.path, safe="/:@!$&'()*+,;=-._~")
    target = f"{path}?{urlencode(request.query)}" if request.query else path
    lines = [f"{request.method} {target} HTTP/1.1", f"host: {authority}"]
    lines += [f"{name}: {value}" for name, value in (*request.headers.items(), *credential.headers)]
    if request.body or request.method not in _SAFE:
        lines.append(f"content-length: {len(request.body)}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        raise errors.BadRequest("a header may not contain a line break")
    return head.encode("latin-1") + b"\r\n\r\n" + request.body


def _keep_alive(sock: socket.socket | None) -> None:
    """Notice within two minutes that the other machine is gone."""
    if sock is None:
        return
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
