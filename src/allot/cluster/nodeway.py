"""The API server's way to the agents on the nodes: HTTPS, certificates of our CA on both sides."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from allot.api import Request, Response, errors, streams
from allot.apiserver import identities
from allot.base import Clock, os_reason
from allot.client import Access, Credential, Fixed, HttpsTransport, Server, tls_context

from .tunnel import READ_BYTES, Tunnel

if TYPE_CHECKING:
    from allot.apiserver import Authority, Forward, NodeAddress

APISERVER_TO_NODE = "allot:apiserver-to-node"
"""The name that an agent lets in: it belongs to no group and has no rights in the API."""

_LIFETIME = timedelta(days=30)
_RENEW_BEFORE = timedelta(days=7)
_AGREE_S = 20.0
_REFUSAL_BYTES_MAX = 16 * 1024
_AGREED = ("sec-websocket-accept", "sec-websocket-protocol")


class NodeWay:
    def __init__(self, authority: "Authority", clock: Clock) -> None:
        self._authority = authority
        self._clock = clock
        self._credential: Credential | None = None
        self._renew_at: datetime | None = None

    async def forward(self, address: "NodeAddress", request: Request) -> Response:
        """Ask an agent. A stream keeps its connection until it has been read to its end, and a request for a
        WebSocket until those who talk on it have ended."""
        # By the node's own name, wherever it is: an address says nothing about who answers there.
        name = identities.node_serving_name(address.node)
        authorities = self._authority.ca.certificate
        server = Server(address.host, address.port, server_name=name, authorities=authorities)
        if streams.websocket.is_asked_for(request.headers):
            return await self._upgraded(server, request)
        transport = HttpsTransport(Access(server, Fixed(self._current())))
        try:
            response = await transport.send(request)
        except BaseException:
            await transport.close()
            raise
        if response.stream is None:
            await transport.close()
            return response
        return replace(response, stream=_closing(response.stream, transport))

    async def _upgraded(self, server: Server, request: Request) -> Response:
        """With what follows, or the agent's refusal. Raises Unavailable."""
        try:
            async with asyncio.timeout(_AGREE_S):
                reader, writer = await asyncio.open_connection(
                    server.host,
                    server.port,
                    ssl=tls_context(server, self._current()),
                    server_hostname=server.server_name,
                    limit=READ_BYTES,
                )
                try:
                    return await _agreed(server, request, reader, writer)
                except BaseException:
                    writer.close()
                    raise
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as failure:
            why = os_reason(failure) if isinstance(failure, OSError) else str(failure)
            if isinstance(failure, TimeoutError):
                why = f"no answer within {_AGREE_S:g} s"
            elif isinstance(failure, ssl.SSLError):
                why = str(failure)
            raise errors.Unavailable(f"cannot reach the agent at {server}: {why}") from failure

    def _current(self) -> Credential:
        now = self._clock.now()
        if self._credential is None or self._renew_at is None or now >= self._renew_at:
            pair = self._authority.client(APISERVER_TO_NODE, [], now, _LIFETIME)
            self._credential = Credential(certificate=pair.certificate, key=pair.key)
            self._renew_at = now + _LIFETIME - _RENEW_BEFORE
        return self._credential


async def _agreed(
    server: Server, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Response:
    writer.write(_asked(request, server.authority))
    status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
    if status != 101:
        body = await reader.read(_REFUSAL_BYTES_MAX)
        writer.close()
        return Response(status, body, headers.get("content-type", "text/plain"))
    shown = tuple((name, headers[name]) for name in _AGREED if name in headers)
    return Response(
        101, headers=(*streams.websocket.upgrade_headers(), *shown), talk=Tunnel(reader, writer).talk
    )


def _asked(request: Request, authority: str) -> bytes:
    pairs = [*request.query.items(), *((name, one) for name, all in request.repeated.items() for one in all)]
    target = quote(request.path) + (f"?{urlencode(pairs)}" if pairs else "")
    lines = [f"{request.method} {target} HTTP/1.1", f"host: {authority}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _read_head(head: bytes) -> tuple[int, Mapping[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if version != "HTTP/1.1" or not rest[:3].isdigit():
        raise ValueError(f"it does not speak HTTP: {first[:40]!r}")
    pairs = (line.partition(":") for line in lines if line)
    return int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _closing(stream: AsyncIterator[bytes], transport: HttpsTransport) -> AsyncIterator[bytes]:
    try:
        async for piece in stream:
            yield piece
    finally:
        await transport.close()


def way_to_nodes(authority: "Authority", clock: Clock) -> "Forward":
    return NodeWay(authority, clock).forward
