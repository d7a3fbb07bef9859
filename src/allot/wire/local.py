"""Calls from task to task: the same messages as bytes, and no socket.

For a simulator, where agents, drivers and what lies between them fail as a script says, and for
tests that have no files. Time is the event loop's, so virtual time works.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterable, Mapping
from contextlib import aclosing
from itertools import count
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from .channel import (
    Asked,
    CallFailed,
    Channel,
    Code,
    Handler,
    Server,
    Streaming,
    Told,
    Unary,
    as_failure,
    read,
)


class Fault(NamedTuple):
    """What happens to one call."""

    refused: bool = False  # it never arrives
    late_s: float = 0.0  # it arrives so much later
    unanswered: bool = False  # it is done, and no answer comes back within the caller's time
    cut: bool = False  # it is done, and the connection ends in place of the answer


NO_FAULT = Fault()
Faults = Callable[[str, str], Fault]
"""From a socket's and a method's path to what happens to the next call."""


class LocalSockets:
    def __init__(self, faults: Faults = lambda path, method: NO_FAULT) -> None:
        self.faults = faults
        self.served: dict[str, _Server] = {}
        self.turn = asyncio.Event()  # set, and replaced, whenever a server comes or goes
        self._numbers = count()

    def dial(self, path: str) -> Channel:
        return _Channel(self, path)

    async def serve(self, path: str, handlers: Iterable[Handler]) -> Server:
        if path in self.served:
            raise OSError(f"cannot listen at {path}: another process is listening there")
        server = _Server(self, path, {handler.path: handler for handler in handlers}, next(self._numbers))
        self.served[path] = server
        self.turned()
        return server

    def found(self, directory: str) -> Mapping[str, Hashable]:
        return {
            PurePosixPath(path).name: server.number
            for path, server in self.served.items()
            if PurePosixPath(path).parent == PurePosixPath(directory)
        }

    def turned(self) -> None:
        self.turn.set()
        self.turn = asyncio.Event()


class _Server:
    def __init__(
        self, sockets: LocalSockets, path: str, handlers: Mapping[str, Handler], number: int
    ) -> None:
        self.path, self.number = path, number
        self._sockets, self._handlers = sockets, handlers
        self._under_way: set[asyncio.Task[Any]] = set()
        self.closed = False

    def handler(self, path: str) -> Handler:
        found = self._handlers.get(path)
        if found is None:
            raise CallFailed(Code.UNIMPLEMENTED, "Method not found!")
        return found

    async def running(self, deed: Coroutine[Any, Any, Any]) -> Any:
        """The deed's outcome; it ends with its caller and with this server."""
        task = asyncio.ensure_future(deed)
        self._under_way.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if self.closed and task.cancelled():
                raise _gone(self.path) from None
            task.cancel()
            raise
        finally:
            self._under_way.discard(task)

    async def close(self, grace_s: float = 0) -> None:
        if self._sockets.served.get(self.path) is self:
            del self._sockets.served[self.path]
            self._sockets.turned()
        if self._under_way and grace_s:
            await asyncio.wait(self._under_way, timeout=grace_s)
        self.closed = True
        for task in tuple(self._under_way):
            task.cancel()


class _Channel:
    def __init__(self, sockets: LocalSockets, path: str) -> None:
        self._sockets, self._path = sockets, path

    @property
    def connected(self) -> bool:
        return self._path in self._sockets.served

    async def connection(self, other_than: bool) -> bool:
        while self.connected == other_than:
            await self._sockets.turn.wait()
        return not other_than

    async def call(self, method: Unary[Asked, Told], request: Asked, *, timeout_s: float) -> Told:
        data = request.encode()
        try:
            async with asyncio.timeout(timeout_s):
                fault, server, handler = await self._arrive(method.path)
                if handler.answer is None:
                    raise CallFailed(Code.UNIMPLEMENTED, f"{method.path} is a stream")
                try:
                    answer = await server.running(_awaited(handler.answer(data)))
                except Exception as problem:
                    raise as_failure(method.path, problem) from None
                if fault.unanswered:
                    await asyncio.Event().wait()
                if fault.cut:
                    raise _gone(self._path)
        except TimeoutError:
            raise CallFailed(Code.DEADLINE_EXCEEDED, "Deadline Exceeded") from None
        return read(method.told, answer)

    async def stream(self, method: Streaming[Asked, Told], request: Asked) -> AsyncIterator[Told]:
        fault, server, handler = await self._arrive(method.path)
        if handler.answers is None:
            raise CallFailed(Code.UNIMPLEMENTED, f"{method.path} is not a stream")
        async with aclosing(handler.answers(request.encode())) as pieces:  # type: ignore[type-var]
            while True:
                try:
                    piece = await server.running(_awaited(anext(pieces)))
                except StopAsyncIteration:
                    return
                except Exception as problem:
                    raise as_failure(method.path, problem) from None
                if fault.unanswered:
                    await asyncio.Event().wait()
                yield read(method.told, piece)
                if fault.cut:
                    raise _gone(self._path)

    async def close(self) -> None:
        pass

    async def _arrive(self, method: str) -> tuple[Fault, _Server, Handler]:
        fault = self._sockets.faults(self._path, method)
        if fault.late_s:
            await asyncio.sleep(fault.late_s)
        server = self._sockets.served.get(self._path)
        if fault.refused or server is None:
            raise _gone(self._path)
        return fault, server, server.handler(method)


async def _awaited(deed: Any) -> Any:
    return await deed


def _gone(path: str) -> CallFailed:
    return CallFailed(Code.UNAVAILABLE, f"failed to connect to {path}")
