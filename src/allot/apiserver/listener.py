"""HTTPS in front of `handle`: TLS, who is calling, bounded bodies, streamed answers.

uvicorn reads and writes HTTP; what it leaves out is added by a small protocol
subclass: the client's certificate reaches the application, and a stream whose
reader is gone for good can be cut without waiting for it.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from typing import Any, cast
from urllib.parse import parse_qsl

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from allot.api import Request, Response, User, errors

from .security import Certified, certified
from .server import error_response

_KEEP_ALIVE_S = 300
_HANDSHAKE_S = 10.0
_LINGER_S = 0.5
_ARRIVAL_S = 60.0
"""For a request to arrive once it, or the connection, has begun."""
_UNREAD_S = 60.0
"""How long a stream waits for a client that takes nothing."""

BODY_BYTES_MAX = 3 * 1024 * 1024
HEAD_BYTES_MAX = 128 * 1024
REQUESTS_MAX = 800
"""More at once are told to come back: what waits in memory is bounded."""

_BUSY = error_response(errors.TooManyRequests("Too many requests, please try again later.", retry_after_s=1))


class Peer:
    """The other end of a connection; whose certificate it showed is read once."""

    __slots__ = ("_certified", "_connection", "address")

    def __init__(self, connection: ssl.SSLObject | None, address: str = "") -> None:
        self._connection = connection
        self.address = address
        self._certified: Certified | None = None

    def certified(self) -> Certified | None:
        if self._connection is not None:
            self._certified = certified(self._connection.getpeercert())
            self._connection = None
        return self._certified


Authenticate = Callable[[Request, Peer], User]
"""Who is calling, by certificate or by token; raises Unauthorized."""

Handle = Callable[[Request, User], Awaitable[Response]]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class _Protocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arriving_since: float | None = self.loop.time()
        self._look_again = self.loop.call_later(_ARRIVAL_S, self._look)
        address = transport.get_extra_info("peername") or ("",)
        self._peer = Peer(transport.get_extra_info("ssl_object"), address[0])

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        self._arriving_since = self.loop.time()
        self.scope["extensions"] = {"allot.peer": self._peer, "allot.abort": self.transport.abort}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value))
        super().on_header(name, value)

    def on_message_complete(self) -> None:
        self._arriving_since = None
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._look_again.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Now and then, rather than by a timer for each request."""
        if self._arriving_since is not None and self.loop.time() - self._arriving_since >= _ARRIVAL_S:
            self.transport.abort()
        else:
            self._look_again = self.loop.call_later(_ARRIVAL_S / 2, self._look)

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES_MAX:
            self.transport.abort()


class Application:
    """The ASGI application."""

    def __init__(self, handle: Handle, authenticate: Authenticate) -> None:
        self._handle = handle
        self._authenticate = authenticate
        self._being_answered = 0  # streams do not count once they run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if self._being_answered >= REQUESTS_MAX:
            await _send_whole(_BUSY, send, scope["method"] == "HEAD")
            return
        self._being_answered += 1
        try:
            response = await self._respond(scope, receive)
        finally:
            self._being_answered -= 1
        if response.stream is None:
            await _send_whole(response, send, scope["method"] == "HEAD")
        else:
            await _send_stream(response, receive, send, scope)

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        try:
            method, headers = scope["method"], _request_headers(scope["headers"])
            peer: Peer = scope["extensions"]["allot.peer"]
            query = _query(scope["query_string"])
            request = Request(method, scope["path"], query, headers, source=peer.address)
            # Strangers are turned away before their body is read.
            user = self._authenticate(request, peer)
            if method not in ("GET", "HEAD"):
                body = await _read_body(receive, headers)
                request = Request(method, request.path, query, headers, body, peer.address)
        except errors.ApiError as error:
            return error_response(error)
        return await self._handle(request, user)


def _request_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The last value wins, except where every one of several counts: those become lines."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        repeated = key in headers and key.startswith("impersonate-")
        headers[key] = f"{headers[key]}\n{text}" if repeated else text
    return headers


def _query(raw: bytes) -> dict[str, str]:
    if not raw:
        return {}
    try:
        return dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=100))
    except ValueError:
        raise errors.BadRequest("the query of the request cannot be read") from None


async def _read_body(receive: Receive, headers: dict[str, str]) -> bytes:
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared) > BODY_BYTES_MAX:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise errors.BadRequest("the client left before its request was complete")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_BYTES_MAX:
            raise _too_large()
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large() -> errors.TooLarge:
    return errors.TooLarge(f"Request entity too large: limit is {BODY_BYTES_MAX}")


def _headers(response: Response) -> list[tuple[bytes, bytes]]:
    headers = [(b"content-type", response.content_type.encode())]
    headers += [
        (name.lower().encode(), value.encode("latin-1", "replace")) for name, value in response.headers
    ]
    return headers


async def _send_whole(response: Response, send: Send, only_head: bool) -> None:
    headers = [*_headers(response), (b"content-length", str(len(response.body)).encode())]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if only_head else response.body})


async def _send_stream(response: Response, receive: Receive, send: Send, scope: Scope) -> None:
    """Send pieces until the stream ends, the client leaves, or is cut off for not reading."""
    assert response.stream is not None
    await send({"type": "http.response.start", "status": response.status, "headers": _headers(response)})
    task = asyncio.current_task()
    assert task is not None
    leaving = asyncio.ensure_future(_until_gone(receive))
    stop = lambda _: task.cancel()  # noqa: E731
    leaving.add_done_callback(stop)
    try:
        async with aclosing(cast(Any, response.stream)) as pieces:
            async for piece in pieces:
                async with asyncio.timeout(_UNREAD_S):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        leaving.remove_done_callback(stop)
        await send({"type": "http.response.body", "body": b""})
    except (asyncio.CancelledError, TimeoutError):
        leaving.remove_done_callback(stop)
        with suppress(AttributeError):  # early 3.11: asyncio's TLS cannot abort what is closed
            scope["extensions"]["allot.abort"]()
        await asyncio.wait({leaving}, timeout=1)
    finally:
        leaving.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Listener:
    """Serves an application on a socket until closed."""

    def __init__(self, application: Application, context: ssl.SSLContext) -> None:
        self._application = application
        self._context = context
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def open(self, host: str, port: int) -> None:
        config = uvicorn.Config(
            cast(Any, self._application),
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # who is calling is not for a header to say
            timeout_keep_alive=_KEEP_ALIVE_S,
        )
        config.load()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Protocol(config, self._state, {}, loop),
            host,
            port,
            ssl=self._context,
            backlog=1024,
            ssl_handshake_timeout=_HANDSHAKE_S,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening, end streams, and let what is being answered finish."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        _, streams = (
            await asyncio.wait(self._state.tasks, timeout=_LINGER_S) if self._state.tasks else ((), ())
        )
        for task in streams:
            task.cancel()
        if streams:
            await asyncio.wait(streams, timeout=_LINGER_S)
        for connection in list(self._state.connections):
            connection.transport.abort()
        await self._server.wait_closed()
