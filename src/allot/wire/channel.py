"""The port: calls between processes of one machine, over whatever carries them.

A socket is known by its path. Whoever serves binds handlers to it; whoever calls dials it. Two
things carry calls: gRPC on unix sockets (`unixsocket`) and nothing at all (`local`), where the same
bytes pass from one task to another and a simulator decides what gets lost. Callers cannot tell them
apart, and nothing above this line knows gRPC.

    contract = Unary("pluginregistration.Registration", "GetInfo", InfoRequest, PluginInfo)
    server = await sockets.serve(path, [contract.by(answer)])
    info = await sockets.dial(path).call(contract, InfoRequest(), timeout_s=1)

What it promises
    CALL1  A call ends within its time with an answer, or with a `CallFailed` whose code says what is known.
    CALL2  What is not such a message is an INTERNAL failure of that one call. No bytes end a server.
    CALL3  A channel outlives its server: once one answers at the path again, calls go to it.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from .message import Malformed, Message

log = logging.getLogger(__name__)

Asked = TypeVar("Asked", bound=Message)
Told = TypeVar("Told", bound=Message)


class Code(IntEnum):
    """gRPC's own."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class CallFailed(Exception):
    """Raised by a call, and by a handler that refuses one."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(f"{code.name}: {reason}" if reason else code.name)
        self.code, self.reason = code, reason


@dataclass(frozen=True, slots=True)
class Unary(Generic[Asked, Told]):
    """A method: one message in, one out."""

    service: str
    name: str
    asked: type[Asked]
    told: type[Told]

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"

    def by(self, deed: Callable[[Asked], Awaitable[Told]]) -> "Handler":
        async def answer(data: bytes) -> bytes:
            return (await deed(read(self.asked, data))).encode()

        return Handler(self.path, answer=answer)


@dataclass(frozen=True, slots=True)
class Streaming(Generic[Asked, Told]):
    """A method: one message in, any number out."""

    service: str
    name: str
    asked: type[Asked]
    told: type[Told]

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"

    def by(self, deed: Callable[[Asked], AsyncIterator[Told]]) -> "Handler":
        async def answers(data: bytes) -> AsyncIterator[bytes]:
            async for told in deed(read(self.asked, data)):
                yield told.encode()

        return Handler(self.path, answers=answers)


@dataclass(frozen=True, slots=True)
class Handler:
    """Who answers one method, in bytes: one of the two is set."""

    path: str
    answer: Callable[[bytes], Awaitable[bytes]] | None = None
    answers: Callable[[bytes], AsyncIterator[bytes]] | None = None


def read(message: type[Told], data: bytes) -> Told:
    """CALL2."""
    try:
        return message.decode(data)
    except Malformed as malformed:
        raise CallFailed(Code.INTERNAL, str(malformed)) from None


def as_failure(path: str, problem: Exception) -> CallFailed:
    """What a caller hears of an exception in the handler of its call."""
    if isinstance(problem, CallFailed):
        return problem
    log.error("%s failed", path, exc_info=problem)
    return CallFailed(Code.UNKNOWN, f"{type(problem).__name__}: {problem}")


class Channel(Protocol):
    @property
    def connected(self) -> bool:
        """Somebody was there when it was last tried. The first look begins the first attempt."""

    async def connection(self, other_than: bool) -> bool:
        """Waits until `connected` is not `other_than`, and says what it is."""

    async def call(self, method: Unary[Asked, Told], request: Asked, *, timeout_s: float) -> Told:
        """Raises CallFailed."""

    def stream(self, method: Streaming[Asked, Told], request: Asked) -> AsyncIterator[Told]:
        """Ends when the server ends it; raises CallFailed. Closing the iterator ends the call."""

    async def close(self) -> None: ...


class Server(Protocol):
    path: str

    async def close(self, grace_s: float = 0) -> None:
        """Takes no more calls, gives those under way so long, and the path is gone."""


class Sockets(Protocol):
    def dial(self, path: str) -> Channel:
        """Connects when it is first needed, and again whenever that is lost."""

    async def serve(self, path: str, handlers: Iterable[Handler]) -> Server:
        """Raises OSError: the path is taken by somebody who answers, or cannot be made."""

    def found(self, directory: str) -> Mapping[str, Hashable]:
        """The sockets below a directory by their path from there, each with what tells it from an earlier
        one of that path. What is hidden, a name or a directory that begins with a dot, is left alone."""
