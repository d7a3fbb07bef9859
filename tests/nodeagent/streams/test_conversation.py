"""The agent's end of a connection, with the client's end in the hands of the test."""

import asyncio
import json

from allot.api import streams
from allot.nodeagent.streams import Wanted, forward_ports, run_remotely
from allot.nodeagent.streams import forwarding as forwarding_module
from api.streams.test_spdy import Client as Spdy

websocket, channels, spdy = streams.websocket, streams.channels, streams.spdy
ALL = Wanted(stdin=True, stdout=True, stderr=True, tty=False)


class Client:
    """What it says is put into `says`; what it hears is read frame by frame."""

    def __init__(self):
        self.says: asyncio.Queue[bytes] = asyncio.Queue()
        self.heard: list[websocket.Event] = []
        self._inbox = websocket.Inbox(masked=False)

    async def read(self):
        return await self.says.get()

    async def write(self, data):
        self.heard += self._inbox.feed(data)

    def say(self, payload, opcode=websocket.BINARY):
        self.says.put_nowait(websocket.frame(opcode, payload, b"mask"))

    def leave(self):
        self.says.put_nowait(b"")

    def on(self, channel):
        pieces = (one.data for one in self.heard if isinstance(one, websocket.Piece))
        return b"".join(data[1:] for data in pieces if data[0] == channel)


def play(story):
    asyncio.run(asyncio.wait_for(story(), 60))


async def until(is_so):
    while not is_so():
        assert asyncio.current_task() is not None
        await asyncio.sleep(0.01)


def test_a_ping_is_answered_while_a_command_runs():
    async def story():
        client, go = Client(), asyncio.Event()

        async def run(ends):
            await go.wait()
            return 0

        talk = asyncio.create_task(run_remotely(client, ALL, run))
        client.say(b"are you there", websocket.PING)
        await until(lambda: websocket.Control(websocket.PONG, b"are you there") in client.heard)
        go.set()
        await until(lambda: client.heard[-1][0] == websocket.CLOSE)
        client.say(b"\x03\xe8", websocket.CLOSE)
        await talk
        assert json.loads(client.on(channels.ERROR))["status"] == "Success"

    play(story)


def test_four_silent_hours_end_a_command_and_pings_are_silence():
    """INTO3, in less time."""

    async def story():
        client, ended = Client(), []

        async def run(ends):
            try:
                await asyncio.sleep(1000)
            finally:
                ended.append(True)

        async def ping():
            while True:
                client.say(b"", websocket.PING)
                await asyncio.sleep(0.05)

        pinging = asyncio.create_task(ping())
        talk = asyncio.create_task(run_remotely(client, ALL, run, idle_s=0.5))
        await until(lambda: bool(ended))
        client.leave()
        await talk
        pinging.cancel()
        assert json.loads(client.on(channels.ERROR))["message"] == "nothing was said for 0.5 s"

    play(story)


def test_a_client_that_makes_no_sense_loses_its_command():
    async def story():
        client, ended = Client(), asyncio.Event()

        async def run(ends):
            try:
                await asyncio.sleep(1000)
            finally:
                ended.set()

        talk = asyncio.create_task(run_remotely(client, ALL, run))
        await asyncio.sleep(0)
        client.says.put_nowait(b"GET / HTTP/1.1\r\n\r\n")
        await talk
        assert ended.is_set()

    play(story)


def test_input_that_is_not_read_is_not_kept():
    """INTO2: some pieces wait, the rest stays with the client; and its end does not wait for the command."""

    async def story():
        client, go = Client(), asyncio.Event()

        async def run(ends):
            await go.wait()
            return 5

        talk = asyncio.create_task(run_remotely(client, ALL, run))
        for _ in range(50):
            client.say(b"\0" + b"x" * 1000)
        await asyncio.sleep(0.3)
        assert client.says.qsize() > 40
        go.set()
        await until(lambda: bool(client.on(channels.ERROR)))
        client.leave()
        await talk
        assert "exit status 5" in json.loads(client.on(channels.ERROR))["message"]

    play(story)


def test_streams_that_nobody_asked_for_are_not_sent():
    async def story():
        client = Client()

        async def run(ends):
            assert ends.stdin is None
            await ends.write_out(b"out")
            await ends.write_err(b"err")
            return 0

        want = Wanted(stdin=False, stdout=False, stderr=True, tty=False)
        talk = asyncio.create_task(run_remotely(client, want, run))
        await until(lambda: bool(client.on(channels.ERROR)))
        client.leave()
        await talk
        assert (client.on(channels.STDOUT), client.on(channels.STDERR)) == (b"", b"err")

    play(story)


def test_more_streams_than_there_may_be_are_refused(monkeypatch):
    monkeypatch.setattr(forwarding_module, "STREAMS_MAX", 2)

    async def story():
        client, peer = Client(), Spdy()

        async def connect(port):
            await asyncio.sleep(1000)

        talk = asyncio.create_task(forward_ports(client, "web", connect))
        for number in range(3):
            headers = {"streamtype": "data", "port": "80", "requestid": str(number)}
            client.say(peer.opens(2 * number + 1, headers))
        client.say(peer.opens(99, {"streamtype": "data", "port": "no"}))
        await until(lambda: len(client.heard) >= 4)
        kinds = [int.from_bytes(one.data[2:4], "big") for one in client.heard]
        assert kinds == [2, 2, 3, 3]  # two replies, two resets
        client.leave()
        await talk

    play(story)


def test_a_stream_that_the_client_resets_ends_its_errors_too():
    """kubectl waits for those, and would wait for ever."""

    async def story():
        client, peer = Client(), Spdy()

        async def connect(port):
            await asyncio.sleep(1000)

        talk = asyncio.create_task(forward_ports(client, "web", connect))
        for stream, sort in ((1, "error"), (3, "data")):
            client.say(peer.opens(stream, {"streamtype": sort, "port": "80", "requestid": "0"}))
        client.say(spdy.reset(3, spdy.REFUSED))
        client.say(spdy.ping(7))
        await until(lambda: len(client.heard) >= 4)
        assert client.heard[2].data == spdy.data(1, b"", ends=True)
        assert client.heard[3].data == spdy.ping(7)
        client.leave()
        await talk

    play(story)
