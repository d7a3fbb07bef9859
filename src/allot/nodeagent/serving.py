"""The agent's own server: what the API server asks a node for, over TLS that both sides verify.

    GET /containerLogs/NAMESPACE/POD/CONTAINER    with the options of pods/log
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

from allot.api import Request, Response, errors
from allot.client import Credential, load_certificate

log = logging.getLogger(__name__)

CALLERS = ("allot:apiserver-to-node", "kube-apiserver-kubelet-client")
_HEAD_BYTES_MAX = 64 * 1024
_HEAD_S = 30.0

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
        talking.add(task)
        try:
            await _talk(answer, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError) as left:
            log.debug("a caller left: %s", left)
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


async def _talk(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One question a connection: whoever asks for a log opens one for it."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_S)
    if _caller(writer) not in CALLERS:
        response = Response(HTTPStatus.FORBIDDEN, b"only the API server is answered\n", "text/plain")
    else:
        response = await _answered(answer, head)
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
    try:
        method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    except ValueError:
        return Response(HTTPStatus.BAD_REQUEST, b"not a request\n", "text/plain")
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    try:
        return await answer(Request(method, unquote(parts.path), query))
    except errors.ApiError as refused:
        return Response(refused.code, f"{refused}\n".encode(), "text/plain")


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
