"""Clients that send without end, or read nothing, or show no credentials: what they cost stays bounded."""

import asyncio
import gc
import socket
import weakref

import pytest

from allot.api import Response, User, errors
from allot.apiserver.fairness import shares, strangers, unread
from allot.apiserver.fairness.traffic import Traffic
from allot.apiserver.serving import arriving

from ..serving.ground import Ground, fine, until

GET = b"GET /probe HTTP/1.1\r\nHost: x\r\n\r\n"


def nobody(request, peer):
    raise errors.Unauthorized("Unauthorized")


async def sent_until_refused(ground, beginning, piece, most):
    """How many bytes a client without manners gets rid of, and what it is told."""
    reader, writer = await ground.connect()
    writer.write(beginning)
    sent = len(beginning)
    try:
        while sent < most and not reader.at_eof() and not reader._buffer:
            writer.write(piece)
            sent += len(piece)
            await asyncio.wait_for(writer.drain(), 20)
            await asyncio.sleep(0)
        told = await asyncio.wait_for(reader.read(65536), 20)
    except ConnectionError:
        told = b""
    writer.transport.abort()
    return sent, told


@pytest.mark.parametrize(
    "beginning, piece",
    [
        pytest.param(b"GET / HTTP/1.1\r\nA: ", b"x" * 65536, id="one header"),
        pytest.param(b"GET / HTTP/1.1\r\nA", b"x" * 65536, id="one name"),
        pytest.param(b"GET /", b"x" * 65536, id="one path"),
        pytest.param(b"GET / HTTP/1.1\r\n", b"A: b\r\n" * 8192, id="many headers"),
        pytest.param(b"", b"\r\n" * 32768, id="nothing at all"),
    ],
)
def test_a_head_that_never_ends_is_cut(tmp_path, beginning, piece):
    """The parser buffers a header until it ends, and tells nobody of it."""

    async def story():
        async with Ground(tmp_path, fine, nobody) as ground:
            sent, told = await sent_until_refused(ground, beginning, piece, 16 * 2**20)
            assert sent < 8 * 2**20  # the sockets between us take some before anybody reads
            assert told == b"" or told.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))

    asyncio.run(story())


CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "beginning, piece",
    [
        pytest.param(CHUNKED + b"1\r\nx\r\n0\r\nTrailer: ", b"y" * 65536, id="one trailer"),
        pytest.param(CHUNKED + b"1\r\nx\r\n0\r\n", b"Trailer: y\r\n" * 4096, id="many trailers"),
        pytest.param(CHUNKED + b"1;", b"y" * 65536, id="an extension of a chunk"),
        pytest.param(CHUNKED, b"1\r\nx\r\n" * 8192, id="chunks of a byte"),
    ],
)
def test_what_comes_with_a_body_is_bounded(tmp_path, beginning, piece):
    async def story():
        async with Ground(tmp_path, fine) as ground:
            sent, told = await sent_until_refused(ground, beginning, piece, 16 * 2**20)
            assert sent < 8 * 2**20
            assert not told.startswith(b"HTTP/1.1 200")

    asyncio.run(story())


def test_a_body_that_nobody_wants_is_not_read_to_its_end(tmp_path):
    """It was answered with 401 before the body had come."""

    async def story():
        async with Ground(tmp_path, fine, nobody) as ground:
            reader, writer = await ground.connect()
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
            assert (await asyncio.wait_for(reader.readuntil(b"\r\n"), 20)).startswith(b"HTTP/1.1 401")
            sent = 0
            with pytest.raises(ConnectionError):
                while sent < 64 * 2**20:
                    writer.write(b"x" * 65536)
                    sent += 65536
                    await asyncio.wait_for(writer.drain(), 20)
                    await asyncio.sleep(0)
            writer.transport.abort()

    asyncio.run(story())


