"""Calls from task to task: the same messages as bytes, and no socket.

For a simulator, where agents, drivers and what lies between them fail as a script says, and for
tests that have no files. Time is the event loop's, so virtual time works.

Each process of a made-up machine has a view of its own. One that is killed answers nothing more and
asks nothing more, at once; what is left of it is its sockets' files, at which nobody answers, as on
a real machine. Calls are carried out by tasks of whoever serves, in the context in which it
began to, so that a simulator knows whose they are.
"""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import aclosing
from itertools import count
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
    late_s: float = 0.0  # it arrives so much later, whether or not anybody still waits for the answer
    unanswered: bool = False  # it is done, and no answer comes back within the caller's time
    cut: bool = False  # it is done, and the connection ends in place of the answer


NO_FAULT = Fault()
Faults = Callable[[str, str], Fault]
"""From a socket's and a method's path to what happens to the next call."""


class LocalSockets:
    """The sockets of one machine. Used as they are, they are those of a process that is never killed."""

    def __init__(self, faults: Faults = lambda path, method: NO_FAULT) -> None:
        self.faults = faults
        self.served: dict[str, _Server] = {}
        self.turn = asyncio.Event()  # set, and replaced, whenever a server comes or goes
        self._left: dict[str, int] = {}  # files of sockets whose process was killed
        self._numbers = count()

    def process(self, asked: Callable[[], None] = lambda: None) -> "LocalProcess":
        """The view of one process; `asked` is called with each call that it makes."""
        return LocalProcess(self, asked)

    def dial(self, path: str) -> Channel:
        return self.process().dial(path)

    async def serve(self, path: str, handlers: Iterable[Handler]) -> Server:
        return self.bind(path, handlers)

    def bind(self, path: str, handlers: Iterable[Handler]) -> "_Server":
        if path in self.served:
            raise OSError(f"cannot listen at {path}: another process is listening there")
        server = _Server(self, path, {handler.path: handler for handler in handlers}, next(self._numbers))
        self._left.pop(path, None)
        self.served[path] = server
        self.turned()
        return server

    def unbind(self, server: "_Server", *, leaves_file: bool = False) -> None:
        if self.served.get(server.path) is server:
            del self.served[server.path]
            if leaves_file:
                self._left[server.path] = server.number
            self.turned()

    def found(self, directory: str) -> Mapping[str, Hashable]:
        there = {**self._left, **{path: server.number for path, server in self.served.items()}}
        prefix = f"{directory.rstrip('/')}/"
        below = {path[len(prefix) :]: number for path, number in there.items() if path.startswith(prefix)}
        return {name: number for name, number in below.items() if "/." not in f"/{name}"}

    def turned(self) -> None:
        self.turn.set()
        self.turn = asyncio.Event()


class LocalProcess:
    """A machine's sockets, as one of its processes uses them."""

    def __init__(self, machine: LocalSockets, asked: Callable[[], None]) -> None:
        self.machine = machine
        self._asked = asked
        self._servers: list[_Server] = []
        self._is_killed = False

    def dial(self, path: str) -> Channel:
        return _Channel(self, path)

    async def serve(self, path: str, handlers: Iterable[Handler]) -> Server:
        self.require_alive()
        server = self.machine.bind(path, handlers)
        self._servers.append(server)
        return server

    def found(self, directory: str) -> Mapping[str, Hashable]:
        return self.machine.found(directory)

    def kill(self) -> None:
        """As kill -9 does it."""
        self._is_killed = True
        for server in self._servers:
            self.machine.unbind(server, leaves_file=True)
            server.end()

    def asks(self) -> None:
        self.require_alive()
        self._asked()
        self.require_alive()

    def require_alive(self) -> None:
        if self._is_killed:
            raise asyncio.CancelledError("the process was killed")


