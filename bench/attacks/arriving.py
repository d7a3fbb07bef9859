"""Attacks on the way in: heads that never end, handshakes that hang, more connections than sense.

Most of them need no credentials. Before a request is complete the server knows nobody, so all that
it can do is to bound what a connection may take of it: bytes, time, and how many there are.
"""

import asyncio
import socket
import time
from contextlib import suppress

from . import wire
from .scene import HERE, Scene

_PIECE = 64 * 1024


async def endless_head(scene: Scene) -> None:
    """Eight strangers begin a request each and never come to its end: in the path, in the name of
    a header, in its value, and by one header after another."""
    beginnings = [
        (b"GET /api", b"a" * _PIECE),
        (b"GET /api HTTP/1.1\r\nHost: localhost\r\nX", b"a" * _PIECE),
        (b"GET /api HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a" * _PIECE),
        (b"GET /api HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n" * (_PIECE // 8)),
    ]
    await scene.begin()
    until = time.monotonic() + 6 * scene.size
    await asyncio.gather(*(_endless(scene, *beginnings[i % 4], until) for i in range(8)))


async def endless_trailer(scene: Scene) -> None:
    """The same behind a complete body: the trailers of a chunked request."""
    head = wire.request_head("POST", f"{HERE}/configmaps", "application/json", "Transfer-Encoding: chunked")
    body = wire.encoded({"metadata": {"generateName": "o-"}})
    start = head + b"%x\r\n%s\r\n0\r\n" % (len(body), body)
    endings = [(start + b"X-A: ", b"a" * _PIECE), (start, b"X-A: b\r\n" * (_PIECE // 8))]
    await scene.begin()
    until = time.monotonic() + 6 * scene.size
    await asyncio.gather(*(_endless(scene, *endings[i % 2], until, known=True) for i in range(8)))


async def _endless(scene: Scene, beginning: bytes, more: bytes, until: float, *, known: bool = False) -> None:
    bytes_max = scene.of(48 * 1024 * 1024)
    while True:
        connection = await wire.connected(scene.port, scene.mallory if known else scene.stranger)
        sent, takes = len(beginning), connection is not None and await connection.send(beginning)
        while connection is not None and takes and sent < bytes_max and time.monotonic() < until:
            takes = await connection.send(more)
            sent += len(more)
            await asyncio.sleep(0)
        scene.notes["most_bytes_taken"] = max(scene.notes.get("most_bytes_taken", 0), sent)
        answer = await connection.answer(0.5) if connection else wire.CUT
        scene.answers[answer.reason] += 1
        if connection:
            connection.close()
        if time.monotonic() >= until:
            return
        await asyncio.sleep(0.05)


async def hanging_handshakes(scene: Scene) -> None:
    """Strangers who connect and say nothing, or half a greeting, or something else than TLS."""
    greeting = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x07" * 100
    beginnings = [b"", greeting, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    await scene.begin()
    loop, plain = asyncio.get_running_loop(), list[socket.socket]()
    try:
        for number in range(scene.of(1500)):
            one = socket.socket()
            plain.append(one)
            one.setblocking(False)
            with suppress(OSError, TimeoutError):
                await asyncio.wait_for(loop.sock_connect(one, (wire.HOST, scene.port)), 5)
                await loop.sock_sendall(one, beginnings[number % 3])
            if number % 50 == 0:
                await asyncio.sleep(0.02)
        await asyncio.sleep(12 * scene.size)
        for one in plain:
            scene.answers["cut" if _has_ended(one) else "still open"] += 1
    finally:
        for one in plain:
            one.close()


def _has_ended(connection: socket.socket) -> bool:
    """Alerts that say why are read first."""
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


async def many_connections(scene: Scene) -> None:
    """One user opens connection after connection, asks on each, and keeps them; then all go."""
    ask = wire.get(f"{HERE}/configmaps")
    await scene.begin()
    before_mb = scene.server.rss_mb()
    kept: list[wire.Connection] = []

    async def come(count: int) -> None:
        for _ in range(count):
            connection = await wire.connected(scene.port, scene.mallory)
            answer = await connection.ask(ask) if connection else wire.CUT
            scene.answers[answer.reason] += 1
            if connection:
                kept.append(connection)

    await asyncio.gather(*(come(scene.of(1500) // 8) for _ in range(8)))
    for connection in kept:
        connection.close()
    await asyncio.sleep(5 * scene.size)
    scene.notes["kept_after_mb"] = round(scene.server.rss_mb() - before_mb, 1)
