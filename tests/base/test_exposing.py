"""Metrics on loopback."""

import asyncio

from allot.base import Metrics, exposed


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        answer = await asyncio.wait_for(reader.read(), 10)
    except ConnectionResetError:
        answer = b""
    writer.close()
    return answer


def test_counters_are_shown_and_nothing_else_is():
    async def story() -> None:
        metrics = Metrics()
        metrics.counter("things_total", "Things.", "kind").add(2, "small")
        async with exposed(metrics, 0) as port:
            shown = await ask(port, b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            assert shown.startswith(b"HTTP/1.1 200 OK")
            assert b'things_total{kind="small"} 2\n' in shown
            assert b"process_resident_memory_bytes " in shown
            assert b"process_cpu_seconds_total " in shown
            assert b"ok" in await ask(port, b"GET /healthz?verbose HTTP/1.1\r\n\r\n")
            assert b" 404 " in await ask(port, b"GET /secrets HTTP/1.1\r\n\r\n")
            assert b" 405 " in await ask(port, b"DELETE /metrics HTTP/1.1\r\n\r\n")
            assert b" 405 " in await ask(port, b"nonsense\r\n\r\n")
            assert await ask(port, b"x" * 100_000) == b""

    asyncio.run(story())


def test_nothing_is_served_unless_asked_for():
    async def story() -> None:
        async with exposed(Metrics(), None) as port:
            assert port == 0

    asyncio.run(story())
