"""What can go wrong between a component and its server, by lot.

Every request of a component passes a `FaultyTransport`. Lots are drawn by the name of the
request (`lots`); how often each fault struck is counted, because a fault that never
strikes tests nothing.

    refused      the server was not reached; nothing happened
    conflict     somebody else was faster, or so it is said; nothing happened
    unanswered   it was done, and the answer was lost: the outcome is unknown
    late         the answer did not come; it is done a while later, when nobody expects it
    slow         the request took its time
    cut          a watch broke off, and what it was about to tell was not told
    delayed      an event came late
    repeated     a watch told something twice
    forgotten    the server's history was compacted under a watch, and the watch cut
    stale        an event came minutes late, and all that followed on the watch with it

What a component has sent is the server's business: it is carried out by a task of the
server, whatever becomes of the component meanwhile. A component that is fenced is dead to
the server: whatever it still tries, in a `finally` block perhaps, does not arrive.
"""

import asyncio
import contextvars
import functools
import types
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

from msgspec.structs import replace

from allot.api import Request, Response, errors, transaction

from .journal import Journal
from .lots import Lots

T = TypeVar("T")

RATES: Mapping[str, float] = {
    "slow": 0.05,
    "refused": 0.02,
    "conflict": 0.02,
    "late": 0.02,
    "unanswered": 0.02,
    "stale": 0.005,
    "delayed": 0.1,
    "cut": 0.02,
    "forgotten": 0.004,
    "repeated": 0.02,
}
_PLACE = {name: place for place, name in enumerate(RATES)}
_AMOUNT = len(RATES)  # the lot that says how much
SLOW_S_MAX = 3.0
LATE_S_MAX = 30.0
DELAY_S_MAX = 2.0
STALE_S_MAX = 240.0
_BOOKMARK = b'{"type":"BOOKMARK"'
_END = b'{"type":"DELETED"'
ENDS_WEIGH = 8.0
"""That something is gone is told once, and whoever misses that misses most."""
RIVALS_WEIGH = 10.0
"""While others write to the same objects."""


@dataclass
class Faults:
    lots: Lots
    journal: Journal
    compact: Callable[[], Awaitable[None]]
    without: Collection[str] = ()
    """Kinds, or single occurrences by name, that do not strike."""
    rates: Mapping[str, float] = field(default_factory=lambda: dict(RATES))
    active: bool = True
    struck: Counter[str] = field(default_factory=Counter)
    deaf: dict[tuple[str, str], "Deaf"] = field(default_factory=dict)  # by component and resource
    rivals_until_s: float = 0.0
    said: Counter[str] = field(default_factory=Counter)  # how often who asked for what
    server: contextvars.Context = field(default_factory=contextvars.copy_context)

    def lot_of(self, component: str, about: str) -> "Lot":
        return Lot(self, component, about)

    def numbered(self, component: str, about: str) -> str:
        """Distinct from what the component asked before, in this life or an earlier one."""
        key = f"{component} {about}"
        self.said[key] += 1
        return f"{about} #{self.said[key]}"

    def strike(self, kind: str, component: str, about: str) -> bool:
        """Note that a fault strikes, unless this story goes without it."""
        if kind in self.without or f"{kind} {component} {about}" in self.without:
            return False
        self.struck[kind] += 1
        self.journal.note(component, about, kind)
        return True


class Deaf(NamedTuple):
    until_s: float
    forgets: bool  # the watch does not go on where it was


class Lot:
    """What becomes of one request or one event."""

    __slots__ = ("_about", "_component", "_draw", "_faults")

    def __init__(self, faults: Faults, component: str, about: str) -> None:
        self._faults = faults
        self._component = component
        self._about = about
        self._draw = faults.lots.draw(f"{component} {about}")

    def strikes(self, kind: str, weight: float = 1.0) -> bool:
        faults = self._faults
        if not faults.active or self._draw[_PLACE[kind]] >= faults.rates[kind] * weight:
            return False
        return faults.strike(kind, self._component, self._about)

    def up_to(self, most: float) -> float:
        return self._draw[_AMOUNT] * most


class Way(Protocol):
    """A transport whose sending is a coroutine."""

    def send(self, request: Request) -> Coroutine[Any, Any, Response]: ...

    async def close(self) -> None: ...


class Fenced(asyncio.CancelledError):
    """The component is dead; nothing of it reaches the server any more, and nothing of it goes on."""


