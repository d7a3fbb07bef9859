"""WebSocket frames (RFC 6455), as a server reads and writes them.

What it promises
    WS1  However bytes are cut on their way, the same messages come out.
    WS2  A message is handed on in the pieces in which it arrives: none is held until it is complete.
    WS3  What breaks the protocol raises `Broken`, and nothing more is read.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
NORMAL = 1000
"""The code of an ending at which nothing went wrong."""
CONTROL_BYTES_MAX = 125

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FIN, _MASKED = 0x80, 0x80
_RESERVED = 0x70


class Broken(Exception):
    """The other end does not speak the protocol."""


class Piece(NamedTuple):
    """Of a message with data."""

    data: bytes
    begins: bool  # the message
    ends: bool


class Control(NamedTuple):
    opcode: int  # CLOSE, PING or PONG
    payload: bytes


Event = Piece | Control


class Inbox:
    """Bytes of one connection in, events out."""

    def __init__(self, *, masked: bool = True) -> None:
        """`masked` is whether the other end is a client: those mask what they send."""
        self._masked = masked
        self._head = bytearray()
        self._in_message = False  # further frames continue it
        self._opcode = 0
        self._is_last = False  # this frame is the last of its message
        self._left = 0  # bytes of this frame that are to come
        self._mask = b""
        self._in_frame = False
        self._begins = False
        self._control = bytearray()

    def feed(self, data: bytes) -> list[Event]:
        """Raises Broken."""
        return list(self._events(memoryview(data)))

    def _events(self, view: memoryview) -> Iterator[Event]:
        while True:
            if not self._in_frame:
                taken = self._take_head(view)
                view = view[taken:]
                if not self._in_frame:
                    return
            part = view[: self._left]
            view = view[len(part) :]
            self._left -= len(part)
            if part or not self._left:
                yield from self._told(self._unmasked(part))
            if self._left:
                return
            self._in_frame = False

    def _told(self, data: bytes) -> Iterator[Event]:
        if self._opcode >= CLOSE:
            self._control += data
            if not self._left:
                yield Control(self._opcode, bytes(self._control))
                self._control.clear()
            return
        yield Piece(data, self._begins, self._is_last and not self._left)
        self._begins = False

    def _take_head(self, view: memoryview) -> int:
        """How many bytes of it were the head's; with them the frame has begun, or the head is not whole."""
        had = len(self._head)
        self._head += view[:14]
        size = _head_size(self._head)
        if size is None or len(self._head) < size:
            return min(len(view), 14)
        head, self._head = self._head[:size], bytearray()
        self._begin(head)
        return size - had

    def _begin(self, head: bytearray) -> None:
        opcode, is_last = head[0] & 0x0F, bool(head[0] & _FIN)
        if head[0] & _RESERVED:
            raise Broken("a frame uses an extension that was not agreed on")
        if bool(head[1] & _MASKED) != self._masked:
            raise Broken("a frame is not masked" if self._masked else "a frame is masked")
        self._left = _length(head)
        if opcode >= CLOSE:
            if opcode > PONG or not is_last or self._left > CONTROL_BYTES_MAX:
                raise Broken(f"a control frame of kind {opcode} that is not one")
        elif opcode > BINARY or (opcode == CONTINUATION) != self._in_message:
            raise Broken(f"a frame of kind {opcode} where it cannot be")
        else:
            self._begins = opcode != CONTINUATION
            self._in_message = not is_last
            self._is_last = is_last
        self._mask = bytes(head[-4:]) if self._masked else b""
        self._opcode, self._in_frame = opcode, True

    def _unmasked(self, part: memoryview) -> bytes:
        if not self._mask or not part:
            return bytes(part)
        plain = masked(part, self._mask)
        turn = len(part) % 4
        self._mask = self._mask[turn:] + self._mask[:turn]
        return plain


def _head_size(head: bytearray) -> int | None:
    """How long the head is; None if even that is not known yet."""
    if len(head) < 2:
        return None
    length = head[1] & 0x7F
    return 2 + {126: 2, 127: 8}.get(length, 0) + (4 if head[1] & _MASKED else 0)


def _length(head: bytearray) -> int:
    length = head[1] & 0x7F
    if length < 126:
        return length
    return int.from_bytes(head[2 : 4 if length == 126 else 10], "big")


def masked(data: bytes | memoryview, mask: bytes) -> bytes:
    """As one long number: much faster than byte by byte."""
    size = len(data)
    over = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(over, "big")).to_bytes(size, "big")


def frame(opcode: int, payload: bytes, mask: bytes = b"") -> bytes:
    """A whole message in one frame. Clients hand in four bytes of `mask`."""
    size, bit = len(payload), _MASKED if mask else 0
    if size < 126:
        head = bytes((_FIN | opcode, bit | size))
    elif size < 1 << 16:
        head = bytes((_FIN | opcode, bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FIN | opcode, bit | 127)) + size.to_bytes(8, "big")
    return head + mask + (masked(payload, mask) if mask else payload)


def closing(code: int = NORMAL, why: str = "") -> bytes:
    """The last frame that a server sends."""
    return frame(CLOSE, code.to_bytes(2, "big") + why.encode()[: CONTROL_BYTES_MAX - 2])


def is_asked_for(headers: Mapping[str, str]) -> bool:
    """Whether a request wants its connection to become a WebSocket."""
    wanted = (part.strip().lower() for part in headers.get("connection", "").split(","))
    return "upgrade" in wanted and headers.get("upgrade", "").lower() == "websocket"


def accept(headers: Mapping[str, str], protocols: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The headers of the answer, with the first of the client's protocols that is ours. Raises Broken."""
    key = headers.get("sec-websocket-key", "")
    if not key or headers.get("sec-websocket-version") != "13":
        raise Broken("a WebSocket wants a Sec-WebSocket-Key and Sec-WebSocket-Version: 13")
    ours = tuple(protocols)
    asked = [one.strip() for one in headers.get("sec-websocket-protocol", "").split(",")]
    spoken = next((one for one in asked if one in ours), None)
    if spoken is None:
        found = ", ".join(one for one in asked if one) or "none"
        raise Broken(f"this is spoken over {' or '.join(ours)}; the request asks for {found}")
    return (*upgrade_headers(), ("Sec-WebSocket-Accept", accepted(key)), ("Sec-WebSocket-Protocol", spoken))


def upgrade_headers() -> tuple[tuple[str, str], ...]:
    return (("Upgrade", "websocket"), ("Connection", "Upgrade"))


def accepted(key: str) -> str:
    """The answer to a client's key, by which it knows that it was understood."""
    return base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()
