"""A load generator that costs little: keep-alive TLS connections, one request each at a time.

It reads just enough of an answer to know its status and where it ends, so that on
a small machine nearly all of the time is the server's.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Load:
    """What a run did."""

    seconds: float = 0.0
    latencies_s: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    def report(self) -> dict[str, object]:
        ordered = sorted(self.latencies_s)
        return {
            "requests": len(ordered),
            "per_second": round(len(ordered) / self.seconds, 1) if self.seconds else 0,
            "p50_ms": round(ordered[len(ordered) // 2] * 1000, 2),
            "p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1000, 2),
            "statuses": self.statuses,
        }


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], load: Load, done: Callable[[], None]) -> None:
        self._requests = requests
        self._load = load
        self._done = done
        self._buffer = bytearray()
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self._done()
            return
        self._sent = time.perf_counter()
        self._transport.write(request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._buffer[:head_end]).lower()
        at = head.find(b"content-length: ")
        if at >= 0:
            end = head.find(b"\r\n", at)
            size = int(head[at + 16 : end if end >= 0 else len(head)])
            if len(self._buffer) < head_end + 4 + size:
                return
        elif not self._buffer.endswith(b"0\r\n\r\n"):
            return
        status = int(head[9:12])
        self._load.statuses[status] = self._load.statuses.get(status, 0) + 1
        self._load.latencies_s.append(time.perf_counter() - self._sent)
        self._buffer = bytearray()
        self._next()


async def drive(
    host: str, port: int, context: ssl.SSLContext, requests: Iterator[bytes], connections: int
) -> Load:
    """Send every request of the iterator over `connections` connections."""
    load, loop = Load(), asyncio.get_running_loop()
    left, finished = connections, loop.create_future()

    def done() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            finished.set_result(None)

    started = time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(
            lambda: _Connection(requests, load, done), host, port, ssl=context, server_hostname="localhost"
        )
    await finished
    load.seconds = time.perf_counter() - started
    return load


def request(method: str, path: str, body: bytes = b"") -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n"
    )
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body
