"""The socket in front of the handler, tried with bytes that no good client sends."""

import asyncio
import contextlib
import os
import stat
import struct

import msgspec
import pytest
import uvloop

from allot.api import Request, Response, User, errors, frames
from allot.apiserver.fairness import unread
from allot.apiserver.fairness.traffic import Traffic
from allot.apiserver.serving import socketlistener
from allot.apiserver.serving.socketlistener import SocketListener
from allot.client import Socket, SocketLimits
from allot.client import link as linking

SOMEBODY = User("somebody", ("system:authenticated",))
GET = Request("GET", "/x")


@contextlib.asynccontextmanager
async def ground(folder, handle):
    """A listener in front of a handler that the test chooses, and the way to it."""
    listener = SocketListener(handle, Traffic())
    await listener.open(folder / "api.sock")
    try:
        yield listener, Socket(folder / "api.sock")
    finally:
        await listener.close()


@pytest.fixture(autouse=True, params=[asyncio.DefaultEventLoopPolicy, uvloop.EventLoopPolicy])
def loops(request):
    """Python's own, and the one that servers run on."""
    asyncio.set_event_loop_policy(request.param())
    yield
    asyncio.set_event_loop_policy(None)


def run_story(story):
    asyncio.run(asyncio.wait_for(story, 20))


async def until(holds):
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


async def fine(request, user):
    if request.path == "/never":
        await asyncio.Event().wait()
    return Response(200, b"%d" % len(request.body), headers=(("Warning", user.name),))


class Raw:
    """The other end, byte by byte."""

    async def open(self, path):
        self.reader, self.writer = await asyncio.open_unix_connection(path)
        self.outbox = frames.Outbox(self.writer.write, lambda call: None, 1 << 30)
        self.inbox = frames.Inbox(1 << 30)
        self.unread: list[frames.Frame] = []
        return self

    def meet(self, number=1, name="somebody"):
        self.outbox.head(frames.MEET, number, frames.Meet(name))
        return self

    def ask(self, number, method="GET", body=b"", user=1, path="/x"):
        self.outbox.head(frames.ASK, number, frames.Ask(user, method, path, {}, {}, body))
        return self

    async def next(self):
        self.outbox.flush()
        while not self.unread:
            data = await asyncio.wait_for(self.reader.read(65536), 5)
            if not data:
                raise EOFError
            self.unread += self.inbox.feed(data)
        return self.unread.pop(0)

    async def answer(self):
        return frames.read_answer((await self.next()).payload)


