"""One request and its answer, whatever carries them.

The server's `handle(request, user)` takes the one and returns the other; the
HTTPS listener and the in-process client are two ways to get them there.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
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
    repeated: Mapping[str, Sequence[str]] = {}  # all values of what the query has several times
    audit_id: str = ""  # of a transaction: its requests are audited before it, and name it

    def asks_for(self, option: str) -> bool:
        """Whether a yes-or-no option is on. As upstream reads them: anything but 0 and false is a yes."""
        said = self.query.get(option)
        return said is not None and said.lower() not in ("0", "false")

    def values(self, option: str) -> Sequence[str]:
        """Every value of an option, in order."""
        return self.repeated.get(option) or ([self.query[option]] if option in self.query else [])


def repeated(pairs: Sequence[tuple[str, str]], query: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """What of `pairs` went missing when they became `query`, for a Request."""
    if len(pairs) == len(query):
        return {}
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values for name, values in found.items() if len(values) > 1}


class Duplex(Protocol):
    """A connection on which both ends talk at once."""

    async def read(self) -> bytes:
        """Some bytes; none at the end, also when the connection broke."""

    async def write(self, data: bytes) -> None:
        """Waits while the other end takes nothing. Raises ConnectionError."""


Talk = Callable[[Duplex], Awaitable[None]]
"""What is said on a connection that a request was upgraded to. When it returns, the connection is closed."""


class Response(msgspec.Struct, frozen=True):
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None  # a watch or a log; then `body` is empty
    object: Object | None = None  # what `body` says, for readers in the same process
    talk: Talk | None = None  # with status 101: what follows. Carried by HTTPS, and called there once


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
