"""One HTTP/1.1 connection: a request goes out, its answer comes back, then the next.

The protocol object is a small state machine around httptools' parser; it is fed
by the event loop and knows nothing of pools, credentials or retries.

What it promises
    CCONN1  One exchange at a time, and every exchange ends: with an answer, or with the
            exception that broke the connection.
    CCONN2  An answer is bounded: head and body over their limits break the connection.
    CCONN3  A stream that nobody reads stops the reading from the socket; at most
            STREAM_BYTES_AHEAD (and one read) wait in memory.
    CCONN4  `sent` and `answered` tell how far an exchange came: whether anything of the
            request went out, and whether any byte of the answer arrived. Between the two,
            the server may just have been closing a kept connection.
"""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from allot.api import Response

from .arriving import Arriving

HEAD_BYTES_MAX = 256 * 1024
BODY_BYTES_MAX = 1024 * 1024 * 1024
STREAM_BYTES_AHEAD = 1024 * 1024


class BrokenConnection(Exception):
    """The connection ended before the answer did."""


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.sent = False
        self.answered = False
        self.reusable = True
        self.on_lost: Callable[[Connection], object] = lambda connection: None
        self.idle_since_s = 0.0
        self.idle_s_max: float | None = None  # as the server's Keep-Alive header says
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Response] | None = None
        self._wants_stream = False
        self._stream: Stream | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._body: list[bytes] = []
        self._start_message()

    # -- what the pool calls --------------------------------------------------------------------

    async def exchange(self, encoded: bytes, wants_stream: bool) -> Response:
        """Send a request and wait for its answer; of a stream, for its head."""
        self.sent = self.answered = False
        if not self.reusable or self._transport is None:
            raise BrokenConnection("the connection is closed")
        self.sent = True
        self._wants_stream = wants_stream
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(encoded)
        try:
            await self._writable.wait()
            return await self._answer
        except BaseException:
            self.close()  # an abandoned answer would be taken for the next one's
            raise

    @property
    def is_busy(self) -> bool:
        return self._answer is not None or self._stream is not None

    def close(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    # -- what the event loop calls --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if not self.is_busy:
            self._break("the server sent what nobody asked for")
            return
        self.answered = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as broken:
            self._break(f"the server does not speak HTTP/1.1: {broken.__context__ or broken}")

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if self._ends_with_connection and self.is_busy:
            self.on_message_complete()  # no length, no chunks: the end of the connection is the end
        self._break(str(error) if error else "the server closed the connection")
        self._writable.set()
        self.on_lost(self)

    # -- what the parser calls ------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self.is_busy:
            self._break("the server sent a second answer")
        self._start_message()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > HEAD_BYTES_MAX:
            self._break("the head of the answer is too large")
            return
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        headers = dict(self._headers)
        self._content_type = headers.get("content-type", "")
        framed = "content-length" in headers or "transfer-encoding" in headers
        bodiless = self._parser.get_status_code() < 200 or self._parser.get_status_code() in (204, 304)
        self._ends_with_connection = not framed and not bodiless
        self._note_keep_alive(headers.get("keep-alive", ""))
        if self._wants_stream and self._parser.get_status_code() == 200 and self._transport is not None:
            self._stream = Stream(self._transport, self.close)
            self._settle(self._response(b"", self._stream))

    def on_body(self, body: bytes) -> None:
        if self._stream is not None:
            self._stream.push(body)
            return
        self._body_bytes += len(body)
        if self._body_bytes > BODY_BYTES_MAX:
            self._break("the answer is too large")
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # 100 Continue and its like announce the answer
            return
        if not self._parser.should_keep_alive() or self._ends_with_connection:
            self.reusable = False
        if self._stream is not None:
            self._stream.end()
            self._stream = None
            self.close()
        else:
            self._settle(self._response(b"".join(self._body), None))
        self._body = []

    # -- inside ---------------------------------------------------------------------------------

    def _start_message(self) -> None:
        self._headers: list[tuple[str, str]] = []
        self._body = []
        self._head_bytes = self._body_bytes = 0
        self._content_type = ""
        self._ends_with_connection = False

    def _note_keep_alive(self, header: str) -> None:
        for part in header.split(","):
            name, _, value = part.strip().partition("=")
            if name == "timeout" and value.isascii() and value.isdigit():
                self.idle_s_max = float(value[:6])

    def _response(self, body: bytes, stream: "Stream | None") -> Response:
        return Response(
            self._parser.get_status_code(), body, self._content_type, tuple(self._headers), stream
        )

    def _settle(self, response: Response) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_result(response)

    def _break(self, why: str) -> None:
        self.reusable = False
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(BrokenConnection(why))
        if self._stream is not None:
            self._stream.end(why)
            self._stream = None
        if self._transport is not None:
            self._transport.abort()


class Stream(Arriving):
    """Slow readers stop the reading from the socket (CCONN3); one who leaves costs the connection."""

    def __init__(self, transport: asyncio.Transport, abandon: Callable[[], None]) -> None:
        super().__init__(abandon)
        self._transport = transport
        self._bytes = 0
        self._paused = False

    def pushed(self, size: int) -> None:
        self._bytes += size
        if self._bytes > STREAM_BYTES_AHEAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def taken(self, size: int) -> None:
        self._bytes = 0
        if self._paused and not self.ended:
            self._paused = False
            self._transport.resume_reading()
