"""One gRPC health check over a connection that is there: grpc.health.v1.Health/Check.

As much of HTTP/2 as one call needs. The answer is in the one DATA frame; what the headers around it say is
compressed, and only an error has nothing but headers.
"""

import asyncio
import struct
from collections.abc import Iterator, Mapping

from .dialing import Streams
from .probes import Outcome
from .views import Grpc

SERVING = 1
STATUSES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _END_HEADERS, _ACK, _PADDED = 0x1, 0x4, 0x1, 0x8
_FRAME_MAX = 64 * 1024


class BadAnswer(Exception):
    """It is no gRPC, or an error."""


async def check(asked: Grpc, streams: Streams) -> Outcome:
    """Raises BadAnswer, OSError, and EOFError."""
    reader, writer = streams
    writer.write(
        _PREFACE
        + frame(_SETTINGS, 0, 0, b"")
        + frame(_HEADERS, _END_HEADERS, 1, b"".join(_headers(f"localhost:{asked.port}")))
        + frame(_DATA, _END_STREAM, 1, _message(asked.service))
    )
    await writer.drain()
    body = b""
    while True:
        kind, flags, stream, payload = await _frame(reader)
        if kind == _SETTINGS and not flags & _ACK:
            writer.write(frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            writer.write(frame(_PING, _ACK, 0, payload))
        elif kind in (_GOAWAY, _RESET):
            raise BadAnswer("the server ended the call")
        elif kind == _DATA and stream == 1:
            body += payload[1 : -payload[0] or None] if flags & _PADDED and payload else payload
            if len(body) > _FRAME_MAX:
                raise BadAnswer("its answer has no end")
        if stream == 1 and flags & _END_STREAM and kind in (_DATA, _HEADERS):
            break
    if len(body) < 5:
        raise BadAnswer("the server has no health service, or none for that name")
    status = health_status(body[5:])
    name = STATUSES.get(status, str(status))
    return Outcome(
        status == SERVING, "" if status == SERVING else f'service unhealthy (responded with "{name}")'
    )


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


async def _frame(reader: asyncio.StreamReader) -> tuple[int, int, int, bytes]:
    head = await reader.readexactly(9)
    length = int.from_bytes(head[:3], "big")
    if length > _FRAME_MAX:
        raise BadAnswer("it does not speak gRPC")
    kind, flags, stream = struct.unpack(">BBI", head[3:])
    return kind, flags, stream & 0x7FFFFFFF, await reader.readexactly(length)


def _headers(authority: str) -> Iterator[bytes]:
    """Each as a literal that nobody needs to remember."""
    headers: Mapping[str, str] = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
        "user-agent": "kube-probe/1.37",
    }
    for name, value in headers.items():
        yield b"\x00" + _text(name) + _text(value)


def _text(value: str) -> bytes:
    """Shorter than 127 bytes, all of them."""
    return bytes([len(value)]) + value.encode()


def _message(service: str) -> bytes:
    named = service.encode()
    request = b"\x0a" + _varint(len(named)) + named if named else b""
    return b"\x00" + struct.pack(">I", len(request)) + request


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def health_status(message: bytes) -> int:
    """Field 1 of HealthCheckResponse; absent is 0."""
    return message[1] if len(message) >= 2 and message[0] == 0x08 else 0
