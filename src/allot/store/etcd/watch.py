"""One stream per watch, taken up again where it broke off.

What it promises
    S2  It remembers the last revision that it delivered. Whatever breaks the stream, a new
        one starts from that revision, and what arrives again is not delivered again.
    STORE1: etcd may cut a large answer into fragments; they are put together first.

A reader that does not read stops its own stream by flow control; etcd keeps the rest.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import grpc

from ..contract import Compacted, Event, Unavailable
from . import allot_etcd_pb2 as pb
from .connection import PAUSE_S, PAUSE_S_MAX, WATCH, Connection, NotDone, Verdict, verdict

PROGRESS_EVERY_S = 5.0  # asked for where nothing happens and nobody waits for it
HURRIES_EVERY_S = 0.1  # it is asked for while somebody waits: etcd says nothing on a watch that lags behind


class EtcdWatch:
    def __init__(
        self,
        connection: Connection,
        key: bytes,
        end: bytes,
        strip: int,
        after: int,
        closed: Callable[["EtcdWatch"], None],
    ) -> None:
        self._connection = connection
        self._key, self._end, self._strip = key, end, strip
        self._reached = after
        self._on_close = closed
        self._closing = asyncio.Event()
        self._stirred = asyncio.Event()  # it is closed, or somebody waits for its progress
        self._hurried_s = -HURRIES_EVERY_S
        self._stream: Any = None
        self._member = connection.member  # which the stream goes to
        self._reading: asyncio.Future[Any] | None = None  # outlives a reader that stopped waiting
        self._fragments: list[pb.Event] = []
        self._pause_s = PAUSE_S
        self._was_open = False

    @property
    def progress(self) -> int:
        return self._reached

    def hurry(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._hurried_s >= HURRIES_EVERY_S:
            self._hurried_s = now_s
            self._stirred.set()

    def __aiter__(self) -> "EtcdWatch":
        return self

    async def __anext__(self) -> list[Event]:
        while not self._closing.is_set():
            answer = await self._receive()
            if answer is None:
                continue
            if answer.canceled:
                await self._refused(answer)
            elif events := self._understand(answer):
                return events
        raise StopAsyncIteration

    # -- the stream ----------------------------------------------------------------------------------

    async def _receive(self) -> pb.WatchResponse | None:
        """The next answer; None when there is none yet and the stream had to be looked after."""
        if self._stream is None and not await self._open():
            return None
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._stream.read())
        stirred = asyncio.ensure_future(self._stirred.wait())
        try:
            await asyncio.wait(
                {self._reading, stirred}, timeout=PROGRESS_EVERY_S, return_when="FIRST_COMPLETED"
            )
        finally:
            stirred.cancel()
        if self._closing.is_set():
            return None
        if not self._reading.done():
            self._stirred.clear()
            await self._ask_for_progress()
            return None
        reading, self._reading = self._reading, None
        return await self._read(reading)

    async def _read(self, reading: asyncio.Future[Any]) -> pb.WatchResponse | None:
        try:
            answer = reading.result()
        except (grpc.aio.AioRpcError, asyncio.CancelledError) as error:
            await self._broken(error)
            return None
        if answer is grpc.aio.EOF:
            await self._broken(None)
            return None
        self._pause_s = PAUSE_S
        assert isinstance(answer, pb.WatchResponse)
        return answer

    async def _open(self) -> bool:
        create = pb.WatchCreateRequest(
            key=self._key,
            range_end=self._end,
            # One revision that we have seen already: from the compacted revision itself etcd would start
            # without complaint, though a deletion at it may be gone.
            start_revision=max(1, self._reached),
            progress_notify=True,
            prev_kv=True,
            fragment=True,
        )
        self._member = self._connection.member
        try:
            if self._was_open:  # an etcd that was emptied would wait for our revision, and say nothing
                await self._look_again()
            self._stream = await self._connection.stream(WATCH)
            await self._stream.write(pb.WatchRequest(create_request=create))
            self._was_open = True
        except NotDone:
            await self._broken(None)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            await self._broken(error)
        return self._stream is not None

    async def _look_again(self) -> None:
        try:
            await self._connection.look(self._key)
        except Unavailable as away:
            if self._connection.silence and not self._connection.origin.lost:
                raise NotDone(str(away)) from away
            self.close()
            raise

    async def _broken(self, error: BaseException | None) -> None:
        """Give the stream up and open another a moment later."""
        if isinstance(error, grpc.aio.AioRpcError):
            await self._gone_wrong(error.code(), error.details() or "")
        else:
            await self._pause()

    async def _gone_wrong(self, code: grpc.StatusCode, text: str) -> None:
        match verdict(code, text):
            case Verdict.REFUSED:
                self.close()
                raise Unavailable(f"etcd refused: {text}")
            case Verdict.BAD_TOKEN:
                self._connection.expire_token()
            case _:
                self._connection.leave(self._member)
        await self._pause()

    async def _pause(self) -> None:
        """Longer each time, until a stream works."""
        self._drop()
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, PAUSE_S_MAX)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._closing.wait()

    def _drop(self) -> None:
        self._fragments = []
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None

    async def _ask_for_progress(self) -> None:
        try:
            await self._stream.write(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            await self._broken(error)

    def close(self) -> None:
        self._closing.set()
        self._stirred.set()
        self._drop()
        self._on_close(self)

    # -- what it says --------------------------------------------------------------------------------

    def _understand(self, answer: pb.WatchResponse) -> list[Event]:
        """The events of an answer, once it is complete."""
        self._fragments += answer.events
        if answer.fragment or answer.created:
            return []
        fragments, self._fragments = self._fragments, []
        events = [self._event(found) for found in fragments if found.kv.mod_revision > self._reached]
        if events:
            self._reached = events[-1].revision
        elif not fragments:  # then it was sent to say how far we have seen
            self._reached = max(self._reached, answer.header.revision)
        return events

    async def _refused(self, answer: pb.WatchResponse) -> None:
        """etcd ended the watch on its own account."""
        if answer.compact_revision:
            self.close()
            raise Compacted(self._reached)
        await self._gone_wrong(grpc.StatusCode.UNKNOWN, answer.cancel_reason)

    def _event(self, found: pb.Event) -> Event:
        kv, before = found.kv, found.prev_kv if found.HasField("prev_kv") else None
        deleted = found.type == pb.Event.DELETE
        if before is None and (deleted or kv.create_revision < kv.mod_revision):
            # The value it replaced was compacted away before etcd could send it along.
            self.close()
            raise Compacted(self._reached)
        return Event(
            key=kv.key.decode()[self._strip :],
            value=None if deleted else kv.value,
            revision=kv.mod_revision,
            created=before.create_revision if deleted and before is not None else kv.create_revision,
            previous=before.value if before is not None else None,
        )
