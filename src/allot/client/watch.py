"""A watch, from bytes to events.

The server sends one JSON object a line and cuts lines anywhere; `Lines` puts
them together again. A server in the same process hands the objects over as they
are (`WatchChunk`). An ERROR event is not handed on as an event: it is raised, because
whoever watches must do something else now (list again, most often).
"""

from collections.abc import AsyncIterator
from enum import Enum
from typing import NamedTuple

import msgspec

from allot.api import Object, WatchChunk, errors

LINE_BYTES_MAX = 64 * 1024 * 1024


class EventType(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


_TYPES = {type.value: type for type in EventType}
_HEADS = {b'{"type":"%b","object":' % type.value.encode(): type for type in EventType}
"""How servers write the beginning of a line, nearly always."""


class WatchEvent(NamedTuple):
    type: EventType
    object: Object  # of a bookmark, only metadata.resourceVersion and annotations mean something


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_line = msgspec.json.Decoder(_Line)


class Lines:
    """Bytes in, whole lines out."""

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def between(self) -> bool:
        """Whether no line has been begun."""
        return not self._rest

    def feed(self, chunk: bytes) -> list[bytes]:
        if b"\n" not in chunk:
            self._rest += chunk
            if len(self._rest) > LINE_BYTES_MAX:
                raise errors.TooLarge(f"a watch event is longer than {LINE_BYTES_MAX} bytes")
            return []
        *lines, rest = chunk.split(b"\n")
        if self._rest:
            lines[0] = bytes(self._rest + lines[0])
        self._rest = bytearray(rest)
        return [line for line in lines if line.strip()]


def decode(line: bytes) -> WatchEvent:
    """One line as an event. Raises what an ERROR event says."""
    return _decode_usual(line) or _decode_any(line)


def _decode_usual(line: bytes) -> WatchEvent | None:
    """A line as servers write it: between its head and the last brace lies the object, if that can
    be read as one. So it is gone through once, for what every reader asks first, and not twice."""
    begin = line.find(b"{", 1)
    type = _HEADS.get(line[:begin])
    if type is None or not line.endswith(b"}"):
        return None
    object = Object(line[begin:-1])
    try:
        object.metadata  # noqa: B018
    except msgspec.MsgspecError:
        return None
    return WatchEvent(type, object)


def _decode_any(line: bytes) -> WatchEvent:
    try:
        read = _line.decode(line)
        if read.type == "ERROR":
            raise errors.from_status(msgspec.json.decode(read.object))
        return WatchEvent(_TYPES[read.type], Object(bytes(read.object)))
    except (msgspec.MsgspecError, ValueError, KeyError) as broken:
        raise errors.Internal(f"the server sent a watch event that cannot be read: {broken}") from broken


async def events(stream: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent]:
    """The events of a watch, until the server ends it."""
    lines = Lines()
    try:
        async for chunk in stream:
            if isinstance(chunk, WatchChunk) and lines.between:
                for type, object in chunk.events:
                    yield WatchEvent(_TYPES[type], object)
            else:
                for line in lines.feed(chunk):
                    yield decode(line)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
