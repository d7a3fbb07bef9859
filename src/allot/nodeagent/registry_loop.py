"""Follows the registration directory, and what lies below it: who comes is asked who it is, and told
what came of it.

Each registration socket has a task of its own, from the moment it is found until it is gone or
another one took its place, so a plugin that never answers keeps nobody waiting. What fails is tried
again while the socket is there, each time after a longer wait.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from pathlib import Path
from typing import Protocol

from allot.wire import CallFailed, Channel, Code, Sockets, dra, registration

from .drivers import BadPlugin, Drivers, Instance, introduced

log = logging.getLogger(__name__)

Followed = Callable[[], Awaitable[None]]
"""What is done with a plugin once it is registered: until cancelled, or until it is gone."""

LOOK_S = 0.1
INFO_S, NOTIFY_S = 1.0, 5.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0
_PATIENCE_S = 8.0
"""A driver that was killed leaves its socket behind, and is started again as a rule: nobody is warned before
a wait of this length."""


class DevicePlugins(Protocol):
    """Who hears device plugins, which may be found like drivers."""

    def introduced(self, socket: str, info: registration.PluginInfo) -> str:
        """Where the plugin is called. Raises BadPlugin."""

    def attend(self, resource: str, path: str) -> Awaitable[None]:
        """For as long as it speaks."""


class Registry:
    def __init__(
        self,
        sockets: Sockets,
        directory: Path,
        changed: Callable[[str], None],
        device_plugins: DevicePlugins | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        """`changed` is called with the name of each driver that has come, gone, or been (dis)connected."""
        self._device_plugins = device_plugins
        self._sockets = sockets
        self._directory = directory
        self._changed = changed
        self._look_s = look_s
        self._tasks: dict[str, tuple[Hashable, asyncio.Task[None]]] = {}  # by path below the directory
        self._channels: dict[str, Channel] = {}  # by registration socket
        self.drivers = Drivers()

    def reach(self, driver: str) -> tuple[Channel, dra.Version] | None:
        instance = self.drivers.called(driver)
        if instance is None or instance.version is None:
            return None
        return self._channels[instance.socket], instance.version

    def reach_classic(self, driver: str) -> Channel | None:
        instance = self.drivers.called(driver, classic=True)
        return self._channels[instance.socket] if instance is not None else None

    def health(self, driver: str) -> Instance | None:
        instance = self.drivers.called(driver)
        return instance if instance is not None and instance.followed is not None else None

    def sources(self) -> dict[str, Instance]:
        """Of each driver that is connected, whom to ask what it has."""
        names = self.drivers.names | self.drivers.classic_names
        found = {driver: self.drivers.source(driver) for driver in sorted(names)}
        return {driver: one for driver, one in found.items() if one is not None and one.is_connected}

    def channel(self, instance: Instance) -> Channel | None:
        return self._channels.get(instance.socket)

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._look(group)
                    await asyncio.sleep(self._look_s)
        finally:
            for socket in tuple(self._channels):
                await self._forget(socket)

    def _look(self, group: asyncio.TaskGroup) -> None:
        found = self._sockets.found(str(self._directory))
        for name, (which, task) in tuple(self._tasks.items()):
            if found.get(name) != which:
                task.cancel()
                del self._tasks[name]
        for name, which in found.items():
            if name not in self._tasks:
                work = self._attend(str(self._directory / name))
                self._tasks[name] = which, group.create_task(work, name=f"plugin {name}")

    async def _attend(self, socket: str) -> None:
        """Until cancelled: the socket is gone."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                followed = await self._register(socket)
                wait_s = _FIRST_WAIT_S
                await followed()
            except (CallFailed, BadPlugin, OSError) as failed:
                level = logging.INFO if _is_left_behind(failed, wait_s) else logging.WARNING
                log.log(level, "plugin %s is not registered, again in %.1f s: %s", socket, wait_s, failed)
            finally:
                await self._forget(socket)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _register(self, socket: str) -> Followed:
        channel = self._sockets.dial(socket)
        try:
            info = await channel.call(registration.GET_INFO, registration.InfoRequest(), timeout_s=INFO_S)
            try:
                followed = self._taken(socket, info)
            except (BadPlugin, OSError) as refused:
                await _notify(channel, registration.RegistrationStatus(False, str(refused)))
                raise
            await _notify(channel, registration.RegistrationStatus(True))
        finally:
            await channel.close()
        log.info("plugin %s is registered: %s at %s", info.name, info.type, info.endpoint or socket)
        return followed

    def _taken(self, socket: str, info: registration.PluginInfo) -> Followed:
        """Raises BadPlugin, and OSError."""
        plugins = self._device_plugins
        if plugins is not None and info.type == registration.DEVICE_PLUGIN:
            endpoint = plugins.introduced(socket, info)
            return lambda: plugins.attend(info.name, endpoint)
        instance = introduced(socket, info)
        # At once, so that the first pod does not wait for the connection.
        self._channels[socket] = self._sockets.dial(instance.endpoint)
        self.drivers.add(instance)
        return lambda: self._follow(instance)

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


def _is_left_behind(failed: Exception, wait_s: float) -> bool:
    return isinstance(failed, CallFailed) and failed.code is Code.UNAVAILABLE and wait_s < _PATIENCE_S
