"""A line to the server that fails in the ways in which lines fail."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from allot.api import Request, Response, Transport, errors
from allot.apiserver import identities
from allot.client import InProcessTransport

from .cluster import Cluster

Meet = Callable[[Request], Awaitable[None]]


class Wire:
    """Carries requests; writes are counted, and the n-th may be met with a fault or an event."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.down = False
        self._refused: tuple[str, errors.ApiError | None] = ("", None)
        self._before: list[tuple[Callable[[Request, int], bool], Meet]] = []
        self._late: tuple[str, Callable[[], Awaitable[Any]]] | None = None

    @classmethod
    def to(cls, here: Cluster) -> "Wire":
        return cls(InProcessTransport(here.server.api.handle, identities.SCHEDULER))

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(0)  # a line takes time: others have their turn
        if request.method == "GET":
            self.reads.append(what(request))
        if is_write(request):
            self.writes.append(what(request))
            for meets, act in list(self._before):
                if meets(request, len(self.writes)):
                    self._before.remove((meets, act))
                    await act(request)
            text, error = self._refused
            if error is not None and text in what(request):
                raise error
        if self.down:
            raise errors.Unavailable("connection refused")
        answer = await self._transport.send(request)
        if self._late is not None and is_write(request) and self._late[0] in what(request):
            (_, act), self._late = self._late, None
            await act()
        return answer

    async def close(self) -> None:
        await self._transport.close()

    # -- what goes wrong ------------------------------------------------------------------------

    def before(self, text: str, act: Callable[[], Awaitable[Any]]) -> None:
        """Something happens once, just before the first write whose path or method says so."""

        async def meet(request: Request) -> None:
            await act()

        self._before.append((lambda request, number: text in what(request), meet))

    def answer_late(self, text: str, act: Callable[[], Awaitable[Any]]) -> None:
        """Something happens once, before the answer to the first write whose path or method says so."""
        self._late = text, act

    def lose(self, number: int, *, carried_out: bool) -> None:
        """The n-th write gets no answer."""

        async def meet(request: Request) -> None:
            if carried_out:
                await self._transport.send(request)
            raise errors.Timeout("no answer in time")

        self._before.append((lambda request, count: count == number, meet))

    def refuse(self, number: int, error: errors.ApiError) -> None:
        """The n-th write is refused before it gets there."""

        async def meet(request: Request) -> None:
            raise error

        self._before.append((lambda request, count: count == number, meet))

    def refuse_all(self, text: str, error: errors.ApiError | None) -> None:
        """Every write whose path or method says so, until there is no error to refuse it with."""
        self._refused = text, error

    def fail_for(self, seconds: float) -> Callable[[], Awaitable[None]]:
        """An act: the server is away from now on, for so long."""

        async def act() -> None:
            self.down = True
            asyncio.get_running_loop().call_later(seconds, self._up)

        return act

    def _up(self) -> None:
        self.down = False


def is_write(request: Request) -> bool:
    """Of what is looked at here: events are told beside it, and a review of rights is a question."""
    is_other = "/events" in request.path or request.path.endswith("accessreviews")
    return request.method != "GET" and not is_other


def what(request: Request) -> str:
    return f"{request.method} {request.path}"
