"""Requests and answers as frames, for two processes on one machine.

One connection carries any number of requests at once. Each has a number; whatever belongs to it,
in either direction, bears that number, and answers come in the order in which they are ready.

    frame    length of the payload (4 bytes) · kind (1) · number (8) · payload       big-endian

    client   MEET   number of a user    who it is: from now on requests may be for that user, and for
                                        no other who had the number before
             ASK    number of a request the request, and the number of the user it is for
             LEAVE                      nobody waits for the answer, or reads the stream, any more
             TAKEN                      so many bytes of the stream have been read
    server   ANSWER                     the whole answer, or the head of a stream
             PIECE                      some bytes of the stream
             END                        nothing more comes; why, if that was not its natural end

Heads are MessagePack arrays. Bodies and pieces travel as the bytes that they are.

What it promises
    FRAME1  However the bytes are cut on their way, the same frames come out in the same order.
    FRAME2  A frame over the limit is refused by its length, before any of it is kept.
    FRAME3  Frames that become ready in one turn of the event loop leave in one write.
    FRAME4  Of a stream, WINDOW_BYTES and one piece wait on the way at most: the reader says what it took.
    FRAME5  Of frames that arrive together a few are taken in each turn of the event loop, in order: what
            follows from the first is on its way to the other side while the rest are taken. Otherwise both
            sides work in lockstep, each waiting for the other to finish with all of them.
"""

import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

MEET: Final = 1
ASK: Final = 2
LEAVE: Final = 3
TAKEN: Final = 4
ANSWER: Final = 16
PIECE: Final = 17
END: Final = 18

BODY_BYTES_MAX = 3 * 1024 * 1024
"""Of a request, as over HTTPS."""
HEAD_BYTES_MAX = 128 * 1024
REQUEST_BYTES_MAX = 4 * 1024 * 1024
"""Of a frame that a server takes. A body between the two limits is answered, not cut off."""
ANSWER_BYTES_MAX = 64 * 1024 * 1024
WINDOW_BYTES = 1024 * 1024
FRAMES_PER_TURN = 8
WAITING_MAX = 32
"""With more frames waiting nobody is idle, and there is nothing to gain from small turns."""

_PREFIX = struct.Struct(">IBQ")
_LENGTH = struct.Struct(">I")
_COUNT = struct.Struct(">Q")


