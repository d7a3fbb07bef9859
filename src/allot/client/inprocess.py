"""The transport without a wire: calls the server's handler in the same process.

It is made for one user and every request is handled as that user's, so the same
checks apply as over HTTPS; what is missing is only sockets, TLS and proof of
identity.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from msgspec.structs import replace

from allot.api import Request, Response, User, errors

_STREAMING = ("watch", "follow")

Handler = Callable[[Request, User], Awaitable[Response]]


class InProcessTransport:
    def __init__(self, handle: Handler, user: User) -> None:
        self._handle = handle
        self._user = user
        self._open: set[_Stream] = set()
        self._closed = False

    async def send(self, request: Request) -> Response:
        if self._closed:
            raise errors.Unavailable("the client is closed")
        response = await self._handle(request, self._user)
        if response.stream is None:
            return response
        if not any(request.asks_for(option) for option in _STREAMING):
            whole = b"".join([piece async for piece in response.stream])  # a long list leaves in pieces
            return replace(response, body=whole, stream=None)
        return replace(response, stream=_Stream(response.stream, self._open))

    async def close(self) -> None:
        self._closed = True
        for stream in list(self._open):
            await stream.aclose()


class _Stream:
    """A stream that somebody else can end while its reader waits for more."""

    def __init__(self, source: AsyncIterator[bytes], open_streams: "set[_Stream]") -> None:
        self._source = source
        self._open = open_streams
        self._reader: asyncio.Task[object] | None = None
        self._ended = False
        open_streams.add(self)

    def __aiter__(self) -> "_Stream":
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        self._reader = asyncio.current_task()
        try:
            return await anext(self._source)
        except BaseException as end:
            self._open.discard(self)
            woken_by_aclose = isinstance(end, asyncio.CancelledError) and self._ended
            if woken_by_aclose and self._reader is not None and self._reader.uncancel() == 0:
                raise StopAsyncIteration from None
            raise
        finally:
            self._reader = None

    async def aclose(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._open.discard(self)
        if self._reader is not None and self._reader is not asyncio.current_task():
            self._reader.cancel()
            return  # the cancelled source runs its own clean-up
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()
