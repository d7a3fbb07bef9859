"""Large requests are worked on aside: in a thread, a few at a time, and each user in turn.

One event loop answers everybody. Reading, checking and validating a body of some kilobytes takes it
a millisecond; one of megabytes takes seconds, and so does compiling long expressions. What is large
therefore waits for a seat, and with it the pure work on its own values is done by a thread.

    ASIDE1  What is small is answered where it is, and never waits for what is large.
    ASIDE2  Seats go round: of those who wait, the user is next who has waited longest since his last turn,
            and nobody has more than his share of them. So ten requests of one user make others wait for one.
    ASIDE3  What is very large waits in a lane of its own, and never keeps what is merely large waiting.
    ASIDE4  Seats, and those who wait for one, are bounded. Beyond that the answer is 429: try again.
    ASIDE5  Expressions of administrators over what users write cost what nobody knows before: up to a minute.
            They have a lane of their own with two threads, of which a user has one until his work is done,
            also when he has gone meanwhile.

A seat is kept until the request is answered, since what was read of it stays in memory as long. Only
pure work goes to a thread: it sees values of its request, and whatever else nobody changes. What
belongs to the event loop is asked there (`Seat.on_loop`).
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

import msgspec

from allot.api import Request, errors
from allot.base import Counter, Metrics

P = ParamSpec("P")
T = TypeVar("T")

SMALL_BYTES = 16 * 1024
"""Of JSON: about a millisecond's work."""
SLOW_FORMATS_FACTOR = 8
"""YAML and protobuf are read by Python, and JSON is not."""
LARGE_BYTES = 256 * 1024
_ANSWER_S = 60.0
"""For the event loop to answer a thread. It takes milliseconds, unless it has come to its end."""
WAITING_MAX = 400
WAITING_PER_USER_MAX = 100


def weight_of(request: Request) -> int:
    """How much work its body is, in bytes of JSON."""
    size = len(request.body)
    if size * SLOW_FORMATS_FACTOR <= SMALL_BYTES:
        return size
    media = request.headers.get("content-type", "")
    if "protobuf" in media or ("yaml" in media and request.body.lstrip()[:1] != b"{"):
        return size * SLOW_FORMATS_FACTOR
    return size


class Lane:
    """Some seats, and a thread or more that work for those who have one."""

    def __init__(
        self, name: str, seats: int, seats_per_user: int, rejected: Counter, threads: int = 1
    ) -> None:
        self.name = name
        self._seats = seats
        self._seats_per_user = seats_per_user
        self._rejected = rejected
        self._seated: dict[str, int] = {}  # by user
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by user, next one first
        self._threads = threads
        self._workers: ThreadPoolExecutor | None = None

    @property
    def seated(self) -> int:
        return sum(self._seated.values())

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self._waiting.values())

    async def enter(self, user: str) -> None:
        """Wait for a seat. Raises TooManyRequests (ASIDE4)."""
        if self._may_sit(user):
            self._sit(user)
            return
        line = self._waiting.get(user)
        if line is not None and len(line) >= WAITING_PER_USER_MAX:
            self._refuse("user-queue-full")
        if self.waiting >= WAITING_MAX:
            self._refuse("queue-full")
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(user)
            raise

    def leave(self, user: str) -> None:
        left = self._seated[user] - 1
        if left:
            self._seated[user] = left
        else:
            del self._seated[user]
        self._seat_next()

    def workers(self) -> ThreadPoolExecutor:
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self._threads, thread_name_prefix=f"aside-{self.name}")
        return self._workers

    def close(self) -> None:
        if self._workers is not None:
            self._workers.shutdown(wait=False, cancel_futures=True)

    def _may_sit(self, user: str) -> bool:
        return self.seated < self._seats and self._seated.get(user, 0) < self._seats_per_user

    def _sit(self, user: str) -> None:
        self._seated[user] = self._seated.get(user, 0) + 1

    def _seat_next(self) -> None:
        """ASIDE2. Whoever was seated goes to the end of the line of users."""
        for user in list(self._waiting):
            line = self._waiting[user]
            while line and line[0].done():  # nobody waits for it any more
                line.popleft()
            if line and not self._may_sit(user):
                continue
            del self._waiting[user]
            if line:
                self._sit(user)
                line.popleft().set_result(None)
                if line:
                    self._waiting[user] = line
                return

    def _refuse(self, reason: str) -> None:
        self._rejected.add(1, reason)
        raise errors.TooManyRequests(
            "Too many large requests are waiting, please try again later.", retry_after_s=1
        )


