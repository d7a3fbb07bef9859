"""HTTPS in front of `handle`: TLS, who is calling, bounded bodies, streamed answers.

A connection is a `Connection`, which uvicorn's HTTP carries; they come in through `accepting`. Here
are the requests on them: the ASGI application, and the listener that puts all of it together.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qsl

import uvicorn

from allot.api import Request, Response, User, errors, repeated

from ..fairness.shares import Room, Shares
from ..fairness.traffic import Traffic
from ..requests.aside import SMALL_BYTES
from ..security import Certified
from ..server import error_response
from .accepting import Accepting
from .connection import Connection, Connections, Peer
from .sending import Receive, Scope, Send, send_stream, send_whole
from .upgrading import send_upgraded

_KEEP_ALIVE_S = 300
_LINGER_S = 0.5
LOOK_AGAIN_S = 5.0
"""How often those who read streams are asked again who they are."""

BODY_BYTES_MAX = 3 * 1024 * 1024
QUERY_FIELDS_MAX = 1000
"""Each word of a command that is to be run in a container is one."""

Authenticate = Callable[[Request, Peer], User]
"""Who is calling, by certificate or by token; raises Unauthorized."""

Handle = Callable[[Request, User], Awaitable[Response]]


class Application:
    """The ASGI application."""

    def __init__(self, handle: Handle, authenticate: Authenticate, shares: Shares) -> None:
        self._handle = handle
        self._authenticate = authenticate
        self._shares = shares
        self._streams: dict[asyncio.Task[Any], tuple[Request, Peer]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response, request = await self._respond(scope, receive)
        if response.stream is None and response.talk is None:
            await send_whole(response, send, scope)
        else:
            task = asyncio.current_task()
            assert task is not None and request is not None
            self._streams[task] = (request, scope["extensions"]["allot.peer"])
            try:
                if response.talk is None:
                    await send_stream(response, receive, send, scope)
                else:
                    await send_upgraded(response, send, scope)
            finally:
                del self._streams[task]

    async def show_out(self) -> None:
        """Until cancelled: end the streams of those who are no longer who they were, since their token
        has run out, say, or its account is gone."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            for number, (task, (request, peer)) in enumerate(list(self._streams.items())):
                try:
                    self._authenticate(request, peer)
                except errors.ApiError:
                    task.cancel()
                if number % 100 == 99:
                    await asyncio.sleep(0)

    async def _respond(self, scope: Scope, receive: Receive) -> tuple[Response, Request | None]:
        """The answer, and to what; None if it was not looked at."""
        try:
            method, headers = scope["method"], _request_headers(scope["headers"])
            peer: Peer = scope["extensions"]["allot.peer"]
            query, several = _query(scope["query_string"])
            request = Request(method, scope["path"], query, headers, source=peer.address, repeated=several)
            # Strangers are turned away before their body is read.
            user = self._authenticate(request, peer)
            peer.is_known()
            self._shares.enter(user.name)
        except errors.ApiError as error:
            return error_response(error), None
        room = Room(self._shares, user.name)
        try:
            if method not in ("GET", "HEAD"):
                body = await _read_body(receive, headers, room)
                request = Request(method, request.path, query, headers, body, peer.address, several)
            return await self._handle(request, user), request
        except errors.ApiError as error:
            return error_response(error), None
        finally:
            room.close()
            self._shares.leave(user.name)


def _request_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The last value wins, except where every one of several counts: those become lines."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        repeated = key in headers and key.startswith("impersonate-")
        headers[key] = f"{headers[key]}\n{text}" if repeated else text
    return headers


def _query(raw: bytes) -> tuple[Mapping[str, str], Mapping[str, Sequence[str]]]:
    """With the last value of each option, and all of those that are there several times."""
    if not raw:
        return {}, {}
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise errors.BadRequest("the query of the request cannot be read") from None
    query = dict(pairs)
    return query, repeated(pairs, query)


async def _read_body(receive: Receive, headers: dict[str, str], room: Room) -> bytes:
    declared = headers.get("content-length", "")
    if declared.isdigit():
        if len(declared) > 19 or int(declared) > BODY_BYTES_MAX:
            raise _too_large()
        await room.make(int(declared))
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
        if size > SMALL_BYTES:
            await room.make(BODY_BYTES_MAX)  # how long a body in chunks will be is not known
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large() -> errors.TooLarge:
    return errors.TooLarge(f"Request entity too large: limit is {BODY_BYTES_MAX}")


class Listener:
    """Serves an application on a socket until closed."""

    def __init__(self, application: Application, context: ssl.SSLContext, traffic: Traffic) -> None:
        config = uvicorn.Config(
            cast(Any, application),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # who is calling is not for a header to say
            timeout_keep_alive=_KEEP_ALIVE_S,
        )
        config.load()
        self.connections = Connections(config, traffic)
        self._application = application
        self._accepting = Accepting(self.connections, context)
        self._showing_out: asyncio.Task[None] | None = None
        self.port = 0

    async def open(self, host: str, port: int) -> None:
        """Raises OSError when it cannot listen there."""
        self.port = await self._accepting.open(host, port)
        self._showing_out = asyncio.create_task(self._application.show_out(), name="credentials")

    def end(self, revoked: Callable[[Certified], bool]) -> None:
        """Cut every connection, with its streams, whose certificate is revoked."""
        for connection in list(self.connections.state.connections):
            certified = cast(Connection, connection).peer.certified()
            if certified is not None and revoked(certified):
                cast(Connection, connection).abort()

    async def close(self) -> None:
        """Stop listening, end streams, and let what is being answered finish."""
        if self._showing_out is not None:
            self._showing_out.cancel()
        await self._accepting.close()
        state = self.connections.state
        for connection in list(state.connections):
            connection.shutdown()
        _, streams = await asyncio.wait(state.tasks, timeout=_LINGER_S) if state.tasks else ((), ())
        for task in streams:
            task.cancel()
        if streams:
            await asyncio.wait(streams, timeout=_LINGER_S)
        for connection in list(state.connections):
            cast(Connection, connection).abort()