class _Server:
    def __init__(
        self, sockets: LocalSockets, path: str, handlers: Mapping[str, Handler], number: int
    ) -> None:
        self.path, self.number = path, number
        self._sockets, self._handlers = sockets, handlers
        self._context = contextvars.copy_context()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._last: asyncio.Future[None] | None = None  # done when the call that was made last has arrived

    def handler(self, path: str) -> Handler:
        found = self._handlers.get(path)
        if found is None:
            raise CallFailed(Code.UNIMPLEMENTED, "Method not found!")
        return found

    def begin(
        self, deed: Callable[[Any], Awaitable[Any]], about: Any, late_s: float = 0.0
    ) -> "asyncio.Task[Any]":
        """A task of the server's own, which ends with it.

        Calls arrive in the order in which they were made: one that is late keeps those after it waiting.
        """
        loop = asyncio.get_running_loop()
        before, arrived = self._last, loop.create_future()
        self._last = arrived

        async def arrive() -> Any:
            await asyncio.sleep(late_s)
            if before is not None:
                await asyncio.wait((before,))
            _settle(arrived)
            return await deed(about)

        def over(_: object) -> None:
            """Also where it never arrives: nobody overtakes those before it because of that."""
            if before is None or before.done():
                _settle(arrived)
            else:
                before.add_done_callback(lambda _: _settle(arrived))

        task = loop.create_task(arrive(), context=self._context)
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        task.add_done_callback(over)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may have left

    async def close(self, grace_s: float = 0) -> None:
        self._sockets.unbind(self)
        if self._under_way and grace_s:
            await asyncio.wait(self._under_way, timeout=grace_s)
        self.end()

    def end(self) -> None:
        for task in tuple(self._under_way):
            task.cancel()


def _settle(arrived: "asyncio.Future[None]") -> None:
    if not arrived.done():
        arrived.set_result(None)


class _Channel:
    def __init__(self, process: LocalProcess, path: str) -> None:
        self._process, self._sockets, self._path = process, process.machine, path

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
                fault, server, handler = self._arrive(method.path)
                if handler.answer is None:
                    raise CallFailed(Code.UNIMPLEMENTED, f"{method.path} is a stream")
                task = server.begin(handler.answer, data, fault.late_s)
                try:
                    await asyncio.wait((task,))
                except asyncio.CancelledError:
                    if not fault.late_s:
                        task.cancel()  # nobody waits for the answer
                    raise
                answer = _outcome(task, method.path, self._path)
                if fault.unanswered:
                    await asyncio.Event().wait()
                if fault.cut:
                    raise _gone(self._path)
        except TimeoutError:
            raise CallFailed(Code.DEADLINE_EXCEEDED, "Deadline Exceeded") from None
        return read(method.told, answer)

    async def stream(self, method: Streaming[Asked, Told], request: Asked) -> AsyncIterator[Told]:
        fault, server, handler = self._arrive(method.path)
        if handler.answers is None:
            raise CallFailed(Code.UNIMPLEMENTED, f"{method.path} is not a stream")
        said: asyncio.Queue[bytes | asyncio.Task[Any]] = asyncio.Queue()

        async def tell(data: bytes) -> None:
            assert handler.answers is not None
            async with aclosing(handler.answers(data)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    said.put_nowait(piece)

        task = server.begin(tell, request.encode(), fault.late_s)
        task.add_done_callback(said.put_nowait)
        try:
            while not isinstance(piece := await said.get(), asyncio.Task):
                if fault.unanswered:
                    await asyncio.Event().wait()
                yield read(method.told, piece)
                if fault.cut:
                    raise _gone(self._path)
            _outcome(task, method.path, self._path)
        finally:
            task.cancel()

    async def close(self) -> None:
        pass

    def _arrive(self, method: str) -> tuple[Fault, _Server, Handler]:
        self._process.asks()
        fault = self._sockets.faults(self._path, method)
        server = self._sockets.served.get(self._path)
        if fault.refused or server is None:
            raise _gone(self._path)
        return fault, server, server.handler(method)


def _outcome(task: "asyncio.Task[Any]", method: str, path: str) -> Any:
    """What a call came to. One that was cancelled was its server's, which is gone."""
    if task.cancelled():
        raise _gone(path)
    problem = task.exception()
    if isinstance(problem, Exception):
        raise as_failure(method, problem) from None
    return task.result()


def _gone(path: str) -> CallFailed:
    return CallFailed(Code.UNAVAILABLE, f"failed to connect to {path}")
