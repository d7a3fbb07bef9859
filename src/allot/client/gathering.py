"""Transactions of several tasks, sent as one while others are under way.

A scheduler that binds many pods at once has a small transaction for each of them. Every request costs
its sender and the server as much as a write or two, so those that would have to wait are sent together.
With nothing under way nobody waits, but for those who say that they have time: the first of them lingers a
moment for the others.

What it promises
    GATHER1  A caller is answered as if its writes had been sent alone. What refuses a gathered transaction
             refuses the caller whose write it was, and the others are sent again without it: nothing of it
             was carried out.
    GATHER2  The writes of one caller are never divided, and stay in their order.
    GATHER3  When no answer comes, or the one who sends is ended, all hear that the outcome is unknown.

There is no task of its own: one of those who wait sends for all.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from allot.api import Object, errors, transaction

from .together import member_of
from .writes import Write

UNDER_WAY_MAX = 2
WRITES_MAX = 48
BYTES_MAX = 128 * 1024
LINGER_S = 0.025

Send = Callable[[Sequence[Write]], Awaitable[list[Object]]]
Sleep = Callable[[float], Awaitable[None]]


class _Parcel:
    """The writes of one caller, and the caller's turn: to send for a batch, or to be answered."""

    __slots__ = ("has_time", "size", "turn", "writes")

    def __init__(self, writes: Sequence[Write], has_time: bool) -> None:
        self.writes = writes
        self.has_time = has_time
        self.size = sum(len(write.body) for write in writes)
        self.turn: asyncio.Future[Any] | None = None  # a _Batch, or the answers


class _Batch(list[_Parcel]):
    """To be sent by the caller of the first."""


class Gathering:
    def __init__(self, send: Send, sleep: Sleep = asyncio.sleep) -> None:
        self._send = send
        self._sleep = sleep
        self._under_way = 0
        self._lingers = False  # one has a place, and waits for others
        self._waiting: deque[_Parcel] = deque()

    async def together(self, writes: Sequence[Write], *, has_time: bool = False) -> list[Object]:
        """See `Client.gathered`."""
        mine = _Parcel(writes, has_time)
        batch = _Batch([mine])
        if self._under_way >= UNDER_WAY_MAX or (has_time and self._lingers):
            turn = await self._turn(mine)
            if not isinstance(turn, _Batch):
                return turn
            batch = turn
        else:
            self._under_way += 1
        try:
            if not self._lingers and all(one.has_time for one in batch):
                await self._linger(batch)
            return await self._carry_out(batch)
        finally:
            self._hand_over()

    async def _linger(self, batch: _Batch) -> None:
        self._lingers = True
        try:
            await self._sleep(LINGER_S)
        finally:
            self._lingers = False
        self._fill(batch)

    async def _turn(self, mine: _Parcel) -> _Batch | list[Object]:
        mine.turn = turn = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            found: _Batch | list[Object] = await turn
        except asyncio.CancelledError:
            was_answered = not turn.cancelled() and turn.exception() is None  # in this very moment
            if was_answered and isinstance(turn.result(), _Batch):  # it was to send, and will not
                self._waiting.extendleft(reversed(turn.result()[1:]))
                self._hand_over()
            elif mine in self._waiting:
                self._waiting.remove(mine)
            raise
        return found

    def _hand_over(self) -> None:
        """The next batch is sent by the first in it."""
        batch = _Batch()
        self._fill(batch)
        if batch:
            _settle(batch[0], batch)
        else:
            self._under_way -= 1

    def _fill(self, batch: _Batch) -> None:
        """With those who wait, as many as are sent at once."""
        count, size = sum(len(one.writes) for one in batch), sum(one.size for one in batch)
        while self._waiting:
            next_one = self._waiting[0]
            assert next_one.turn is not None
            if not next_one.turn.done():
                count, size = count + len(next_one.writes), size + next_one.size
                if batch and (count > WRITES_MAX or size > BYTES_MAX):
                    break
                batch.append(next_one)
            self._waiting.popleft()

    async def _carry_out(self, batch: _Batch) -> list[Object]:
        """The answers of the first; the others get theirs."""
        mine = batch[0]
        mine.turn = asyncio.get_running_loop().create_future()
        try:
            for parcel in await self._sent_together(batch):
                try:
                    _settle(parcel, await self._send(parcel.writes))
                except errors.ApiError as refused:
                    _settle(parcel, refused)
        except BaseException:  # mine may have been answered before the others were, and nobody asks any more
            if mine.turn.done() and not mine.turn.cancelled():
                mine.turn.exception()
            raise
        finally:  # whoever has no answer by now will get none (GATHER3)
            for parcel in batch[1:]:
                _settle(parcel, errors.Unavailable("the task that sent it with its own writes was ended"))
        answers: list[Object] = await mine.turn
        return answers

    async def _sent_together(self, batch: _Batch) -> Sequence[_Parcel]:
        """Those that are to be sent alone; the others have been answered."""
        left, alone = list(batch), list[_Parcel]()
        while len(left) > 1:
            try:
                answers = await self._send([write for parcel in left for write in parcel.writes])
            except errors.ApiError as refused:
                culprit = _culprit(left, refused)
                if culprit is not None:
                    left.remove(culprit)
                    alone.append(culprit)
                elif _is_of_the_whole(refused):
                    return [*left, *alone]
                else:
                    for parcel in left:
                        _settle(parcel, refused)
                    return alone
            else:
                for parcel in left:
                    count = len(parcel.writes)
                    _settle(parcel, answers[:count])
                    answers = answers[count:]
                return alone
        return [*left, *alone]


def _culprit(parcels: Sequence[_Parcel], refused: errors.ApiError) -> _Parcel | None:
    """Whose write was refused. None where it was none of them, but the transaction."""
    member = member_of(refused)
    if member is None:
        return None
    for parcel in parcels:
        if member < len(parcel.writes):
            return parcel
        member -= len(parcel.writes)
    return None


def _is_of_the_whole(refused: errors.ApiError) -> bool:
    """Whether it is their being one transaction that is refused, which each alone may be spared: as too much,
    or because one of the many objects in it always moved."""
    is_busy = isinstance(refused, errors.TooManyRequests) and refused.group == transaction.GROUP
    return is_busy or isinstance(refused, errors.BadRequest | errors.TooLarge)


def _settle(parcel: _Parcel, outcome: _Batch | list[Object] | errors.ApiError) -> None:
    """Once; whoever has left does not hear it."""
    turn = parcel.turn
    if turn is None or turn.done():
        return
    if isinstance(outcome, errors.ApiError):
        turn.set_exception(outcome)
    else:
        turn.set_result(outcome)
