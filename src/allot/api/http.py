"""One request and its answer, whatever carries them.

The server's `handle(request, user)` takes the one and returns the other; the
HTTPS listener and the in-process client are two ways to get them there.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from .object import Object

SOCKET = "socket"


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str  # decoded, without the query
    query: Mapping[str, str] = {}  # the last value wins
    headers: Mapping[str, str] = {}  # names in lower case
    body: bytes = b""
    source: str = ""  # an address; SOCKET and more on the same machine; nothing in the same process

    def asks_for(self, option: str) -> bool:
        """Whether a yes-or-no option is on. As upstream reads them: anything but 0 and false is a yes."""
        said = self.query.get(option)
        return said is not None and said.lower() not in ("0", "false")


class Response(msgspec.Struct, frozen=True):
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None  # a watch or a log; then `body` is empty
    object: Object | None = None  # what `body` says, for readers in the same process


class WatchChunk(bytes):
    """A piece of a watch, and what it says: the type of each event and the object.

    On the wire it is bytes like any other. A reader in the same process takes the objects as they
    are, so that whoever watches shares one copy, decoded once, with the server and each other.
    Whoever cuts such a piece has plain bytes in hand, and those can still be read.
    """

    _read: Callable[[], Sequence[tuple[str, Object]]]

    @classmethod
    def of(cls, lines: bytes, read: Callable[[], Sequence[tuple[str, Object]]]) -> "WatchChunk":
        """`read` is called by whoever wants the objects: on a wire nobody does."""
        told = cls(lines)
        told._read = read
        return told

    @property
    def events(self) -> Sequence[tuple[str, Object]]:
        return self._read()


class Transport(Protocol):
    """Carries requests to a server. `close` ends every stream that is still open."""

    async def send(self, request: Request) -> Response: ...

    async def close(self) -> None: ...
