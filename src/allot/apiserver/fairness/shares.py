"""How much of the server one user may have at once, and all of them together.

Requests that are being answered, and the bytes of their bodies, are in memory. Half of the requests
are one user's at most; whoever would have more is told to come back (429).

A large body is not read before there is room for it: for its user, and in all. Until then it stays
where it is, with the client, and costs nothing. Those of one user wait for each other, and users take
turns; who has waited for PATIENCE_S, or would be one too many to wait, is told to come back. Bodies
that are small are not counted: as many as there may be requests fit anyway.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from allot.api import errors
from allot.base import Metrics

from ..requests.aside import SMALL_BYTES

REQUESTS_MAX = 800
REQUESTS_PER_USER_MAX = REQUESTS_MAX // 2
BODY_BYTES_MAX = 64 * 1024 * 1024
BODY_BYTES_PER_USER_MAX = 8 * 1024 * 1024
WAITING_PER_USER_MAX = 64
PATIENCE_S = 15.0


class _Waiting(NamedTuple):
    size: int
    turn: asyncio.Future[None]


class Shares:
    def __init__(self, metrics: Metrics) -> None:
        self._rejected = metrics.counter(
            "allot_requests_rejected_total", "Requests that were told to come back, by reason.", "reason"
        )
        metrics.reading("allot_request_body_bytes", "Bytes of large bodies in memory.", lambda: self._bytes)
        metrics.reading(
            "allot_request_bodies_waiting",
            "Large bodies that are not read yet, since there is no room for them.",
            lambda: sum(map(len, self._lines.values())),
        )
        self.requests = 0  # streams do not count once they run
        self._bytes = 0
        self._requests_of: dict[str, int] = {}
        self._bytes_of: dict[str, int] = {}
        self._lines: dict[str, deque[_Waiting]] = {}  # who waits for room, by user; next user first

    def enter(self, user: str) -> None:
        """A request is to be answered. Raises TooManyRequests; else there will be a `leave`."""
        taken = self._requests_of.get(user, 0)
        if taken >= REQUESTS_PER_USER_MAX:
            raise self._refusal("user-requests")
        if self.requests >= REQUESTS_MAX:
            raise self._refusal("requests")
        self._requests_of[user] = taken + 1
        self.requests += 1

    def leave(self, user: str) -> None:
        _lessen(self._requests_of, user, 1)
        self.requests -= 1

    def take_now(self, user: str, size: int) -> None:
        """Room for bytes that are there already. Raises TooManyRequests; else they will be given back."""
        if user in self._lines or not self._fits(user, size):
            raise self._refusal("bodies")
        self._take(user, size)

    async def take(self, user: str, size: int) -> None:
        """The same, waiting for it."""
        line = self._lines.get(user)
        if line is None and self._fits(user, size):
            self._take(user, size)
            return
        if line is not None and len(line) >= WAITING_PER_USER_MAX:
            raise self._refusal("bodies-waiting")
        waiting = _Waiting(size, asyncio.get_running_loop().create_future())
        self._lines.setdefault(user, deque()).append(waiting)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await waiting.turn
        except (TimeoutError, asyncio.CancelledError) as left:
            if waiting.turn.done() and not waiting.turn.cancelled():
                self.give_back(user, size)
            else:
                self._drop(user, waiting)
            if isinstance(left, TimeoutError):
                raise self._refusal("bodies-patience") from None
            raise

    def give_back(self, user: str, size: int) -> None:
        _lessen(self._bytes_of, user, size)
        self._bytes -= size
        self._serve()

    def _fits(self, user: str, size: int) -> bool:
        of_user = self._bytes_of.get(user, 0)
        return of_user + size <= BODY_BYTES_PER_USER_MAX and self._bytes + size <= BODY_BYTES_MAX

    def _take(self, user: str, size: int) -> None:
        self._bytes_of[user] = self._bytes_of.get(user, 0) + size
        self._bytes += size

    def _serve(self) -> None:
        """Room for whoever is next. Who was served goes to the end of the line of users."""
        for user in list(self._lines):
            first = self._lines[user][0]
            if self._fits(user, first.size):
                self._take(user, first.size)
                first.turn.set_result(None)
                self._drop(user, first)
                if user in self._lines:
                    self._lines[user] = self._lines.pop(user)

    def _drop(self, user: str, waiting: _Waiting) -> None:
        line = self._lines[user]
        line.remove(waiting)
        if not line:
            del self._lines[user]

    def _refusal(self, reason: str) -> errors.TooManyRequests:
        self._rejected.add(1, reason)
        return errors.TooManyRequests("Too many requests, please try again later.", retry_after_s=1)


class Room:
    """What the body of one request takes of its user's share."""

    __slots__ = ("_shares", "_size", "_user")

    def __init__(self, shares: Shares, user: str) -> None:
        self._shares = shares
        self._user = user
        self._size = 0

    async def make(self, size: int) -> None:
        """For so many bytes, before they are read. Raises TooManyRequests."""
        if size > SMALL_BYTES and not self._size:
            await self._shares.take(self._user, size)
            self._size = size

    def make_now(self, size: int) -> None:
        if size > SMALL_BYTES:
            self._shares.take_now(self._user, size)
            self._size = size

    def close(self) -> None:
        if self._size:
            self._shares.give_back(self._user, self._size)
            self._size = 0


def _lessen(counts: dict[str, int], user: str, amount: int) -> None:
    left = counts[user] - amount
    if left:
        counts[user] = left
    else:
        del counts[user]
