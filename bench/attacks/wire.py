"""Raw HTTP over TLS, as somebody sends it who does not mean well.

A `Connection` sends bytes as they are and reads what comes back. Whatever the server does to it,
closing in the middle of a request included, is an `Answer` and no exception.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
ANSWER_S = 45.0
"""How long an attacker waits for one answer."""

_ANSWER_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    said: str  # the status, or what happened in its place: "cut", "silent"
    head: bytes = b""
    body: bytes = b""

    @property
    def reason(self) -> str:
        """The status, and the reason that a refusal gives with it."""
        if not self.said.isdigit() or int(self.said) < 400:
            return self.said
        try:
            return f"{self.said} {json.loads(self.body)['reason']}"
        except (ValueError, KeyError, TypeError):
            return self.said


CUT, SILENT = Answer("cut"), Answer("silent")


class Connection:
    """Made by `connected`, or by `Connection.open` where being refused is an error."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, context: ssl.SSLContext | None, receive_bytes: int = 0) -> "Connection":
        """With `receive_bytes`, the machine takes no more than about that for a client that does not read."""
        plain = socket.socket()
        plain.setblocking(False)
        if receive_bytes:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        try:
            await asyncio.get_running_loop().sock_connect(plain, (HOST, port))
            name = "localhost" if context else None
            limit = receive_bytes or _ANSWER_BYTES_MAX
            streams = asyncio.open_connection(sock=plain, ssl=context, server_hostname=name, limit=limit)
            return cls(*await asyncio.wait_for(streams, ANSWER_S))
        except BaseException:
            plain.close()
            raise

    async def send(self, data: bytes) -> bool:
        """False once the server takes no more."""
        try:
            self._writer.write(data)
            await asyncio.wait_for(self._writer.drain(), ANSWER_S)
        except (OSError, TimeoutError):
            return False
        return not self._writer.is_closing()

    async def answer(self, within_s: float = ANSWER_S) -> Answer:
        return await _kindly(self._answer(), within_s)

    async def ask(self, request: bytes) -> Answer:
        return await self.answer() if await self.send(request) else CUT

    async def head(self, within_s: float = ANSWER_S) -> Answer:
        """The beginning of an answer that may never end."""
        return await _kindly(self._head(), within_s)

    async def line(self, within_s: float) -> bytes | None:
        """One line of a stream; None if nothing came in time; empty at its end."""
        try:
            return await asyncio.wait_for(self._reader.readline(), within_s)
        except TimeoutError:
            return None
        except (OSError, ValueError):
            return b""

    def close(self) -> None:
        self._writer.transport.abort()

    async def _head(self) -> Answer:
        head = await self._reader.readuntil(b"\r\n\r\n")
        return Answer(head[9:12].decode("latin-1"), head)

    async def _answer(self) -> Answer:
        start = await self._head()
        size = header(start.head, b"content-length")
        if size is not None:
            return Answer(start.said, start.head, await self._reader.readexactly(int(size)))
        body = bytearray()
        while length := int((await self._reader.readline()).strip() or b"0", 16):
            body += await self._reader.readexactly(length)
            await self._reader.readexactly(2)
        await self._reader.readline()
        return Answer(start.said, start.head, bytes(body))


async def _kindly(reading: Awaitable[Answer], within_s: float) -> Answer:
    try:
        return await asyncio.wait_for(reading, within_s)
    except TimeoutError:
        return SILENT
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
        return CUT


async def connected(port: int, context: ssl.SSLContext | None, receive_bytes: int = 0) -> Connection | None:
    """None where the server does not let us in."""
    try:
        return await Connection.open(port, context, receive_bytes)
    except (OSError, TimeoutError):
        return None


def header(head: bytes, name: bytes) -> str | None:
    """The first value of a header, or None."""
    for line in head.split(b"\r\n")[1:]:
        found, _, value = line.partition(b":")
        if found.strip().lower() == name:
            return value.strip().decode("latin-1")
    return None


def request(method: str, path: str, body: bytes = b"", media: str = "application/json") -> bytes:
    return request_head(method, path, media, f"Content-Length: {len(body)}") + body


def request_head(method: str, path: str, *headers: str) -> bytes:
    """The head of a request with a body of the media type that comes first, and more headers."""
    media, *more = headers
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Accept: application/json"]
    return "\r\n".join([*lines, f"Content-Type: {media}", *more, "", ""]).encode()


def encoded(content: Any) -> bytes:
    return json.dumps(content).encode()


def post(path: str, content: Any) -> bytes:
    return request("POST", path, encoded(content))


def get(path: str) -> bytes:
    return request("GET", path)


def total(requests: Sequence[bytes]) -> int:
    return sum(len(one) for one in requests)
