"""The agent's own server: what the API server asks a node for, over TLS that both sides verify.

    GET /containerLogs/NAMESPACE/POD/CONTAINER    with the options of pods/log
    GET /exec/NAMESPACE/POD/CONTAINER             a WebSocket: a command in a container
    GET /attach/NAMESPACE/POD/CONTAINER           a WebSocket: the container's own streams
    GET /portForward/NAMESPACE/POD                a WebSocket: connections to ports of the pod
    GET /usage                                    what containers and machine use
    GET /healthz

Whoever calls shows a certificate of the cluster's authority whose name is the API server's; nobody else is
answered. The node shows its own credential, by which the API server knows which node it talks to.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

from allot.api import Request, Response, errors, repeated
from allot.client import Credential, load_certificate

log = logging.getLogger(__name__)

CALLERS = ("allot:apiserver-to-node", "kube-apiserver-kubelet-client")
_HEAD_BYTES_MAX = 64 * 1024
_HEAD_S = 30.0
_READ_BYTES = 64 * 1024
CONNECTIONS_MAX = 1024

Answer = Callable[[Request], Awaitable[Response]]


def context(own: Credential, authorities: bytes) -> ssl.SSLContext:
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(found, own)
    found.load_verify_locations(cadata=authorities.decode())
    found.verify_mode = ssl.CERT_REQUIRED
    return found


@asynccontextmanager
async def served(answer: Answer, host: str, port: int, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """While the block runs; yields the port. Raises OSError."""
    talking: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(talking) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        talking.add(task)
        try:
            await _talk(answer, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError) as left:
            log.debug("a caller left: %s", left)
        except asyncio.CancelledError:
            pass  # the agent ends; nobody else cancels this
        finally:
            talking.discard(task)
            writer.close()

    server = await asyncio.start_server(talk, host, port, ssl=tls, limit=_HEAD_BYTES_MAX)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)  # what they ran has ended too


async def _talk(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One question a connection: whoever asks for a log, or talks to a container, opens one for it."""
    async with asyncio.timeout(_HEAD_S):
        head = await reader.readuntil(b"\r\n\r\n")
    if _caller(writer) not in CALLERS:
        response = Response(HTTPStatus.FORBIDDEN, b"only the API server is answered\n", "text/plain")
    else:
        response = await _answered(answer, head)
    if response.talk is not None:
        await _upgraded(response, reader, writer)
        return
    lines = [
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        f"Content-Type: {response.content_type}",
        "Connection: close",
        f"Content-Length: {len(response.body)}" if response.stream is None else "Transfer-Encoding: chunked",
    ]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + response.body)
    if response.stream is not None:
        async for piece in _until_gone(response.stream, reader):
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _answered(answer: Answer, head: bytes) -> Response:
    request = _read(head)
    if request is None:
        return Response(HTTPStatus.BAD_REQUEST, b"not a request\n", "text/plain")
    try:
        return await answer(request)
    except errors.ApiError as refused:
        return Response(refused.code, f"{refused}\n".encode(), "text/plain")


def _read(head: bytes) -> Request | None:
    first, *lines = head.decode("latin-1").split("\r\n")
    try:
        method, target, _ = first.split(" ")
    except ValueError:
        return None
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    parts = urlsplit(target)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = dict(pairs)
    return Request(method, unquote(parts.path), query, headers, repeated=repeated(pairs, query))


async def _upgraded(response: Response, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    assert response.talk is not None
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in response.headers)]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    await response.talk(_Link(reader, writer))


class _Link:
    """The connection, for those who talk on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_READ_BYTES)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


async def _until_gone(stream: AsyncIterator[bytes], reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The stream, as long as somebody listens: one that has nothing to say would not notice."""
    gone = asyncio.ensure_future(reader.read())
    try:
        while True:
            step = asyncio.ensure_future(anext(stream, None))
            await asyncio.wait((step, gone), return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                step.cancel()
                await asyncio.wait((step,))
                return
            piece = step.result()
            if piece is None:
                return
            yield piece
    finally:
        gone.cancel()


def _caller(writer: asyncio.StreamWriter) -> str:
    certificate = writer.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for name, value in part if name == "commonName"]
    return names[0] if names else ""