def test_the_socket_is_for_its_owner_alone(tmp_path):
    async def story():
        async with ground(tmp_path, fine):
            found = (tmp_path / "api.sock").stat()
            assert stat.S_ISSOCK(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
        assert not (tmp_path / "api.sock").exists()

    run_story(story())


def test_another_user_gets_no_answer(tmp_path, monkeypatch):
    """SOCK1. Should the file be opened to others by mistake, they still do not get in."""
    us = os.getuid()
    monkeypatch.setattr(socketlistener.os, "getuid", lambda: us + 1)

    async def story():
        async with ground(tmp_path, fine):
            raw = await Raw().open(tmp_path / "api.sock")
            with pytest.raises((EOFError, ConnectionError)):
                await raw.meet().ask(1).next()

    run_story(story())


def test_what_an_earlier_server_left_gives_way_and_anything_else_does_not(tmp_path):
    async def story():
        path = tmp_path / "api.sock"
        first = SocketListener(fine, Traffic())
        await first.open(path)
        async with ground(tmp_path, fine) as (_, shared):
            await first.close()  # it leaves the other one's socket alone
            client = shared.transport(SOMEBODY)
            assert (await client.send(GET)).status == 200
            await client.close()
        path.write_text("something")
        with pytest.raises(FileExistsError, match="in the way"):
            await SocketListener(fine, Traffic()).open(path)

    run_story(story())


def test_whoever_is_named_is_an_authenticated_user(tmp_path):
    async def who(request, user):
        return Response(200, f"{user.name} {','.join(user.groups)}".encode())

    async def story():
        async with ground(tmp_path, who):
            raw = await Raw().open(tmp_path / "api.sock")
            raw.outbox.head(frames.MEET, 7, frames.Meet("ann", ("staff",)))
            raw.outbox.head(frames.MEET, 8, frames.Meet("bob", ("system:authenticated",)))
            raw.ask(1, user=7).ask(2, user=8)
            assert (await raw.answer()).body == b"ann staff,system:authenticated"
            assert (await raw.answer()).body == b"bob system:authenticated"

    run_story(story())


def test_answers_come_in_the_order_in_which_they_are_ready(tmp_path):
    gate = asyncio.Event()

    async def slow_first(request, user):
        if request.path == "/slow":
            await gate.wait()
        return Response(200, request.path.encode())

    async def story():
        async with ground(tmp_path, slow_first):
            raw = await Raw().open(tmp_path / "api.sock")
            raw.meet().ask(1, path="/slow").ask(2, path="/quick")
            assert (await raw.next()).number == 2
            gate.set()
            assert (await raw.next()).number == 1

    run_story(story())


BAD = {
    "another protocol": lambda raw: raw.writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"),
    "a frame that is too long": lambda raw: raw.writer.write(b"\xff\xff\xff\xff" + b"x" * 20),
    "another kind of frame": lambda raw: raw.outbox.raw(99, 1),
    "a frame for clients": lambda raw: raw.outbox.raw(frames.PIECE, 1),
    "a head that is none": lambda raw: raw.outbox.raw(frames.ASK, 1, b"\x91\x01"),
    "more behind the head": lambda raw: raw.outbox.raw(frames.MEET, 1, b"\x91\xa1xy"),
    "a user nobody knows": lambda raw: raw.ask(2, user=5),
    "a user without a name": lambda raw: raw.meet(3, ""),
    "one number twice": lambda raw: raw.ask(50, path="/never").ask(50),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_what_cannot_be_read_ends_its_connection_and_no_other(tmp_path, bad):
    """SOCK2."""

    async def story():
        async with ground(tmp_path, fine) as (listener, shared):
            client = shared.transport(SOMEBODY)
            assert (await client.send(GET)).status == 200
            raw = await Raw().open(tmp_path / "api.sock")
            raw.meet()
            bad(raw)
            with pytest.raises((EOFError, ConnectionError)):
                await raw.next()
            assert (await client.send(GET)).status == 200
            await until(lambda: len(listener.connections) == 1)
            assert listener.being_answered == 0
            await client.close()

    run_story(story())


def test_what_is_too_large_is_refused(tmp_path):
    async def story():
        async with ground(tmp_path, fine) as (_, shared):
            client = shared.transport(SOMEBODY)
            largest = Request("POST", "/", {}, {}, b"x" * frames.BODY_BYTES_MAX)
            assert (await client.send(largest)).body == b"%d" % frames.BODY_BYTES_MAX
            larger = Request("POST", "/", {}, {}, b"x" * (frames.BODY_BYTES_MAX + 1))
            assert (await client.send(larger)).status == 413
            with pytest.raises(errors.TooLarge):
                await client.send(Request("POST", "/", {}, {}, b"x" * (frames.REQUEST_BYTES_MAX + 1)))
            long_head = Request("GET", "/", {"q": "x" * frames.HEAD_BYTES_MAX})
            assert (await client.send(long_head)).status == 400
            assert (await client.send(GET)).status == 200
            await client.close()

    run_story(story())


def test_more_than_fits_is_told_to_come_back(tmp_path, monkeypatch):
    """SOCK3, by number: requests, streams, users, connections."""
    monkeypatch.setattr(socketlistener, "REQUESTS_MAX", 2)
    monkeypatch.setattr(socketlistener, "USERS_MAX", 2)
    monkeypatch.setattr(socketlistener, "CONNECTIONS_MAX", 2)
    gate = asyncio.Event()

    async def slow(request, user):
        await gate.wait()
        return Response(200)

    async def story():
        async with ground(tmp_path, slow):
            raw = await Raw().open(tmp_path / "api.sock")
            refused = await raw.meet().ask(1).ask(2).ask(3).answer()
            assert refused.status == 429 and dict(refused.headers)["Retry-After"] == "1"
            gate.set()
            assert [(await raw.answer()).status for _ in range(2)] == [200, 200]
            other = await Raw().open(tmp_path / "api.sock")
            assert (await other.meet().ask(1).answer()).status == 200
            third = await Raw().open(tmp_path / "api.sock")
            with pytest.raises((EOFError, ConnectionError)):
                await third.meet().ask(1).next()
            with pytest.raises((EOFError, ConnectionError)):
                await other.meet(2).meet(3).next()

    run_story(story())


def endless(ended, size=300_000):
    async def pieces():
        try:
            while True:
                yield b"x" * size
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def streaming(request, user):
        if request.path == "/stream":
            return Response(200, stream=pieces())
        return Response(200, b"plain")

    return streaming


def test_a_stream_waits_for_its_reader_and_nobody_else_waits_for_it(tmp_path, monkeypatch):
    """FRAME4, LINK3, and the end of patience (SOCK3)."""
    monkeypatch.setattr(socketlistener, "_UNREAD_S", 0.5)
    ended = asyncio.Event()

    async def story():
        async with ground(tmp_path, endless(ended)) as (_, shared):
            client = shared.transport(SOMEBODY)
            watch = await client.send(Request("GET", "/stream", {"watch": "true"}))
            await asyncio.sleep(0.1)
            waiting = sum(map(len, watch.stream._pieces))
            assert frames.WINDOW_BYTES <= waiting <= frames.WINDOW_BYTES + 300_000
            assert (await client.send(GET)).body == b"plain"
            taken = 0
            while taken < 5 * frames.WINDOW_BYTES:
                taken += len(await anext(watch.stream))
            assert not ended.is_set()
            await asyncio.wait_for(ended.wait(), 5)  # now nobody reads
            assert (await client.send(GET)).body == b"plain"
            with pytest.raises(errors.Unavailable, match="not read"):
                async for _ in watch.stream:
                    pass
            await client.close()

    run_story(story())


def test_answers_that_a_process_does_not_read_are_not_made(tmp_path):
    """SOCK3: nor is a process cut off that asks for much at once and reads it."""
    made = []

    async def large(request, user):
        made.append(request)
        return Response(200, b"x" * 900_000)

    async def story():
        async with ground(tmp_path, large) as (listener, shared):
            raw = await Raw().open(tmp_path / "api.sock")
            raw.writer.transport.pause_reading()
            raw.meet()
            for number in range(400):
                raw.ask(number)
            raw.outbox.flush()
            await until(lambda: listener.traffic.unread.waiting_bytes)
            await asyncio.sleep(0.3)
            assert len(made) < 60
            assert listener.traffic.unread.waiting_bytes < 60_000_000
            raw.writer.transport.resume_reading()
            for _ in range(400):
                assert len((await raw.answer()).body) == 900_000
            assert listener.traffic.unread.waiting_bytes == 0
            client = shared.transport(SOMEBODY)
            answers = await asyncio.gather(*(client.send(GET) for _ in range(100)))
            assert [len(answer.body) for answer in answers] == [900_000] * 100
            await client.close()
            raw.writer.close()

    run_story(story())


def test_a_process_that_reads_nothing_loses_its_connection(tmp_path, monkeypatch):
    monkeypatch.setattr(unread, "UNREAD_S", 0.3)

    async def large(request, user):
        return Response(200, b"x" * 900_000)

    async def story():
        async with ground(tmp_path, large) as (listener, _):
            raw = await Raw().open(tmp_path / "api.sock")
            raw.writer.transport.pause_reading()
            raw.meet()
            for number in range(50):
                raw.ask(number)
            raw.outbox.flush()
            await until(lambda: listener.connections)
            await until(lambda: not listener.connections)
            raw.writer.close()

    run_story(story())


@pytest.mark.parametrize("leaving", ["the stream", "the connection"])
def test_a_stream_ends_when_its_reader_leaves(tmp_path, leaving):
    ended = asyncio.Event()

    async def story():
        async with ground(tmp_path, endless(ended, 10)) as (listener, shared):
            client = shared.transport(SOMEBODY)
            watch = await client.send(Request("GET", "/stream", {"watch": "true"}))
            await anext(watch.stream)
            await (watch.stream.aclose() if leaving == "the stream" else client.close())
            await asyncio.wait_for(ended.wait(), 5)
            await until(lambda: not any(one._answering for one in listener.connections))
            await client.close()

    run_story(story())


def test_a_write_that_has_begun_is_carried_out_and_a_read_is_not(tmp_path):
    """SOCK4: whoever sent it may have left; what was asked for holds."""
    gate, done, cancelled = asyncio.Event(), [], []

    async def slow(request, user):
        try:
            await gate.wait()
        except asyncio.CancelledError:
            cancelled.append(request.method)
            raise
        done.append(request.method)
        return Response(200)

    async def story():
        async with ground(tmp_path, slow) as (listener, shared):
            client = shared.transport(SOMEBODY)
            asking = [
                asyncio.ensure_future(client.send(Request(method, "/"))) for method in ("PUT", "GET", "POST")
            ]
            await until(lambda: listener.being_answered == 3)
            asking[0].cancel()
            asking[1].cancel()
            await until(lambda: cancelled == ["GET"])
            raw = await Raw().open(tmp_path / "api.sock")
            raw.meet().ask(1, "DELETE").outbox.flush()
            await until(lambda: listener.being_answered == 3)
            raw.writer.transport.abort()
            await asyncio.sleep(0.05)
            gate.set()
            assert (await asking[2]).status == 200
            await until(lambda: sorted(done) == ["DELETE", "POST", "PUT"])
            assert listener.being_answered == 0
            await client.close()

    run_story(story())


def test_a_request_whose_end_never_came_is_not_carried_out(tmp_path):
    handled = []

    async def note(request, user):
        handled.append(request.method)
        return Response(200)

    async def story():
        async with ground(tmp_path, note) as (listener, _):
            raw = await Raw().open(tmp_path / "api.sock")
            raw.meet().ask(1, "DELETE", b"preconditions")
            raw.outbox._ready = raw.outbox._ready[:-1]
            raw.outbox.flush()
            await raw.writer.drain()
            await until(lambda: listener.connections)
            raw.writer.transport.abort()
            await until(lambda: not listener.connections)
        assert handled == []

    run_story(story())


def test_a_handler_that_fails_is_an_answer(tmp_path):
    async def failing(request, user):
        raise RuntimeError("a bug")

    async def story():
        async with ground(tmp_path, failing) as (listener, shared):
            client = shared.transport(SOMEBODY)
            assert (await client.send(GET)).status == 500
            assert listener.being_answered == 0
            await client.close()

    run_story(story())


@pytest.mark.parametrize("size", [5, 3_000_000, 70_000_000])
def test_an_answer_is_whole_whatever_its_size(tmp_path, size):
    async def large(request, user):
        return Response(200, b"x" * size, headers=(("A", "b"),))

    async def story():
        async with ground(tmp_path, large) as (_, shared):
            client = shared.transport(SOMEBODY)
            answer = await client.send(GET)
            assert len(answer.body) == size and answer.stream is None and answer.headers == (("A", "b"),)
            assert (await client.send(Request("HEAD", "/x"))).body == b""
            await client.close()

    run_story(story())


def test_closing_lets_what_is_being_answered_finish_and_ends_streams(tmp_path):
    gate, ended = asyncio.Event(), asyncio.Event()
    streaming = endless(ended, 10)

    async def slow(request, user):
        if request.path == "/slow":
            await gate.wait()
            return Response(200, b"slow")
        return await streaming(request, user)

    async def story():
        async with ground(tmp_path, slow) as (listener, shared):
            client = shared.transport(SOMEBODY)
            watch = await client.send(Request("GET", "/stream", {"watch": "true"}))
            answer = asyncio.ensure_future(client.send(Request("GET", "/slow")))
            await until(lambda: listener.being_answered == 1)
            closing = asyncio.ensure_future(listener.close())
            await asyncio.wait_for(ended.wait(), 5)
            gate.set()
            assert (await answer).body == b"slow"
            with pytest.raises(errors.Unavailable, match="the server ended it"):
                async for _ in watch.stream:
                    pass
            await closing
            with pytest.raises(errors.Unavailable):
                await client.send(GET)
            await client.close()

    run_story(story())


def test_a_deadline_is_kept_though_there_is_one_timer_for_all(tmp_path):
    """LINK1, LINK2: the late answer is dropped, and the connection goes on."""
    gate = asyncio.Event()

    async def slow(request, user):
        if request.path == "/slow":
            await gate.wait()
        return Response(200, request.path.encode())

    async def story():
        async with ground(tmp_path, slow) as (_, shared):
            quick = Socket(shared.path, SocketLimits(answer_s=0.2))
            client = quick.transport(SOMEBODY)
            for _ in range(3):
                with pytest.raises(errors.Timeout, match="no answer in time"):
                    await client.send(Request("PUT", "/slow"))
                assert (await client.send(GET)).body == b"/x"
            gate.set()
            await asyncio.sleep(0.05)
            assert (await client.send(GET)).body == b"/x"
            await client.close()

    run_story(story())


def test_a_server_that_says_nonsense_loses_the_client(tmp_path):
    """Whoever waited does not know what became of it; whoever comes later connects anew."""
    answer = msgspec.msgpack.encode([200, b"", "", [], False])
    answers = [b"\xff" * 40, struct.pack(">IBQ", len(answer), frames.ANSWER, 77) + answer, b""]

    async def nonsense(reader, writer):
        await reader.read(100)
        writer.write(answers.pop(0))
        await asyncio.sleep(0.05)
        writer.close()

    async def story():
        server = await asyncio.start_unix_server(nonsense, tmp_path / "api.sock")
        client = Socket(tmp_path / "api.sock").transport(SOMEBODY)
        for why in ("does not speak", "nobody asked for", "closed the connection"):
            with pytest.raises(errors.Timeout, match=why):
                await client.send(GET)
        await client.close()
        server.close()

    run_story(story())


def test_an_answer_that_is_endless_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(linking, "BODY_BYTES_MAX", 2_000_000)
    ended = asyncio.Event()

    async def story():
        async with ground(tmp_path, endless(ended)) as (_, shared):
            client = shared.transport(SOMEBODY)
            with pytest.raises(errors.TooLarge):
                await client.send(Request("GET", "/stream"))
            await asyncio.wait_for(ended.wait(), 5)
            await client.close()

    run_story(story())


def test_a_request_that_is_taken_back_at_once_leaves_no_trace(tmp_path):
    """Both frames come in one chunk: it is unwanted before it has begun."""

    async def slow(request, user):
        await asyncio.sleep(3600)

    async def story():
        async with ground(tmp_path, slow) as (listener, _):
            raw = await Raw().open(tmp_path / "api.sock")
            raw.meet().ask(1)
            raw.outbox.raw(frames.LEAVE, 1)
            raw.outbox.flush()
            await until(lambda: listener.connections)
            await asyncio.sleep(0.1)
            (connection,) = listener.connections
            assert listener.being_answered == 0 and not connection._answering

    run_story(story())


def test_there_are_only_so_many_streams_on_a_connection(tmp_path, monkeypatch):
    monkeypatch.setattr(socketlistener, "STREAMS_MAX", 1)

    async def story():
        async with ground(tmp_path, endless(asyncio.Event(), 10)):
            raw = await Raw().open(tmp_path / "api.sock")
            assert (await raw.meet().ask(1, path="/stream").answer()).streams
            raw.ask(2, path="/stream")
            while (frame := await raw.next()).kind != frames.ANSWER:
                assert frame.number == 1
            assert frames.read_answer(frame.payload).status == 429

    run_story(story())


def test_a_large_piece_is_cut_so_that_others_have_a_turn(tmp_path):
    async def one():
        yield bytes(range(256)) * 10_000

    async def streaming(request, user):
        return Response(200, stream=one())

    async def story():
        async with ground(tmp_path, streaming):
            raw = await Raw().open(tmp_path / "api.sock")
            raw.meet().ask(1, path="/stream")
            pieces = []
            while (frame := await raw.next()).kind != frames.END:
                if frame.kind == frames.PIECE:
                    pieces.append(bytes(frame.payload))
                    raw.outbox.taken(1, len(frame.payload))
            assert b"".join(pieces) == bytes(range(256)) * 10_000
            assert max(map(len, pieces)) <= socketlistener.PIECE_BYTES

    run_story(story())


@pytest.mark.parametrize("stays", [True, False])
def test_what_takes_longer_than_closing_is_given_up(tmp_path, stays):
    """It went on without the server that it ran in, and failed in its own ways; so did what was asked by a
    client that has left meanwhile."""
    begun, given_up = asyncio.Event(), asyncio.Event()

    async def endless(request, user):
        begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            given_up.set()
            raise

    async def story():
        async with ground(tmp_path, endless):
            raw = await Raw().open(tmp_path / "api.sock")
            raw.meet().ask(1, "POST", b"{}").outbox.flush()
            await begun.wait()
            if not stays:
                raw.writer.close()
                await asyncio.sleep(0.1)
        assert given_up.is_set()

    run_story(story())
