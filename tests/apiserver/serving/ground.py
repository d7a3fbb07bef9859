"""A listener in front of a handler that the test chooses."""

import asyncio
import ssl

from allot.api import Response, User
from allot.apiserver.fairness.traffic import Traffic
from allot.apiserver.security import Authority, open_serving, server_context
from allot.apiserver.serving.listener import Application, Listener
from allot.base import SystemClock


class Ground:
    def __init__(self, folder, handle, authenticate=lambda request, peer: User("somebody")):
        self._folder, self._handle, self._authenticate = folder, handle, authenticate

    async def __aenter__(self):
        now = SystemClock().now()
        authority = Authority.create(now)
        files = open_serving(self._folder, authority, ["localhost", "127.0.0.1"], now)
        self.traffic = Traffic()
        application = Application(self._handle, self._authenticate, self.traffic.shares)
        self.listener = Listener(application, server_context(files, authority.ca.certificate), self.traffic)
        await self.listener.open("127.0.0.1", 0)
        self._context = ssl.create_default_context(cadata=authority.ca.certificate.decode())
        return self

    async def __aexit__(self, *error):
        await self.listener.close()

    async def connect(self, **options):
        return await asyncio.open_connection(
            "127.0.0.1", self.listener.port, ssl=self._context, server_hostname="localhost", **options
        )

    async def connect_raw(self):
        """Without TLS."""
        return await asyncio.open_connection("127.0.0.1", self.listener.port)

    async def say(self, raw: bytes) -> bytes:
        reader, writer = await self.connect()
        writer.write(raw)
        await writer.drain()
        answer = await asyncio.wait_for(reader.read(65536), 20)
        writer.close()
        return answer


async def fine(request, user):
    return Response(200, b'{"path":"%b","size":%d}' % (request.path.encode(), len(request.body)))


async def until(condition, seconds=20.0):
    """Wait for something that a busy machine may take a while for."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not come to pass"
        await asyncio.sleep(0.01)
