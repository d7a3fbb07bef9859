"""One request and its answer, whatever carries them.

The server's `handle(request, user)` takes the one and returns the other; the
HTTPS listener and the in-process client are two ways to get them there.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # decoded, without the query
    query: Mapping[str, str] = field(default_factory=dict)  # the last value wins
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    body: bytes = b""

    def asks_for(self, option: str) -> bool:
        """Whether a yes-or-no option is on. As upstream reads them: anything but 0 and false is a yes."""
        said = self.query.get(option)
        return said is not None and said.lower() not in ("0", "false")


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None  # a watch or a log; then `body` is empty


class Transport(Protocol):
    """Carries requests to a server. `close` ends every stream that is still open."""

    async def send(self, request: Request) -> Response: ...

    async def close(self) -> None: ...
