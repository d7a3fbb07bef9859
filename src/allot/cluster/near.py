"""The API server of a cluster, as the parts of the cluster see it: in this process, or in one of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from allot.api import Transport, User
from allot.apiserver import ServingOptions
from allot.base import Metrics
from allot.client import InProcessTransport

if TYPE_CHECKING:
    from allot.apiserver import Serving


class Server(Protocol):
    url: str
    kubeconfig: Path
    authority: str
    """The certificate that vouches for the server, as PEM."""
    metrics: Metrics
    """Where the parts count: the server's /metrics shows it."""

    def transport(self, user: User) -> Transport:
        """For somebody who stays. To be closed."""
        ...

    def passing(self, user: User) -> Transport:
        """For a few requests of somebody of whom there are thousands. Need not be closed."""
        ...

    async def over(self) -> str:
        """Wait, mostly for ever, until it no longer serves or shall not any more. Why; empty if somebody
        asked for its end."""
        ...

    async def close(self) -> None: ...


class ServerInThisProcess:
    """No socket, no bytes; the same checks."""

    def __init__(self, serving: "Serving") -> None:
        self._serving = serving
        self.url = serving.url
        self.kubeconfig = serving.kubeconfig
        self.authority = serving.authority.ca.certificate.decode()
        self.metrics = serving.api.metrics

    @classmethod
    async def start(cls, options: ServingOptions) -> "ServerInThisProcess":
        from allot.apiserver import serve  # a cluster whose server is elsewhere needs none of that

        return cls(await serve(options))

    def transport(self, user: User) -> Transport:
        return InProcessTransport(self._serving.api.handle, user)

    def passing(self, user: User) -> Transport:
        return self.transport(user)

    async def over(self) -> str:
        return await self._serving.lost()

    async def close(self) -> None:
        await self._serving.close()
