"""Connections that stop being HTTP, with real sockets and a handler of the test's choice."""

import asyncio

import pytest

from allot.api import Response, User, errors
from allot.apiserver.serving import listener, upgrading

from .ground import Ground, until

ASK = b"GET /up HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
PLAIN = b"GET /plain HTTP/1.1\r\nhost: x\r\n\r\n"


class Talks:
    """Answers with 101 and then does what the test says; notes how it ended."""

    def __init__(self, talk):
        self._talk = talk
        self.ended: list[str] = []

    async def handle(self, request, user):
        if request.path != "/up":
            return Response(200, b"plain")
        return Response(101, headers=(("Upgrade", "websocket"), ("Connection", "Upgrade")), talk=self._talked)

    async def _talked(self, link):
        try:
            await self._talk(link)
            self.ended.append("well")
        except BaseException as why:
            self.ended.append(type(why).__name__)
            raise


async def echo(link):
    while data := await link.read():
        await link.write(data)


def play(tmp_path, talk, story, **more):
    async def whole():
        talks = Talks(talk)
        async with Ground(tmp_path, talks.handle, **more) as ground:
            await story(ground, talks)

    asyncio.run(asyncio.wait_for(whole(), 120))


async def upgraded(ground, more=b"", **options):
    reader, writer = await ground.connect(**options)
    writer.write(ASK + more)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
    assert head.startswith(b"HTTP/1.1 101 ") and b"Upgrade: websocket\r\n" in head
    return reader, writer


def test_bytes_go_both_ways_as_they_are(tmp_path):
    async def story(ground, talks):
        reader, writer = await upgraded(ground)
        for data in (b"\0\xff" * 1000, PLAIN, b"x" * 1_000_000):
            writer.write(data)
            assert await asyncio.wait_for(reader.readexactly(len(data)), 20) == data
        writer.close()
        await until(lambda: talks.ended == ["well"])
        await until(lambda: not ground.listener.connections.state.connections)

    play(tmp_path, echo, story)


def test_what_a_client_says_too_early_is_not_lost(tmp_path):
    async def story(ground, talks):
        reader, writer = await upgraded(ground, more=b"early")
        writer.write(b" and late")
        assert await asyncio.wait_for(reader.readexactly(14), 20) == b"early and late"
        writer.close()

    play(tmp_path, echo, story)


def test_when_they_have_talked_the_client_has_read_all_and_the_connection_is_closed(tmp_path):
    async def farewell(link):
        await link.write(b"y" * 500_000)

    async def story(ground, talks):
        reader, writer = await upgraded(ground)
        assert await asyncio.wait_for(reader.read(-1), 20) == b"y" * 500_000
        writer.close()

    play(tmp_path, farewell, story)


def test_a_request_that_asks_for_more_and_gets_none_is_answered_and_so_is_the_next(tmp_path):
    async def story(ground, talks):
        reader, writer = await ground.connect()
        writer.write(PLAIN[:-2] + b"connection: Upgrade\r\nupgrade: h2c\r\n\r\n")
        assert b"plain" in await asyncio.wait_for(reader.readuntil(b"plain"), 20)
        writer.write(PLAIN)
        assert b"plain" in await asyncio.wait_for(reader.readuntil(b"plain"), 20)
        writer.close()

    play(tmp_path, echo, story)


def test_a_client_that_does_not_read_holds_up_only_who_talks_to_it(tmp_path):
    """UPGRADE1."""
    written = []

    async def pour(link):
        while True:
            await link.write(b"z" * 65536)
            written.append(65536)

    async def story(ground, talks):
        _, writer = await upgraded(ground, limit=1024)
        before = -1
        while before != len(written):
            before = len(written)
            await asyncio.sleep(0.5)
        assert sum(written) < 20 * 1024 * 1024
        other, leave = await ground.connect()
        leave.write(PLAIN)
        assert b"plain" in await asyncio.wait_for(other.readuntil(b"plain"), 20)
        leave.close()
        writer.transport.abort()
        await until(lambda: talks.ended == ["ConnectionResetError"])  # UPGRADE2

    play(tmp_path, pour, story)


def test_a_client_that_sends_more_than_is_taken_waits(tmp_path, monkeypatch):
    """UPGRADE1: what is kept of it is bounded."""
    kept = []
    go = asyncio.Event()

    async def sleepy(link):
        await go.wait()
        while data := await link.read():
            kept.append(len(data))

    async def story(ground, talks):
        _, writer = await upgraded(ground)
        size = 30 * 1024 * 1024
        sending = asyncio.create_task(send(writer, size))
        await asyncio.sleep(1)
        assert not sending.done()
        go.set()
        await asyncio.wait_for(sending, 60)
        writer.close()
        await until(lambda: bool(talks.ended))
        assert sum(kept) == size
        assert max(kept) <= upgrading.READ_BYTES_MAX + 1024 * 1024

    async def send(writer, size):
        for _ in range(size // 65536):
            writer.write(b"a" * 65536)
            await writer.drain()

    play(tmp_path, sleepy, story)


def test_the_end_of_the_server_ends_it_and_is_no_error(tmp_path, caplog):
    async def story(ground, talks):
        reader, writer = await upgraded(ground)
        await ground.listener.close()
        assert talks.ended == ["CancelledError"]
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()

    play(tmp_path, echo, story)
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


def test_who_is_no_longer_who_they_were_is_shown_out(tmp_path, monkeypatch):
    """As from watches: a token that has run out, an account that is gone."""
    monkeypatch.setattr(listener, "LOOK_AGAIN_S", 0.1)
    good = [True]

    def authenticate(request, peer):
        if not good[0]:
            raise errors.Unauthorized("Unauthorized")
        return User("somebody")

    async def story(ground, talks):
        reader, writer = await upgraded(ground)
        good[0] = False
        assert await asyncio.wait_for(reader.read(), 20) == b""
        await until(lambda: talks.ended == ["CancelledError"])
        writer.close()

    play(tmp_path, echo, story, authenticate=authenticate)


@pytest.mark.parametrize(
    "query, values",
    [(b"a=1", {"a": ["1"]}), (b"a=1&b=2&a=%26&a=", {"a": ["1", "&", ""], "b": ["2"]}), (b"", {"a": []})],
)
def test_every_value_of_an_option_is_there(tmp_path, query, values):
    found = {}

    async def handle(request, user):
        found.update({name: list(request.values(name)) for name in values})
        return Response(200, b"plain")

    async def whole():
        async with Ground(tmp_path, handle) as ground:
            await ground.say(b"GET /plain?" + query + b" HTTP/1.1\r\nhost: x\r\n\r\n")

    asyncio.run(asyncio.wait_for(whole(), 60))
    assert found == values
