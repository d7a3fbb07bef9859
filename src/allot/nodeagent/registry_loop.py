"""Follows the registration directory: who comes is asked who it is and told what came of it.

Each registration socket has a task of its own, from the moment it is found until it is gone or
another one took its place, so a plugin that never answers keeps nobody waiting. What fails is tried
again while the socket is there, each time after a longer wait.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Hashable
from pathlib import Path

from allot.wire import CallFailed, Channel, Sockets, dra, registration

from .drivers import BadPlugin, Drivers, Instance, introduced

log = logging.getLogger(__name__)

LOOK_S = 0.1
INFO_S, NOTIFY_S = 1.0, 5.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0


class Registry:
    def __init__(self, sockets: Sockets, directory: Path, changed: Callable[[str], None]) -> None:
        """`changed` is called with the name of each driver that has come, gone, or been (dis)connected."""
        self._sockets = sockets
        self._directory = directory
        self._changed = changed
        self._tasks: dict[str, tuple[Hashable, asyncio.Task[None]]] = {}  # by name in the directory
        self._channels: dict[str, Channel] = {}  # by registration socket
        self.drivers = Drivers()

    def reach(self, driver: str) -> tuple[Channel, dra.Version] | None:
        instance = self.drivers.called(driver)
        return (self._channels[instance.socket], instance.version) if instance is not None else None

    def health(self, driver: str) -> Instance | None:
        instance = self.drivers.called(driver)
        return instance if instance is not None and instance.followed is not None else None

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._look(group)
                    await asyncio.sleep(LOOK_S)
        finally:
            for socket in tuple(self._channels):
                await self._forget(socket)

    def _look(self, group: asyncio.TaskGroup) -> None:
        found = {
            name: which
            for name, which in self._sockets.found(str(self._directory)).items()
            if not name.startswith(".")
        }
        for name, (which, task) in tuple(self._tasks.items()):
            if found.get(name) != which:
                task.cancel()
                del self._tasks[name]
        for name, which in found.items():
            if name not in self._tasks:
                work = self._attend(os.path.join(self._directory, name))
                self._tasks[name] = which, group.create_task(work, name=f"plugin {name}")

    async def _attend(self, socket: str) -> None:
        """Until cancelled: the socket is gone."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                instance = await self._register(socket)
                wait_s = _FIRST_WAIT_S
                await self._follow(instance)
            except (CallFailed, BadPlugin, OSError) as failed:
                log.warning("plugin %s is not registered, again in %.1f s: %s", socket, wait_s, failed)
            finally:
                await self._forget(socket)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _register(self, socket: str) -> Instance:
        channel = self._sockets.dial(socket)
        try:
            info = await channel.call(registration.GET_INFO, registration.InfoRequest(), timeout_s=INFO_S)
            try:
                instance = introduced(socket, info)
                # At once, so that the first pod does not wait for the connection.
                self._channels[socket] = self._sockets.dial(instance.endpoint)
                self.drivers.add(instance)
            except (BadPlugin, OSError) as refused:
                await _notify(channel, registration.RegistrationStatus(False, str(refused)))
                raise
            await _notify(channel, registration.RegistrationStatus(True))
        finally:
            await channel.close()
        log.info(
            "driver %s is registered: %s at %s", instance.driver, instance.version.name, instance.endpoint
        )
        return instance

    async def _follow(self, instance: Instance) -> None:
        """Until cancelled."""
        channel, is_connected = self._channels[instance.socket], False
        self._changed(instance.driver)
        while True:
            is_connected = await channel.connection(other_than=is_connected)
            self.drivers.connected(instance.socket, is_connected)
            if not is_connected:
                log.warning("driver %s is not connected: %s", instance.driver, instance.endpoint)
            self._changed(instance.driver)

    async def _forget(self, socket: str) -> None:
        gone = self.drivers.at(socket)
        self.drivers.remove(socket)
        channel = self._channels.pop(socket, None)
        if gone is not None:
            self._changed(gone.driver)
        if channel is not None:
            await channel.close()


async def _notify(channel: Channel, status: registration.RegistrationStatus) -> None:
    await channel.call(registration.NOTIFY, status, timeout_s=NOTIFY_S)
