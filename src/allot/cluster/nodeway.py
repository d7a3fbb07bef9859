"""The API server's way to the agents on the nodes: HTTPS, certificates of our CA on both sides."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec.structs import replace

from allot.api import Request, Response
from allot.apiserver import identities
from allot.base import Clock
from allot.client import Access, Credential, Fixed, HttpsTransport, Server

if TYPE_CHECKING:
    from allot.apiserver import Authority, Forward, NodeAddress

APISERVER_TO_NODE = "allot:apiserver-to-node"
"""The name that an agent lets in: it belongs to no group and has no rights in the API."""

_LIFETIME = timedelta(days=30)
_RENEW_BEFORE = timedelta(days=7)


class NodeWay:
    def __init__(self, authority: "Authority", clock: Clock) -> None:
        self._authority = authority
        self._clock = clock
        self._credential: Credential | None = None
        self._renew_at: datetime | None = None

    async def forward(self, address: "NodeAddress", request: Request) -> Response:
        """Ask an agent. A stream keeps its connection until it has been read to its end."""
        # By the node's own name, wherever it is: an address says nothing about who answers there.
        name = identities.node_serving_name(address.node)
        authorities = self._authority.ca.certificate
        server = Server(address.host, address.port, server_name=name, authorities=authorities)
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

    def _current(self) -> Credential:
        now = self._clock.now()
        if self._credential is None or self._renew_at is None or now >= self._renew_at:
            pair = self._authority.client(APISERVER_TO_NODE, [], now, _LIFETIME)
            self._credential = Credential(certificate=pair.certificate, key=pair.key)
            self._renew_at = now + _LIFETIME - _RENEW_BEFORE
        return self._credential


async def _closing(stream: AsyncIterator[bytes], transport: HttpsTransport) -> AsyncIterator[bytes]:
    try:
        async for piece in stream:
            yield piece
    finally:
        await transport.close()


def way_to_nodes(authority: "Authority", clock: Clock) -> "Forward":
    return NodeWay(authority, clock).forward