def test_trailers_are_no_headers(tmp_path):
    """Else a trailer would act as somebody else, after everything had been checked."""
    seen = []

    async def note(request, user):
        seen.append((dict(request.headers), request.body))
        return Response(200, b"{}")

    async def story():
        async with Ground(tmp_path, note) as ground:
            raw = CHUNKED + b"2\r\nhi\r\n0\r\nImpersonate-User: admin\r\nX-Late: 1\r\n\r\n"
            assert (await ground.say(raw)).startswith(b"HTTP/1.1 200")
            reader, writer = await ground.connect()
            writer.write(CHUNKED)
            await writer.drain()
            await asyncio.sleep(0.1)  # the head is being looked at
            writer.write(b"2\r\nhi\r\n0\r\nImpersonate-User: admin\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(65536), 20)).startswith(b"HTTP/1.1 200")
            writer.write(GET)  # and the connection goes on
            assert (await asyncio.wait_for(reader.read(65536), 20)).startswith(b"HTTP/1.1 200")
            writer.close()

    asyncio.run(story())
    assert [body for _, body in seen] == [b"hi", b"hi", b""]
    assert not any("impersonate-user" in headers or "x-late" in headers for headers, _ in seen)


def test_requests_that_are_sent_ahead_are_bounded(tmp_path):
    """Each costs a hundred times its bytes while it waits for the ones before."""
    gate = asyncio.Event()

    async def slow(request, user):
        await gate.wait()
        return Response(200, b"{}")

    async def story():
        async with Ground(tmp_path, slow) as ground:
            reader, writer = await ground.connect()
            writer.write(GET * (2 * arriving.PIPELINED_MAX))
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(reader.readexactly(1), 20)
            writer.close()
            polite_reader, polite = await ground.connect()
            polite.write(GET * 3)
            gate.set()
            for _ in range(3):
                assert await asyncio.wait_for(polite_reader.readuntil(b"{}"), 20)
            polite.close()

    asyncio.run(story())


@pytest.mark.parametrize("stage", ["before the handshake", "before a request", "in a request"])
def test_strangers_keep_nobody_out(tmp_path, monkeypatch, stage):
    monkeypatch.setattr(strangers, "STRANGERS_MAX", 8)

    def who(request, peer):
        return User("somebody") if request.headers.get("authorization") else nobody(request, peer)

    async def story():
        async with Ground(tmp_path, fine, who) as ground:
            known_reader, known = await ground.connect()
            known.write(GET.replace(b"Host", b"Authorization: me\r\nHost"))
            assert (await asyncio.wait_for(known_reader.readuntil(b"}"), 20)).startswith(b"HTTP/1.1 200")
            held = []
            for _ in range(40):
                connect = ground.connect_raw if stage == "before the handshake" else ground.connect
                held.append(await connect())
                if stage == "in a request":
                    held[-1][1].write(b"GET / HTTP/1.1\r\nA: ")
                await asyncio.sleep(0)
            await until(lambda: ground.traffic.strangers.turned_away >= 32)
            assert len(ground.traffic.strangers) <= 8
            assert (await ground.say(GET)).startswith(b"HTTP/1.1 401")
            known.write(GET.replace(b"Host", b"Authorization: me\r\nHost"))
            assert (await asyncio.wait_for(known_reader.readuntil(b"}"), 20)).startswith(b"HTTP/1.1 200")
            for _, writer in [*held, (None, known)]:
                writer.transport.abort()

    asyncio.run(story())


async def not_reading(ground, receive_bytes=4096):
    """A connection whose client asks and takes nothing."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", ground.listener.port))
    reader, writer = await asyncio.open_connection(
        sock=raw, ssl=ground._context, server_hostname="localhost", limit=1024
    )
    writer.transport.pause_reading()
    writer.write(GET)
    return reader, writer


SIZE = 12 * 2**20


async def large(request, user):
    return Response(200, b"x" * SIZE)


def test_a_whole_answer_that_nobody_reads_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(unread, "UNREAD_S", 0.5)

    async def story():
        async with Ground(tmp_path, large) as ground:
            connections = ground.listener.connections
            _, writer = await not_reading(ground)
            await until(lambda: ground.traffic.unread.waiting_bytes)
            await until(lambda: ground.traffic.unread.cut == 1)
            await until(lambda: not connections.state.connections)
            assert ground.traffic.unread.waiting_bytes == 0
            writer.transport.abort()

    asyncio.run(story())


def test_answers_that_nobody_reads_are_bounded_in_all(tmp_path, monkeypatch):
    """Long before their time is up; and who reads, if slowly, reads all of it."""
    monkeypatch.setattr(unread, "WAITING_BYTES_MAX", 5 * SIZE)

    async def story():
        async with Ground(tmp_path, large) as ground:
            held = [(await not_reading(ground))[1] for _ in range(14)]
            await until(lambda: ground.traffic.unread.cut >= 4)
            await until(lambda: ground.traffic.unread.waiting_bytes <= 5 * SIZE)
            reader, writer = await ground.connect()
            writer.write(GET)
            await reader.readuntil(b"\r\n\r\n")
            assert len(await asyncio.wait_for(reader.readexactly(SIZE), 60)) == SIZE
            for one in [*held, writer]:
                one.transport.abort()

    asyncio.run(story())


class Posting:
    """A server that takes bodies and answers when it is let."""

    def __init__(self, tmp_path):
        self.gate = asyncio.Event()
        who = lambda request, peer: User(request.headers["authorization"])  # noqa: E731
        self.ground = Ground(tmp_path, self._slow, who)

    async def _slow(self, request, user):
        await self.gate.wait()
        return Response(200, b"%d" % len(request.body))

    async def post(self, user, size, *, chunked=False):
        reader, writer = await self.ground.connect()
        how = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % size
        writer.write(b"POST / HTTP/1.1\r\nAuthorization: %b\r\n%b\r\n\r\n" % (user, how))
        writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size) if chunked else b"x" * size)
        answer = await asyncio.wait_for(reader.read(65536), 30)
        writer.transport.abort()
        return answer.partition(b" ")[2][:3]


def test_bodies_are_read_when_there_is_room_for_them(tmp_path, monkeypatch):
    """For their user, and in all; declared or in chunks. Who is small does not wait."""
    monkeypatch.setattr(shares, "BODY_BYTES_PER_USER_MAX", 4_000_000)
    monkeypatch.setattr(shares, "BODY_BYTES_MAX", 9_000_000)

    async def story():
        posting = Posting(tmp_path)
        async with posting.ground:
            kept, post = posting.ground.traffic.shares, posting.post
            tasks = [asyncio.create_task(post(b"a", 2_000_000)) for _ in range(6)]
            await until(lambda: kept._bytes == 4_000_000 and sum(map(len, kept._lines.values())) == 4)
            tasks.append(asyncio.create_task(post(b"a", 1000)))
            tasks += [asyncio.create_task(post(user, 2_000_000, chunked=True)) for user in (b"b", b"c")]
            await until(lambda: kept.requests == 9 and kept._bytes >= 4_000_000 + 3 * 2**20)
            assert kept._bytes <= 9_000_000 and set(kept._lines) in ({"a", "b"}, {"a", "c"})
            posting.gate.set()
            assert await asyncio.gather(*tasks) == [b"200"] * 9
            assert kept._bytes == kept.requests == 0
            assert not kept._bytes_of and not kept._requests_of and not kept._lines

    asyncio.run(story())


def test_bodies_that_wait_for_room_are_told_to_come_back_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(shares, "BODY_BYTES_PER_USER_MAX", 1_000_000)
    monkeypatch.setattr(shares, "PATIENCE_S", 0.5)
    monkeypatch.setattr(shares, "WAITING_PER_USER_MAX", 2)

    async def story():
        posting = Posting(tmp_path)
        async with posting.ground:
            kept, post = posting.ground.traffic.shares, posting.post
            first = asyncio.create_task(post(b"a", 200_000))
            await until(lambda: kept._bytes)
            rest = [asyncio.create_task(post(b"a", 900_000)) for _ in range(3)]
            assert await asyncio.gather(*rest) == [b"429"] * 3
            assert not kept._lines
            posting.gate.set()
            assert await first == b"200"
            assert kept._bytes == kept.requests == 0

    asyncio.run(story())


def test_who_leaves_while_his_body_waits_takes_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr(shares, "BODY_BYTES_PER_USER_MAX", 1_000_000)

    async def story():
        kept = Traffic().shares
        await kept.take("a", 900_000)
        leaves, stays = (asyncio.create_task(kept.take("a", 900_000)) for _ in range(2))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.sleep(0)
        kept.give_back("a", 900_000)
        await asyncio.wait_for(stays, 5)
        late = asyncio.create_task(kept.take("a", 900_000))
        await asyncio.sleep(0)
        kept.give_back("a", 900_000)
        late.cancel()  # its turn has come, and it does not know yet
        await asyncio.gather(late, return_exceptions=True)
        assert kept._bytes == 0 and not kept._bytes_of and not kept._lines

    asyncio.run(story())


@pytest.mark.parametrize("leaving", ["abort", "close"])
def test_a_connection_that_is_gone_is_not_kept(tmp_path, leaving):
    """Without the collector's help: it comes round seldom, and a connection is large."""

    async def story():
        async with Ground(tmp_path, fine) as ground:
            clients = [await ground.connect() for _ in range(5)]
            for reader, writer in clients:
                writer.write(GET)
                await asyncio.wait_for(reader.readuntil(b"}"), 20)
            kept = [weakref.ref(one) for one in ground.listener.connections.state.connections]
            assert len(kept) == 5
            for _, writer in clients:
                getattr(writer.transport, leaving)()
            await until(lambda: not any(one() for one in kept))

    gc.collect()
    gc.disable()
    try:
        asyncio.run(story())
    finally:
        gc.enable()