class Meet(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


class Ask(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    user: int
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Answer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    status: int
    body: bytes
    content_type: str
    headers: tuple[tuple[str, str], ...]
    streams: bool  # then `body` is empty, and pieces follow


Head = Meet | Ask | Answer


def _plain(value: object) -> object:
    """What MessagePack does not know as it is: bytes and mappings of other types."""
    if isinstance(value, bytes):
        return memoryview(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} does not travel")


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
read_meet = msgspec.msgpack.Decoder(Meet).decode
read_ask = msgspec.msgpack.Decoder(Ask).decode
read_answer = msgspec.msgpack.Decoder(Answer).decode


class Broken(Exception):
    """What arrived is not a frame, or not one that may come here. The connection cannot go on."""


class Frame(msgspec.Struct, frozen=True):
    kind: int
    number: int
    payload: memoryview

    def bytes_taken(self) -> int:
        """The payload of TAKEN."""
        if len(self.payload) != _COUNT.size:
            raise Broken("a count has eight bytes")
        return int(_COUNT.unpack(self.payload)[0])


class Inbox:
    """Bytes in, frames out."""

    def __init__(self, payload_bytes_max: int) -> None:
        self._payload_bytes_max = payload_bytes_max
        self._rest = bytearray()

    @property
    def between(self) -> bool:
        """Whether no frame has been begun."""
        return not self._rest

    def feed(self, data: bytes) -> list[Frame]:
        """Every frame that is complete now. Raises Broken (FRAME2)."""
        if not self._rest:
            frames, end = self._cut(data)
            if end < len(data):
                self._rest += data[end:]
            return frames
        self._rest += data
        if len(self._rest) < _PREFIX.size or len(self._rest) < self._first_end():
            return []
        whole = bytes(self._rest)
        frames, end = self._cut(whole)
        del self._rest[:end]
        return frames

    def _first_end(self) -> int:
        """Where the frame that has been begun will end."""
        length: int = _LENGTH.unpack_from(self._rest)[0]
        self._allow(length)
        return _PREFIX.size + length

    def _cut(self, data: bytes) -> tuple[list[Frame], int]:
        frames: list[Frame] = []
        view, at, size = memoryview(data), 0, len(data)
        while size - at >= _PREFIX.size:
            length, kind, number = _PREFIX.unpack_from(data, at)
            self._allow(length)
            end = at + _PREFIX.size + length
            if end > size:
                break
            frames.append(Frame(kind, number, view[at + _PREFIX.size : end]))
            at = end
        return frames, at

    def _allow(self, length: int) -> None:
        if length > self._payload_bytes_max:
            raise Broken(f"a frame of {length} bytes; the limit is {self._payload_bytes_max}")


Later = Callable[[Callable[[], object]], object]
"""Calls back when this turn of the event loop is over."""


class Turns:
    """Hands frames to `take`, a few in each turn of the event loop (FRAME5)."""

    def __init__(
        self, take: Callable[[Frame], None], broken: Callable[[Exception], None], later: Later
    ) -> None:
        """`broken` is told when `take` cannot make sense of a frame; nothing is taken after that."""
        self._take = take
        self._broken = broken
        self._later = later
        self._waiting: deque[Frame] = deque()
        self._is_called = False

    def add(self, frames: Iterable[Frame]) -> None:
        self._waiting.extend(frames)
        if not self._is_called:
            self._turn()
        elif len(self._waiting) > WAITING_MAX:
            self.finish()

    def finish(self) -> None:
        """Take all that wait."""
        self._take_some(len(self._waiting))

    def stop(self) -> None:
        self._waiting.clear()

    def _turn(self) -> None:
        self._is_called = False
        waiting = len(self._waiting)
        self._take_some(waiting if waiting > WAITING_MAX else min(waiting, FRAMES_PER_TURN))
        if self._waiting:
            self._is_called = True
            self._later(self._turn)

    def _take_some(self, count: int) -> None:
        try:
            for _ in range(count):
                if not self._waiting:
                    return  # one of them ended it
                self._take(self._waiting.popleft())
        except (Broken, msgspec.MsgspecError, UnicodeDecodeError) as broken:
            self._waiting.clear()
            self._broken(broken)


class TooLong(Exception):
    """The other side would not take a frame of this length."""


class Outbox:
    """Frames on their way out (FRAME3)."""

    def __init__(self, write: Callable[[bytearray], object], later: Later, payload_bytes_max: int) -> None:
        self._write = write
        self._later = later
        self._payload_bytes_max = payload_bytes_max
        self._ready = bytearray()

    def head(self, kind: int, number: int, head: Head) -> None:
        """Raises TooLong, and then nothing leaves."""
        ready = self._begin()
        at = len(ready)
        ready += _PREFIX.pack(0, kind, number)
        try:
            _encoder.encode_into(head, ready, -1)
            length = len(ready) - at - _PREFIX.size
            if length > self._payload_bytes_max:
                raise TooLong(f"{length} bytes; the limit is {self._payload_bytes_max}")
        except BaseException:
            del ready[at:]
            raise
        _LENGTH.pack_into(ready, at, length)

    def raw(self, kind: int, number: int, payload: bytes | memoryview = b"") -> None:
        ready = self._begin()
        ready += _PREFIX.pack(len(payload), kind, number)
        ready += payload

    def taken(self, number: int, count: int) -> None:
        self.raw(TAKEN, number, _COUNT.pack(count))

    def flush(self) -> None:
        if self._ready:
            ready, self._ready = self._ready, bytearray()
            self._write(ready)

    def _begin(self) -> bytearray:
        if not self._ready:
            self._later(self.flush)
        return self._ready
