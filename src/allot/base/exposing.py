"""A component's /metrics, its other pages and /healthz, on loopback and only when asked for.

What a component counts may tell about tenants, so it is not offered to the network;
whoever scrapes it from elsewhere puts a proxy that asks for credentials in front.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from .metrics import Metrics
from .osreason import os_reason
from .process import show_process

_HEAD_BYTES_MAX = 8192
_PATIENCE_S = 5.0


Page = Callable[[], Awaitable[str]]


class CannotListen(Exception):
    """The message says where, and why not."""


@asynccontextmanager
async def exposed(
    metrics: Metrics, port: int | None, pages: Mapping[str, Page] | None = None
) -> AsyncIterator[int]:
    """Serve while the block runs; 0 picks a free port, None serves nothing. Yields the port.

    `pages` are what the component shows beside its metrics, by path; they may come and go meanwhile."""
    if port is None:
        yield 0
        return
    show_process(metrics)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(
            OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            async with asyncio.timeout(_PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await _response(metrics, pages or {}, head))
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, "127.0.0.1", port, limit=_HEAD_BYTES_MAX)
    except OSError as refused:
        why = os_reason(refused)
        raise CannotListen(f"cannot listen on 127.0.0.1 port {port}: {why} (0 picks a free one)") from refused
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def _response(metrics: Metrics, pages: Mapping[str, Page], head: bytes) -> bytes:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    method, path = (words[0], words[1].partition(b"?")[0]) if len(words) == 3 else (b"", b"")
    if method != b"GET":
        return _message("405 Method Not Allowed", "only GET\n")
    if path == b"/metrics":
        return _message("200 OK", metrics.text())
    page = pages.get(path.decode(errors="replace"))
    if page is not None:
        return _message("200 OK", await page())
    return _message("200 OK", "ok\n") if path == b"/healthz" else _message("404 Not Found", "not found\n")


def _message(status: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode() + body
