"""One HTTPS connection: who is at the other end, what it may send, and what waits for it.

uvicorn reads and writes HTTP. What it leaves out is added here:
    CONN1  What arrives is bounded before and after a head is complete (`arriving`), and in time.
    CONN2  What follows a body is no header: trailers are read past.
    CONN3  A connection is a stranger until it has shown credentials (`strangers`).
    CONN4  What nobody reads is counted, and cut (`unread`).
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from ..fairness.traffic import Traffic
from ..security import Certified, certified
from .arriving import PIPELINED_MAX, Arrival, Excess, TooMuch

log = logging.getLogger(__name__)

ARRIVAL_S = 60.0
"""For a request to arrive once it, or the connection, has begun."""
_FAREWELL_S = 0.2
"""For the last words to a client that is cut off; nothing more is read from it."""
_WRITE_BUFFER_BYTES = 32 * 1024


class Peer:
    """The other end of a connection; whose certificate it showed is read once."""

    __slots__ = ("_certified", "_connection", "_known", "address")

    def __init__(
        self, connection: ssl.SSLObject | None, address: str = "", known: Callable[[], object] = lambda: None
    ) -> None:
        """`known` is called when the other end has shown credentials."""
        self._connection = connection
        self.address = address
        self._certified: Certified | None = None
        self._known: Callable[[], object] | None = known

    def certified(self) -> Certified | None:
        if self._connection is not None:
            self._certified = certified(self._connection.getpeercert())
            self._connection = None
        return self._certified

    def is_known(self) -> None:
        if self._known is not None:
            self._known()
            self._known = None


@dataclass(slots=True)
class Connections:
    """What all connections of a listener share."""

    config: Config
    traffic: Traffic
    state: ServerState = field(default_factory=ServerState)
    idle: dict["Connection", None] = field(default_factory=dict)  # waiting for a request, longest first


class Connection(HttpToolsProtocol):
    def __init__(self, all: Connections, name: object, loop: asyncio.AbstractEventLoop) -> None:
        """`name` is what the connection is known by among strangers."""
        super().__init__(all.config, all.state, {}, loop)
        self._all = all
        self._name = name
        self._arrival = Arrival()
        self._held = 0
        self._is_over = False
        self._early = b""

    # -- what the event loop calls --------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        self._arriving_since: float | None = self.loop.time()
        self._look_again = self.loop.call_later(ARRIVAL_S, self._look)
        address = transport.get_extra_info("peername") or ("",)
        self.peer = Peer(
            transport.get_extra_info("ssl_object"),
            address[0],
            lambda: self._all.traffic.strangers.leave(self._name),
        )
        self._all.traffic.strangers.enter(self._name, self.abort)

    def data_received(self, data: bytes) -> None:
        if self._is_over or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
            self._arrival.received(len(data))
        except TooMuch as much:
            self._refuse(much.excess.status, much.excess.text)
        except httptools.HttpParserCallbackError as wrapped:
            cause = wrapped.__context__
            excess = cause.excess if isinstance(cause, TooMuch) else None
            self._refuse(excess.status if excess else 400, excess.text if excess else "this is not HTTP")
        except httptools.HttpParserError:
            self._refuse(400, "this is not HTTP")
        except httptools.HttpParserUpgrade as upgrade:
            # Perhaps something else is spoken from here on. Until the answer says so, nothing is read.
            self._early = data[upgrade.args[0] :]
            self.flow.pause_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._all.traffic.unread.full(
            self, self.transport.get_write_buffer_size() + self._held, self._abort_soon
        )

    def resume_writing(self) -> None:
        self._all.traffic.unread.flows(self)
        super().resume_writing()

    def eof_received(self) -> None:
        """TLS is on its way out: what is written from now on is thrown away, and complained of each time."""
        if self.cycle is not None and not self.cycle.response_complete:
            log.debug("a client closed its connection during an answer")
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._look_again.cancel()
        self._all.traffic.strangers.leave(self._name)
        self._all.traffic.unread.flows(self)
        self._all.idle.pop(self, None)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        # What was asked here last refers back to the connection: without this, memory is not returned
        # before the collector comes round, which it seldom does.
        self.scope = self.cycle = None  # type: ignore[assignment]

    # -- what the parser calls ------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED_MAX:
            raise TooMuch(Excess.PIPELINED)
        super().on_message_begin()
        self._all.idle.pop(self, None)
        self._arriving_since = self.loop.time()
        self.scope["extensions"] = {"allot.peer": self.peer, "allot.connection": self}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        self._arrival.url(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._arrival.header(len(name) + len(value)):
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._arrival.head_complete()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._arrival.body(len(body), is_wanted=not self.cycle.response_complete)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._arriving_since = None
        self._arrival.complete()
        super().on_message_complete()

    # -- what uvicorn and the application call ----------------------------------------------------

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._arriving_since is None and not self.pipeline and not self.transport.is_closing():
            self._all.idle[self] = None

    def hold(self, size: int) -> None:
        """An answer of so many bytes is in somebody's hands, to be written here piece by piece."""
        self._held += size
        self._all.traffic.unread.holds(self, size)

    def let_go(self, size: int) -> None:
        """So many of them have been written, or will not be."""
        self._held -= size

    def take_early(self) -> bytes:
        """What came together with a request to speak something else."""
        early, self._early = self._early, b""
        return early

    def abort(self) -> None:
        with suppress(AttributeError):  # early 3.11: asyncio's TLS cannot abort what is closed
            self.transport.abort()

    # -- helpers ----------------------------------------------------------------------------------

    def _abort_soon(self) -> None:
        self.loop.call_soon(self.abort)  # not within the write that found out

    def _look(self) -> None:
        """Now and then, rather than by a timer for each request."""
        if self._arriving_since is not None and self.loop.time() - self._arriving_since >= ARRIVAL_S:
            self.abort()
        else:
            self._look_again = self.loop.call_later(ARRIVAL_S / 2, self._look)

    def _refuse(self, status: int, why: str) -> None:
        """Last words, unless something else is being said; then the end."""
        if self.cycle is None or self.cycle.response_complete:
            body = why.encode() + b"\n"
            head = b"content-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[status] + head % len(body) + body)
            self.transport.pause_reading()
            self._is_over = True
            self.loop.call_later(_FAREWELL_S, self.abort)
        else:
            self.abort()
