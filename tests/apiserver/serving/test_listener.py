"""HTTPS in front of the handler, tried with bytes that no good client sends."""

import asyncio
import json
import sys

import pytest
import uvloop

from allot.api import Response
from allot.apiserver.fairness import shares, unread
from allot.apiserver.serving import arriving, connection, listener

from .ground import Ground, fine


def test_requests_follow_each_other_on_one_connection(tmp_path):
    async def story():
        async with Ground(tmp_path, fine) as ground:
            reader, writer = await ground.connect()
            for path in (b"/one", b"/two"):
                writer.write(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path)
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200")
                assert path in await reader.readuntil(b"}")
            writer.close()

    asyncio.run(story())


@pytest.mark.parametrize("size", [10, 300_000])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_client_of_http_1_0_gets_no_chunks(tmp_path, size, streamed):
    async def handle(request, user):
        async def stream():
            for at in range(0, size, 100_000):
                yield b"x" * min(100_000, size - at)

        return Response(200, stream=stream()) if streamed else Response(200, b"x" * size)

    async def story():
        async with Ground(tmp_path, handle) as ground:
            reader, writer = await ground.connect()
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            head, _, body = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n\r\n")
            assert b"transfer-encoding" not in head and body == b"x" * size
            assert streamed or b"content-length: %d" % size in head
            writer.close()

    asyncio.run(story())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_who_closes_during_an_answer_ends_it_without_a_word(tmp_path, caplog, loop):
    """Every piece that was written after that was a line in the log."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def handle(request, user):
        async def stream():
            try:
                while True:
                    yield b"x" * 1000
                    begun.set()
                    await asyncio.sleep(0.001)
            finally:
                ended.set()

        return Response(200, stream=stream())

    async def story():
        async with Ground(tmp_path, handle) as ground:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", CLOSES_AND_STAYS, str(ground.listener.port)
            )
            await asyncio.wait_for(begun.wait(), 20)
            await asyncio.wait_for(ended.wait(), 20)
            process.kill()
            await process.wait()

    with caplog.at_level("DEBUG"), asyncio.Runner(loop_factory=loop) as runner:
        runner.run(story())
    said = [one.getMessage() for one in caplog.records if one.name != "asyncio" or one.levelname != "DEBUG"]
    assert said == ["a client closed its connection during an answer"]


CLOSES_AND_STAYS = """
import socket, ssl, sys, time
context = ssl._create_unverified_context()
plain = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
secured = context.wrap_socket(plain)
secured.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
secured.recv(100)
secured.setblocking(False)
try:
    secured.unwrap()  # sends close_notify, and does not wait for the other end's
except ssl.SSLError:
    pass
time.sleep(30)
"""


def test_a_body_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    async def story():
        async with Ground(tmp_path, fine) as ground:
            head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
            answer = await ground.say(head % (listener.BODY_BYTES_MAX + 1))
            assert answer.startswith(b"HTTP/1.1 413")
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["reason"] == "RequestEntityTooLarge"
            sized = await ground.say(head % 5 + b"12345")
            assert sized.startswith(b"HTTP/1.1 200") and b'"size":5' in sized

    asyncio.run(story())


def test_a_chunked_body_that_grows_too_large_is_refused(tmp_path):
    async def story():
        async with Ground(tmp_path, fine) as ground:
            reader, writer = await ground.connect()
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            piece = b"x" * 65536
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError, StopIteration)):
                for _ in range(200):
                    writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    await asyncio.wait_for(writer.drain(), 5)
                    if reader._buffer:  # the answer is there before the body is over
                        raise StopIteration
            assert (await reader.read(100)).startswith(b"HTTP/1.1 413")
            writer.close()

    asyncio.run(story())


def test_what_is_not_http_ends_the_connection(tmp_path):
    async def story():
        async with Ground(tmp_path, fine) as ground:
            assert (await ground.say(b"\x00\x01 nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400")
            endless = b"GET / HTTP/1.1\r\n" + b"A: " + b"x" * (arriving.HEAD_BYTES_MAX + 100) + b"\r\n\r\n"
            assert not (await ground.say(endless)).startswith(b"HTTP/1.1 200")
            assert (await ground.say(b"GET /still-here HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(
                b"HTTP/1.1 200"
            )

    asyncio.run(story())


@pytest.mark.parametrize("which", ["REQUESTS_MAX", "REQUESTS_PER_USER_MAX"])
def test_more_requests_than_fit_are_told_to_come_back(tmp_path, monkeypatch, which):
    monkeypatch.setattr(shares, which, 2)
    gate = asyncio.Event()

    async def slow(request, user):
        await gate.wait()
        return Response(200, b"{}")

    async def story():
        async with Ground(tmp_path, slow) as ground:
            get = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
            waiting = [asyncio.create_task(ground.say(get)) for _ in range(2)]
            await asyncio.sleep(0.2)
            refused = await ground.say(get)
            assert refused.startswith(b"HTTP/1.1 429") and b"retry-after: 1" in refused.lower()
            gate.set()
            for one in waiting:
                assert (await one).startswith(b"HTTP/1.1 200")

    asyncio.run(story())


def test_a_stream_ends_when_its_reader_leaves(tmp_path):
    ended = asyncio.Event()

    async def pieces():
        try:
            while True:
                yield b"x" * 1000
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    async def streaming(request, user):
        return Response(200, stream=pieces())

    async def story():
        async with Ground(tmp_path, streaming) as ground:
            reader, writer = await ground.connect()
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"xxx")
            writer.transport.abort()
            await asyncio.wait_for(ended.wait(), 5)

    asyncio.run(story())


def test_a_request_whose_sender_left_before_the_end_is_not_carried_out(tmp_path):
    """Else a delete whose preconditions never arrived would be a delete without any."""
    handled = []

    async def note(request, user):
        handled.append(request.method)
        return Response(200, b"{}")

    async def story():
        async with Ground(tmp_path, note) as ground:
            _, writer = await ground.connect()
            writer.write(b"DELETE /a HTTP/1.1\r\nHost: x\r\nContent-Length: 60\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.1)
            writer.transport.abort()
            await asyncio.sleep(0.2)
            assert (await ground.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert handled == ["GET"]

    asyncio.run(story())


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_request_that_never_comes_to_its_end_costs_the_connection(tmp_path, monkeypatch, sent):
    monkeypatch.setattr(connection, "ARRIVAL_S", 0.3)

    async def story():
        async with Ground(tmp_path, fine) as ground:
            reader, writer = await ground.connect()
            writer.write(sent)
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(reader.readexactly(1), 5)
            writer.close()

    asyncio.run(story())


def test_a_client_that_takes_nothing_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(unread, "UNREAD_S", 0.3)
    ended = asyncio.Event()

    async def pieces():
        try:
            for _ in range(1000):
                yield b"x" * 1_000_000
        finally:
            ended.set()

    async def streaming(request, user):
        return Response(200, stream=pieces())

    async def story():
        async with Ground(tmp_path, streaming) as ground:
            reader, writer = await ground.connect()
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"xxx")
            writer.transport.pause_reading()
            await asyncio.wait_for(ended.wait(), 5)
            writer.transport.abort()

    asyncio.run(story())
