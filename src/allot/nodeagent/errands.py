"""Work that goes on beside the pods: one task a name, all of them owned here.

No deed of a machine waits for a container (`node.machine`), so what takes as long as a container likes, a
hook or a probe, is begun here and looked at later. Whatever goes on ends with `run`.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

log = logging.getLogger(__name__)

Errand = Callable[[], Coroutine[Any, Any, None]]


class Errands:
    def __init__(self) -> None:
        self._waiting: dict[Hashable, Errand] = {}  # begun before there was anybody to do them
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._group:
                for name in tuple(self._waiting):
                    self._go(name, self._waiting.pop(name))
                await asyncio.Event().wait()
        finally:
            self._group = None

    def begin(self, name: Hashable, errand: Errand) -> None:
        """One that goes on already goes on."""
        if name in self._tasks or name in self._waiting:
            return
        if self._group is None:
            self._waiting[name] = errand
        else:
            self._go(name, errand)

    def end(self, name: Hashable) -> None:
        self._waiting.pop(name, None)
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    def _go(self, name: Hashable, errand: Errand) -> None:
        assert self._group is not None
        task = self._group.create_task(self._do(name, errand))
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._done(name, done))

    async def _do(self, name: Hashable, errand: Errand) -> None:
        try:
            await errand()
        except Exception:  # one that has a bug is no reason to end all pods
            log.exception("%s ended with an error", name)

    def _done(self, name: Hashable, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]
