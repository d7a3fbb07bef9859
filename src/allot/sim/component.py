"""A component that can be killed at any moment and comes back.

A kill fences the component's transport before anything else, so that what runs
while its tasks unwind reaches nobody: a dead process writes nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from allot.api import Transport, User

from .faults import Faults, FaultyTransport, Fenced

log = logging.getLogger(__name__)

Connect = Callable[[User], Transport]
Main = Callable[[Connect], Coroutine[Any, Any, None]]
"""What a component does, given a way to the server for each identity it has."""


class Component:
    def __init__(self, name: str, main: Main, connect: Connect, faults: Faults) -> None:
        self.name = name
        self.starts = 0
        self.crashes = 0
        self.failures: list[BaseException] = []
        self._main = main
        self._connect = connect
        self._faults = faults
        self._transports: list[FaultyTransport] = []
        self._task: asyncio.Task[None] | None = None
        self._killed = False

    def start(self) -> None:
        self.starts += 1
        self._killed = False
        self._transports = []
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"{self.name} #{self.starts}")

    async def kill(self) -> None:
        """As kill -9 does it: nothing more is said, and everything in memory is gone."""
        self._killed = True
        for transport in self._transports:
            transport.fence()
        await self.stop()
        self.crashes += 1

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Fenced, BaseExceptionGroup):
                await self._task
            self._task = None

    def freeze(self, until: float) -> None:
        """It does not get to run for a while: its requests wait, its lease does not."""
        for transport in self._transports:
            transport.frozen_until = until

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
        transport = FaultyTransport(self._connect(user), self._faults)
        self._transports.append(transport)
        return transport
