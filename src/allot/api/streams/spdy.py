"""SPDY/3.1, as far as port-forward needs it: streams side by side on one connection.

kubectl opens two streams for each connection that it forwards, with headers that say which of them
carries data and which errors, to which port, and which two belong together. Windows are not kept:
neither kubectl nor upstream's servers heed them, so whoever is slow holds up the whole connection.

What it promises
    SPDY1  However bytes are cut on their way, the same streams and the same data come out.
    SPDY2  Data is handed on as it arrives; only heads and blocks of headers are held, and those are bounded.
    SPDY3  What breaks the protocol raises `Broken`, and nothing more is read.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

PROTOCOL = "SPDY/3.1+portforward.k8s.io"
"""The WebSocket protocol whose messages, put together, are a SPDY connection."""
REFUSED = 3
"""Why a stream is reset: nothing was done for it."""
BLOCK_BYTES_MAX = 64 * 1024

_HEAD, _NUMBER = struct.Struct(">II"), struct.Struct(">I")
_CONTROL, _VERSION = 1 << 31, 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY, _HEADERS = 1, 2, 3, 6, 7, 8
_FIN = 0x01
_ID = (1 << 31) - 1
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language"
    " accept-ranges age allow authorization cache-control connection content-base content-encoding"
    " content-language content-length content-location content-md5 content-range content-type date etag"
    " expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since"
    " last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer"
    " retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate"
    " method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin"
)
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _counted(text: str) -> bytes:
    content = text.encode()
    return _NUMBER.pack(len(content)) + content


DICTIONARY = b"".join(_counted(word.replace("_", " ")) for word in _WORDS.split()) + _REST.encode()
"""What both ends take as said before the first block of headers: every peer must have the same."""


class Broken(Exception):
    """The other end does not speak the protocol."""


class Opened(NamedTuple):
    stream: int
    headers: Mapping[str, str]  # names in lower case
    ends: bool


class Replied(NamedTuple):
    """The other end has taken a stream that was opened here. Before that it may drop what is sent on it."""

    stream: int
    ends: bool


class Data(NamedTuple):
    stream: int
    data: bytes
    ends: bool


class Reset(NamedTuple):
    stream: int


class Pinged(NamedTuple):
    number: int


class GoneAway(NamedTuple):
    pass


Event = Opened | Replied | Data | Reset | Pinged | GoneAway


class Inbox:
    """Bytes of one connection in, events out."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._held = bytearray()  # a head, then a control frame's content
        self._data: tuple[int, bool] | None = None  # the stream of the frame that is arriving, and if it ends
        self._control: tuple[int, int] | None = None  # kind and flags
        self._left = 0

    def feed(self, data: bytes) -> list[Event]:
        """Raises Broken."""
        return list(self._events(memoryview(data)))

    def _events(self, view: memoryview) -> Iterator[Event]:
        while True:
            if self._data is not None:
                part = view[: self._left]
                view, self._left = view[len(part) :], self._left - len(part)
                stream, ends = self._data
                if part or not self._left:
                    yield Data(stream, bytes(part), ends and not self._left)
                if self._left:
                    return
                self._data = None
            wanted = self._left if self._control is not None else _HEAD.size
            part = view[: wanted - len(self._held)]
            self._held += part
            view = view[len(part) :]
            if len(self._held) < wanted:
                return
            whole, self._held = bytes(self._held), bytearray()
            if self._control is None:
                self._begin(*_HEAD.unpack(whole))
            else:
                kind, flags = self._control
                self._control = None
                yield from self._controlled(kind, flags, whole)

    def _begin(self, first: int, second: int) -> None:
        flags, self._left = second >> 24, second & 0xFFFFFF
        if not first & _CONTROL:
            self._data = (first & _ID, bool(flags & _FIN))
            return
        if (first >> 16) & 0x7FFF != _VERSION:
            raise Broken(f"a frame of SPDY version {(first >> 16) & 0x7FFF}, where 3 is spoken")
        if self._left > BLOCK_BYTES_MAX:
            raise Broken(f"a control frame of {self._left} bytes")
        self._control = (first & 0xFFFF, flags)

    def _controlled(self, kind: int, flags: int, content: bytes) -> Iterator[Event]:
        if kind == _SYN_STREAM:
            yield Opened(_first(content) & _ID, self._headers(content[10:]), bool(flags & _FIN))
        elif kind == _RST_STREAM:
            yield Reset(_first(content) & _ID)
        elif kind == _PING:
            yield Pinged(_first(content))
        elif kind == _GOAWAY:
            yield GoneAway()
        elif kind in (_SYN_REPLY, _HEADERS):
            self._headers(content[4:])  # nobody asked; but all blocks together are one compressed text
            if kind == _SYN_REPLY:
                yield Replied(_first(content) & _ID, bool(flags & _FIN))

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, BLOCK_BYTES_MAX)
        except zlib.error as wrong:
            raise Broken(f"a block of headers cannot be read: {wrong}") from None
        if self._inflate.unconsumed_tail:
            raise Broken(f"a block of more than {BLOCK_BYTES_MAX} bytes of headers")
        found: dict[str, str] = {}
        try:
            (count,), at = _NUMBER.unpack_from(plain), 4
            for _ in range(count):
                name, at = _text(plain, at)
                found[name.lower()], at = _text(plain, at)
        except (struct.error, UnicodeDecodeError):
            raise Broken("a block of headers is cut off") from None
        return found


def _first(content: bytes) -> int:
    if len(content) < 4:
        raise Broken("a control frame is cut off")
    return int(_NUMBER.unpack_from(content)[0])


def _text(plain: bytes, at: int) -> tuple[str, int]:
    (size,) = _NUMBER.unpack_from(plain, at)
    at += 4
    if size > len(plain) - at:
        raise struct.error
    return plain[at : at + size].decode(), at + size


class Outbox:
    """What is to be sent, as bytes, in the order in which it was asked for."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream: int, headers: Mapping[str, str]) -> bytes:
        """Streams that a client opens have odd numbers."""
        return _control(_SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._block(headers))

    def reply(self, stream: int) -> bytes:
        """The stream that the other end opened is taken. There are no headers to say about it."""
        return _control(_SYN_REPLY, _NUMBER.pack(stream) + self._block({}))

    def _block(self, headers: Mapping[str, str]) -> bytes:
        said = b"".join(_counted(name.lower()) + _counted(value) for name, value in headers.items())
        packed = self._deflate.compress(_NUMBER.pack(len(headers)) + said)
        return packed + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def data(stream: int, content: bytes, *, ends: bool = False) -> bytes:
    return _HEAD.pack(stream, (_FIN if ends else 0) << 24 | len(content)) + content


def reset(stream: int, why: int) -> bytes:
    return _control(_RST_STREAM, struct.pack(">II", stream, why))


def ping(number: int) -> bytes:
    return _control(_PING, _NUMBER.pack(number))


def _control(kind: int, content: bytes) -> bytes:
    return _HEAD.pack(_CONTROL | _VERSION << 16 | kind, len(content)) + content
