"""The real API server in the test's own process."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from allot.api import User
from allot.apiserver import ApiServer, Options, identities
from allot.client import Client, InProcessTransport
from allot.store import MemoryStore, Store


class TestServer:
    """A server that is ready. Every client acts for a user, with that user's rights and no more."""

    __test__ = False  # not a test, whatever its name says to pytest

    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self._transports: list[InProcessTransport] = []

    def client(self, user: User = identities.ADMIN, warn: Callable[[str], object] | None = None) -> Client:
        """A client that acts as `user`; warnings of the server go to `warn`."""
        transport = InProcessTransport(self.api.handle, user)
        self._transports.append(transport)
        return Client(transport, warn=warn)

    async def close(self) -> None:
        for transport in self._transports:
            await transport.close()
        await self.api.close()


@asynccontextmanager
async def api_server(store: Store | None = None, options: Options | None = None) -> AsyncIterator[TestServer]:
    """A ready server on `store`, or on a memory store of its own."""
    own = store is None
    store = store if store is not None else MemoryStore()
    server = TestServer(ApiServer(store, options))
    await server.api.start()
    try:
        yield server
    finally:
        await server.close()
        if own:
            await store.close()
