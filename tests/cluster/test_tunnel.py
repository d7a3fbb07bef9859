"""The tunnel between a client and a node's agent (TUNNEL2, TUNNEL3)."""

import asyncio
from contextlib import asynccontextmanager

from allot.cluster.tunnel import Tunnel


class Client:
    """Says what the test puts there; an empty piece is the end."""

    def __init__(self):
        self.says: asyncio.Queue[bytes] = asyncio.Queue()
        self.heard = b""

    async def read(self):
        return await self.says.get()

    async def write(self, data):
        self.heard += data


@asynccontextmanager
async def node(talk):
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def play(talk, story, idle_s=3600.0):
    async def whole():
        async with node(talk) as port:
            tunnel = Tunnel(*await asyncio.open_connection("127.0.0.1", port), idle_s)
            client = Client()
            await story(tunnel, client)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_when_the_client_leaves_the_node_has_heard_all_and_hears_of_the_end():
    heard = asyncio.Queue()

    async def listen(reader, writer):
        await heard.put(await reader.read())
        writer.close()

    async def story(tunnel, client):
        for piece in (b"one ", b"two", b""):
            client.says.put_nowait(piece)
        await tunnel.talk(client)
        assert await asyncio.wait_for(heard.get(), 20) == b"one two"

    play(listen, story)


def test_when_the_node_ends_the_client_has_heard_all():
    async def speak(reader, writer):
        writer.write(b"x" * 1_000_000)
        await writer.drain()
        writer.close()

    async def story(tunnel, client):
        await asyncio.wait_for(tunnel.talk(client), 20)
        assert client.heard == b"x" * 1_000_000

    play(speak, story)


def test_one_on_which_nothing_is_said_is_closed():
    gone = asyncio.Event()

    async def silent(reader, writer):
        await reader.read()
        gone.set()
        writer.close()

    async def story(tunnel, client):
        await asyncio.wait_for(tunnel.talk(client), 20)
        await asyncio.wait_for(gone.wait(), 20)

    play(silent, story, idle_s=0.3)


def test_one_on_which_something_is_said_now_and_then_stays():
    async def chatter(reader, writer):
        for _ in range(10):
            writer.write(b".")
            await asyncio.sleep(0.2)
        writer.close()

    async def story(tunnel, client):
        await asyncio.wait_for(tunnel.talk(client), 30)
        assert client.heard == b"." * 10

    play(chatter, story, idle_s=1.5)