class Aside:
    """The lanes. `threads`: the simulator has none, and does everything on the spot."""

    def __init__(self, metrics: Metrics, *, threads: bool = True) -> None:
        self.rejected = metrics.counter(
            "allot_requests_rejected_total", "Requests that were told to come back, by reason.", "reason"
        )
        self._large = Lane("large", 8, 4, self.rejected)
        self._very_large = Lane("very-large", 2, 1, self.rejected)
        self._judging = Lane("judging", 2, 1, self.rejected, threads=2)
        self._threads = threads
        lanes = (self._large, self._very_large, self._judging)
        metrics.readings(
            "allot_large_requests_waiting",
            "Large requests that wait for a seat, by lane.",
            "lane",
            read=lambda: {(lane.name,): lane.waiting for lane in lanes},
        )
        metrics.readings(
            "allot_large_requests_seated",
            "Large requests that are being worked on, by lane.",
            "lane",
            read=lambda: {(lane.name,): lane.seated for lane in lanes},
        )

    def lane_for(self, weight: int) -> Lane | None:
        """None: small enough to be done where it is."""
        if weight <= SMALL_BYTES or not self._threads:
            return None
        return self._large if weight <= LARGE_BYTES else self._very_large

    def seat(self, user: str) -> "Seat":
        return Seat(self, user)

    async def judged(self, user: str, judge: Callable[[], T]) -> T:
        """The value of `judge`, which is pure and may take long (ASIDE5); or what it raises."""
        if not self._threads:
            return judge()
        await self._judging.enter(user)
        doing = asyncio.get_running_loop().run_in_executor(self._judging.workers(), judge)

        def leave(done: "asyncio.Future[T]") -> None:
            self._judging.leave(user)
            if not done.cancelled():
                done.exception()  # nobody may be there any more to hear of it

        doing.add_done_callback(leave)
        return await asyncio.shield(doing)

    def close(self) -> None:
        for lane in (self._large, self._very_large, self._judging):
            lane.close()


class Seat(msgspec.Struct):
    """Where the work of one request is done: where it is, until the request turns out to be large.

    Nearly all requests are small. Those who work for one therefore look at `is_here` first, and call
    what they would hand to `do` themselves: that takes a fifth of the time.
    """

    _aside: Aside | None
    _user: str
    _lane: Lane | None = None
    _loop_thread: int = 0
    is_here: bool = True

    async def settle(self, weight: int) -> bool:
        """Before something of that weight is worked on. Whether that took a while: what was read before
        may be out of date."""
        if weight <= SMALL_BYTES or self._lane is not None or self._aside is None:
            return False
        lane = self._aside.lane_for(weight)
        if lane is None:
            return False
        await lane.enter(self._user)
        self._lane = lane
        self._loop_thread = threading.get_ident()
        self.is_here = False
        return True

    def leave(self) -> None:
        if self._lane is not None:
            self._lane.leave(self._user)
            self._lane = None
            self.is_here = True

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The value of `work`, which is pure; or what it raises."""
        if self._lane is None:
            return work(*args, **kwargs)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._lane.workers(), partial(work, *args, **kwargs))

    async def judged(self, judge: Callable[[], T]) -> T:
        """See `Aside.judged`."""
        return judge() if self._aside is None else await self._aside.judged(self._user, judge)

    def on_loop(self, ask: Callable[P, T]) -> Callable[P, T]:
        """`ask`, for a caller that may be in a thread: what it looks at belongs to the event loop."""
        if self._lane is None:
            return ask
        loop, home = asyncio.get_running_loop(), self._loop_thread

        def asked(*args: P.args, **kwargs: P.kwargs) -> T:
            if threading.get_ident() == home:
                return ask(*args, **kwargs)
            answer: Future[T] = Future()

            def run() -> None:
                try:
                    answer.set_result(ask(*args, **kwargs))
                except BaseException as failed:
                    answer.set_exception(failed)

            loop.call_soon_threadsafe(run)
            return answer.result(_ANSWER_S)

        return asked


HERE = Seat(None, "")
"""For what the server does on its own account."""
