"""A component that can be killed at any moment and comes back.

A kill fences the component's transports before anything else, so that what runs while its
tasks unwind reaches nobody: a dead process writes nothing. Whom `doom` is said of dies a
few steps of the event loop after one of its next requests: between any two awaits, while
it works. One that uses a machine's disk and sockets may die at any step of those as well.
"""

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from allot.api import Transport, User

from .faults import Faults, FaultyTransport, Fenced, Way
from .loop import OWNER, VirtualLoop

log = logging.getLogger(__name__)

Connect = Callable[[User], Transport]
WayOf = Callable[[User], Way]
Main = Callable[[Connect], Coroutine[Any, Any, None]]
"""What a component does, given a way to the server for each identity it has."""


class Component:
    def __init__(self, name: str, main: Main, connect: WayOf, faults: Faults) -> None:
        self.name = name
        self.starts = 0
        self.requests = 0
        self.failures: list[BaseException] = []
        self._main = main
        self._connect = connect
        self._faults = faults
        self._transports: list[FaultyTransport] = []
        self._task: asyncio.Task[None] | None = None
        self._killed = False
        self._doom: tuple[int, asyncio.Future[None]] | None = None
        self._ends: list[Callable[[], None]] = []
        self._held: set[str] = set()

    @property
    def runs(self) -> bool:
        return self._task is not None

    def start(self) -> None:
        """Unless it runs already, or something keeps it from running."""
        if self.runs or self._held:
            return
        self.starts += 1
        self._killed = False
        self._transports, self._ends = [], []
        context = contextvars.copy_context()
        context.run(OWNER.set, self.name)
        self._task = _loop().create_task(self._run(), name=f"{self.name} #{self.starts}", context=context)

    def at_kill(self, end: Callable[[], None]) -> None:
        """Called when this life of the component ends: what it uses beside the server."""
        self._ends.append(end)

    def unplug(self, why: str) -> None:
        """At once, and it does not start again before that is over: its machine is off, say. Whoever does
        this kills it then."""
        self._held.add(why)
        self._fence()

    def release(self, why: str) -> None:
        self._held.discard(why)
        self.start()

    async def kill(self) -> None:
        """As kill -9 does it: nothing more is said, and everything in memory is gone."""
        self._fence()
        self.thaw()
        await self.stop()

    def _fence(self) -> None:
        self._killed = True
        for transport in self._transports:
            transport.fence()
        for end in self._ends:
            end()
        if self._ends:
            _loop().cancel_all(self.name)

    async def kill_at_work(self, requests: int, steps: int, within_s: float) -> None:
        """Kill it `steps` steps after its next-but-so-many request, or when the time is up."""
        reached: asyncio.Future[None] = _loop().create_future()
        self._doom = (self.requests + requests, reached)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await reached
            for _ in range(steps):
                await asyncio.sleep(0)
        self._doom = None
        await self.kill()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Fenced, BaseExceptionGroup):
                await self._task
            self._task = None

    def freeze(self) -> None:
        """It does not get to run; its lease runs out."""
        _loop().freeze(self.name)

    def thaw(self) -> None:
        _loop().thaw(self.name)

    async def _run(self) -> None:
        try:
            await self._main(self._transport_of)
        except (asyncio.CancelledError, Fenced):
            raise
        except BaseException as error:
            if self._killed:
                return  # how a dead component's tasks unwind is nobody's concern
            # A component that ends by itself is a bug, whatever the faults were.
            self.failures.append(error)
            log.exception("a component ended by itself: %s", self.name)

    def _transport_of(self, user: User) -> Transport:
        transport = FaultyTransport(self.name, self._connect(user), self._faults, self._requested)
        self._transports.append(transport)
        return transport

    def touched(self) -> None:
        """It is about to take a step at its machine: one that is doomed dies before that."""
        if self._requested():
            self._fence()

    def _requested(self) -> bool:
        """Whether this is the request after which it dies."""
        self.requests += 1
        if self._doom is None or self.requests < self._doom[0] or self._doom[1].done():
            return False
        self._doom[1].set_result(None)
        return True


def _loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop
