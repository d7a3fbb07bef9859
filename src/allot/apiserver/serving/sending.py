"""Answers on their way to the client: at once if they are small, else piece by piece as they are read."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from allot.api import Response

from ..fairness.unread import PIECE_BYTES
from .connection import Connection

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


async def send_whole(response: Response, send: Send, scope: Scope) -> None:
    try:
        if len(response.body) <= PIECE_BYTES:
            await _send_at_once(response, cast(Any, send).__self__)
            return
        headers = [*_headers(response), (b"content-length", str(len(response.body)).encode())]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if scope["method"] != "HEAD":
            await _send_pieces(response.body, send, scope)
        await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError:  # the server is closing, and nobody reads
        connection: Connection = scope["extensions"]["allot.connection"]
        connection.abort()


async def _send_at_once(response: Response, cycle: RequestResponseCycle) -> None:
    """What uvicorn would do in two steps and two records of TLS, in one: nearly all answers are small,
    and that is a tenth of what they cost."""
    if cycle.flow.write_paused and not cycle.disconnected:
        await cycle.flow.drain()
    if cycle.disconnected:
        return
    body = response.body
    said = [STATUS_LINE[response.status]]
    said += [b"%b: %b\r\n" % header for header in _headers(response)]
    said.append(b"content-length: %d\r\n" % len(body))
    said.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
    if cycle.scope["method"] != "HEAD":
        said.append(body)
    cycle.response_started = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(b"".join(said))
    cycle.response_complete = True
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()


async def _send_pieces(body: bytes, send: Send, scope: Scope) -> None:
    """Each waits until the client has read most of the one before."""
    if len(body) <= PIECE_BYTES:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        return
    connection: Connection = scope["extensions"]["allot.connection"]
    view, left = memoryview(body), len(body)
    connection.hold(left)
    try:
        for at in range(0, len(body), PIECE_BYTES):
            piece = bytes(view[at : at + PIECE_BYTES])
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            connection.let_go(len(piece))
            left -= len(piece)
    finally:
        connection.let_go(left)


async def send_stream(response: Response, receive: Receive, send: Send, scope: Scope) -> None:
    """Send pieces until the stream ends, the client leaves, or is cut off for not reading."""
    assert response.stream is not None
    cycle: RequestResponseCycle = cast(Any, send).__self__
    if scope["http_version"] == "1.0":  # knows no chunks: the end of the connection is the end of the answer
        cycle.chunked_encoding, cycle.expected_content_length = False, sys.maxsize
    await send({"type": "http.response.start", "status": response.status, "headers": _headers(response)})
    task = asyncio.current_task()
    assert task is not None
    leaving = asyncio.ensure_future(_until_gone(receive))
    stop = lambda _: task.cancel()  # noqa: E731
    leaving.add_done_callback(stop)
    try:
        async with aclosing(cast(Any, response.stream)) as pieces:
            async for piece in pieces:
                await _send_pieces(piece, send, scope)
        leaving.remove_done_callback(stop)
        cycle.expected_content_length = 0
        await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError:
        leaving.remove_done_callback(stop)
        connection: Connection = scope["extensions"]["allot.connection"]
        connection.abort()
        await asyncio.wait({leaving}, timeout=1)
    finally:
        leaving.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(response: Response) -> list[tuple[bytes, bytes]]:
    headers = [(b"content-type", response.content_type.encode())]
    for name, value in response.headers:
        headers.append((name.lower().encode(), _CONTROL.sub(b" ", value.encode("latin-1", "replace"))))
    return headers