class FaultyTransport:
    """A component's way to the server."""

    def __init__(self, component: str, inner: Way, faults: Faults, sent: Callable[[], object]) -> None:
        self._component = component
        self._inner = inner
        self._faults = faults
        self._sent = sent
        self._fenced = False

    def fence(self) -> None:
        self._fenced = True

    async def send(self, request: Request) -> Response:
        self._require_alive()
        self._sent()
        about = self._faults.numbered(self._component, f"{request.method} {request.path}")
        lot = self._faults.lot_of(self._component, about)
        if lot.strikes("slow"):
            await asyncio.sleep(lot.up_to(SLOW_S_MAX))
            self._require_alive()
        if lot.strikes("refused"):
            raise errors.Unavailable("made up: the server was not reached")
        if request.method != "GET":
            return await self._write(request, lot)
        response = await self._served(request)
        self._require_alive()
        if response.stream is None:
            return response
        resource = request.path.rpartition("/")[2]
        return replace(response, stream=self._faulty(response.stream, about, resource))

    async def close(self) -> None:
        await self._inner.close()

    async def _write(self, request: Request, lot: Lot) -> Response:
        has_rivals = asyncio.get_running_loop().time() < self._faults.rivals_until_s
        weight = RIVALS_WEIGH if has_rivals else 1.0
        if request.method in ("PUT", "PATCH") and lot.strikes("conflict", weight):
            raise errors.Conflict("made up: the object has been modified")
        if lot.strikes("late"):
            self._task_of_server(self._served_later(request, lot.up_to(LATE_S_MAX)))
            raise errors.Timeout("made up: no answer came")
        response = await self._served(request)
        self._require_alive()
        if lot.strikes("unanswered"):
            raise errors.Timeout("made up: the answer was lost")
        return response

    async def _served(self, request: Request) -> Response:
        """Most answers take the server no time. What takes longer goes on in a task of the server; a
        transaction is in one from the beginning, for it belongs to its task."""
        serving = self._inner.send(request)
        if request.path == transaction.PATH:
            return await asyncio.shield(self._task_of_server(serving))
        try:
            waits_for = self._faults.server.run(serving.send, None)
        except StopIteration as done:
            response: Response = done.value
            return response
        return await asyncio.shield(self._task_of_server(_resumed(serving, waits_for)))

    async def _served_later(self, request: Request, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        await self._inner.send(request)

    def _task_of_server(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        return asyncio.get_running_loop().create_task(work, context=self._faults.server)

    async def _faulty(self, stream: AsyncIterator[bytes], about: str, resource: str) -> AsyncIterator[bytes]:
        number = 0
        async for piece in stream:
            self._require_alive()
            await self._wait_while_deaf(about, resource)
            if piece.startswith(_BOOKMARK):
                yield piece  # it says only how far the watch has come
                continue
            number += 1
            lot = self._faults.lot_of(self._component, f"{about} event {number}")
            weight = ENDS_WEIGH if piece.startswith(_END) else 1.0
            if lot.strikes("stale", weight):
                await asyncio.sleep(lot.up_to(STALE_S_MAX))
            elif lot.strikes("delayed"):
                await asyncio.sleep(lot.up_to(DELAY_S_MAX))
            if lot.strikes("forgotten", weight):
                await self._begin_anew()
            if lot.strikes("cut", weight):
                raise errors.Unavailable("made up: the watch broke off")
            yield piece
            if lot.strikes("repeated", weight):
                yield piece

    async def _wait_while_deaf(self, about: str, resource: str) -> None:
        deaf = self._faults.deaf.get((self._component, resource))
        left_s = deaf.until_s - asyncio.get_running_loop().time() if deaf is not None else 0.0
        if deaf is None or left_s <= 0 or not self._faults.active:
            return
        await asyncio.sleep(left_s)
        if deaf.forgets and self._faults.strike("forgotten", self._component, about):
            await self._begin_anew()

    async def _begin_anew(self) -> NoReturn:
        """What came meanwhile is told to nobody: it is found to be there, or to be missing."""
        await self._faults.compact()
        raise errors.Unavailable("made up: the watch broke off, and its past is gone")

    def _require_alive(self) -> None:
        if self._fenced:
            raise Fenced


@types.coroutine
def _resumed(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """Go on with a coroutine that was begun elsewhere and waits for something."""
    while True:
        try:
            came = yield waits_for
        except BaseException as error:
            advance = functools.partial(work.throw, error)
        else:
            advance = functools.partial(work.send, came)
        try:
            waits_for = advance()
        except StopIteration as done:
            result: T = done.value
            return result
