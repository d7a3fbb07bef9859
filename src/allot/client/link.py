"""One connection to a server's unix socket: many requests under way, answers in any order.

It is fed by the event loop and knows nothing of reconnecting (`socket` does that). The frames,
and what both sides promise about them, are in `allot.api.frames`.

What it promises
    LINK1  Every exchange ends: with an answer, when its time is up, or when the connection is lost.
    LINK2  An answer that nobody waits for any more disturbs nobody.
    LINK3  A stream that nobody reads holds WINDOW_BYTES and a piece, and keeps nobody else waiting.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

from allot.api import Request, Response, User, errors, frames

from .arriving import Arriving

BODY_BYTES_MAX = 1024 * 1024 * 1024
USERS_MAX = 4096
"""Known to the server at a time. One more takes the number of the first, who is named again when it asks."""
_TAKEN_EVERY = frames.WINDOW_BYTES // 4  # how much is read before the server hears of it


class LinkLost(Exception):
    """The connection ended before the answer came; what became of the request is not known."""


class _Asked(NamedTuple):
    answer: "asyncio.Future[Response]"
    by_s: float
    owner: object


class Link(asyncio.Protocol):
    def __init__(self, answer_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._answer_s = answer_s
        self._transport: asyncio.Transport | None = None
        self._inbox = frames.Inbox(frames.ANSWER_BYTES_MAX)
        self._outbox = frames.Outbox(self._write, self._loop.call_soon, frames.REQUEST_BYTES_MAX)
        self._turns = frames.Turns(self._take, self._broken, self._loop.call_soon)
        self._users: dict[tuple[str, tuple[str, ...], str], int] = {}
        self._asked: dict[int, _Asked] = {}  # the oldest first
        self._streams: dict[int, LinkStream] = {}
        self._last = 0
        self._look_again: asyncio.TimerHandle | None = None
        self._why = ""

    # -- what the transport calls ---------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._why

    async def exchange(self, user: User, request: Request, owner: object) -> Response:
        """Ask, and wait for the answer; of a stream, for its head. `owner` may abandon it.

        Raises Unavailable or TooLarge when nothing was sent, LinkLost when nobody knows.
        """
        if not self.is_open:
            raise errors.Unavailable(f"the connection is closed: {self._why}")
        number = self._last = self._last + 1
        answer: asyncio.Future[Response] = self._loop.create_future()
        head = frames.Ask(
            self._number_of(user), request.method, request.path, request.query, request.headers, request.body
        )
        try:
            self._outbox.head(frames.ASK, number, head)
        except frames.TooLong as long:
            raise errors.TooLarge(f"Request entity too large: {long}") from long
        self._asked[number] = _Asked(answer, self._loop.time() + self._answer_s, owner)
        if self._look_again is None:
            self._look_again = self._loop.call_later(self._answer_s, self._look)
        try:
            return await answer
        except asyncio.CancelledError:
            self._leave(number)
            raise

    def abandon(self, owner: object) -> None:
        """Whoever waits on behalf of `owner` waits no longer."""
        for number, asked in list(self._asked.items()):
            if asked.owner is owner:
                self._leave(number)
                _fail(asked, LinkLost("the client is closed"))

    def close(self) -> None:
        self._lose("the client is closed")
        self._outbox.flush()
        if self._transport is not None:
            self._transport.close()

    # -- what the event loop calls --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._turns.add(self._inbox.feed(data))
        except frames.Broken as broken:
            self._broken(broken)

    def connection_lost(self, error: Exception | None) -> None:
        self._turns.finish()  # what came before the end is as good as ever
        self._lose(str(error) if error else "the server closed the connection")

    # -- inside ---------------------------------------------------------------------------------

    def _broken(self, why: Exception) -> None:
        self._lose(f"the server does not speak as it should: {why}")
        if self._transport is not None:
            self._transport.abort()

    def _take(self, frame: frames.Frame) -> None:
        match frame.kind:
            case frames.ANSWER:
                self._answered(frame.number, frames.read_answer(frame.payload))
            case frames.PIECE:
                stream = self._streams.get(frame.number)
                if stream is not None:
                    stream.push(bytes(frame.payload))
            case frames.END:
                stream = self._streams.pop(frame.number, None)
                if stream is not None:
                    stream.end(str(frame.payload, "utf-8"))
            case other:
                raise frames.Broken(f"a frame of kind {other}")

    def _answered(self, number: int, answer: frames.Answer) -> None:
        asked = self._asked.pop(number, None)
        if asked is None or asked.answer.done():
            if number > self._last:
                raise frames.Broken("an answer that nobody asked for")
            return  # LINK2
        stream = None
        if answer.streams:
            stream = self._streams[number] = LinkStream(number, self._outbox, self._leave)
        response = Response(answer.status, answer.body, answer.content_type, answer.headers, stream)
        asked.answer.set_result(response)

    def _number_of(self, user: User) -> int:
        key = (user.name, user.groups, user.uid)
        number = self._users.get(key)
        if number is None:
            number = len(self._users) + 1
            if number > USERS_MAX:
                number = self._users.pop(next(iter(self._users)))
            self._users[key] = number
            self._outbox.head(frames.MEET, number, frames.Meet(*key, user.extra))
        return number

    def _leave(self, number: int) -> None:
        self._asked.pop(number, None)
        self._streams.pop(number, None)
        if self.is_open:
            self._outbox.raw(frames.LEAVE, number)

    def _look(self) -> None:
        """One timer for all: the oldest is the first whose time is up."""
        self._look_again = None
        now_s = self._loop.time()
        while self._asked:
            number, asked = next(iter(self._asked.items()))
            if asked.by_s > now_s:
                self._look_again = self._loop.call_at(asked.by_s, self._look)
                return
            self._leave(number)
            _fail(asked, LinkLost("no answer in time"))

    def _write(self, ready: bytearray) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(ready)

    def _lose(self, why: str) -> None:
        if self._why:
            return
        self._why = why
        self._turns.stop()
        if self._look_again is not None:
            self._look_again.cancel()
        asked, self._asked = self._asked, {}
        for one in asked.values():
            _fail(one, LinkLost(why))
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.end(why)


def _fail(asked: _Asked, error: Exception) -> None:
    if not asked.answer.done():
        asked.answer.set_exception(error)


class LinkStream(Arriving):
    """The server knows slow readers by what they took (FRAME4); one who leaves disturbs nobody else."""

    def __init__(self, number: int, outbox: frames.Outbox, leave: Callable[[int], None]) -> None:
        super().__init__(lambda: leave(number))
        self._number = number
        self._outbox = outbox
        self._untold = 0  # bytes that were read, and the server does not know it
        self.on_end: Callable[[LinkStream], object] = lambda stream: None

    def taken(self, size: int) -> None:
        self._untold += size
        if self._untold >= _TAKEN_EVERY and not self.ended:
            self._outbox.taken(self._number, self._untold)
            self._untold = 0

    def end(self, broken: str = "") -> None:
        if not self.ended:
            super().end(broken)
            self.on_end(self)

    async def whole(self) -> bytes:
        """Everything, once it is complete."""
        pieces: list[bytes] = []
        size = 0
        try:
            async for piece in self:
                pieces.append(piece)
                size += len(piece)
                if size > BODY_BYTES_MAX:
                    raise errors.TooLarge(f"the answer is longer than {BODY_BYTES_MAX} bytes")
        finally:
            await self.aclose()
        return b"".join(pieces)
