"""Hears device plugins: who registers, and what each of them lists.

A plugin registers at the agent's own socket, or puts a registration socket of its own where drivers do
(`registry_loop`). Then it is listened to for as long as it speaks. One that falls silent may have been
killed, and registers again when it is back; until it is given up (OFFER3) its socket is tried too, each time
after a longer wait.

When the agent begins, all sockets that lie in the directory are removed, as by a kubelet, and its own is made
anew: plugins take the one or the other as a sign to register again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, NoReturn

from allot.api import podresources
from allot.base import Clock, Files
from allot.wire import CallFailed, Channel, Code, Sockets, deviceplugin, registration

from ..drivers import BadPlugin
from .offers import Offers
from .pacing import Paced

log = logging.getLogger(__name__)

DIRECTORY: Final = "device-plugins"
SOCKET: Final = "kubelet.sock"
OPTIONS_S: Final = 10.0
LIST_S: Final = 0.2
"""Between two lists of a plugin that are heeded; of those in between the last one is."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_SHOWN_MAX = 400
"""Of a name that cannot be one: more than any that can."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A plugin that can be called, and what it wants to be called for."""

    channel: Channel
    options: deviceplugin.DevicePluginOptions


class PluginLoop:
    def __init__(
        self,
        sockets: Sockets,
        files: Files,
        directory: Path,
        offers: Offers,
        clock: Clock,
        changed: Callable[[str], None],
        look_s: float,
    ) -> None:
        """`changed` is called with each resource of which something else can be had now."""
        self._sockets, self._files, self._directory = sockets, files, directory
        self._offers, self._clock, self._changed = offers, clock, changed
        self._look_s = look_s
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by resource: who registered at our socket
        self._spoken: dict[str, tuple[int, Spoken]] = {}  # by resource, with the turn of its plugin
        self._starts_told: set[str] = set()  # resources whose plugins want to hear of every start
        self._group: asyncio.TaskGroup | None = None

    def reach(self, resource: str) -> Spoken | None:
        found = self._spoken.get(resource)
        return found[1] if found is not None else None

    def wants_starts(self, resource: str) -> bool:
        """Also of a plugin that is gone for now."""
        return resource in self._starts_told

    async def run(self) -> None:
        """Until cancelled. Raises OSError where the socket cannot be served."""
        self._files.make_directory(self._directory, 0o750)
        for name in self._sockets.found(str(self._directory)):
            self._files.remove(self._directory / name)
        async with asyncio.TaskGroup() as self._group:
            while True:
                await self._serve()

    async def _serve(self) -> None:
        """For as long as the socket is there: whoever cleans up the directory must not make us deaf."""
        path = str(self._directory / SOCKET)
        serving = await self._sockets.serve(path, [deviceplugin.REGISTER.by(self._register)])
        try:
            await self._until_removed()
            log.warning("the socket %s was removed, and is made again", path)
        finally:
            await serving.close()

    async def _until_removed(self) -> None:
        while True:
            await asyncio.sleep(self._look_s)
            if SOCKET not in self._sockets.found(str(self._directory)):
                return

    # -- who comes ------------------------------------------------------------------------------

    async def _register(self, asked: deviceplugin.RegisterRequest) -> deviceplugin.Empty:
        if asked.version != deviceplugin.VERSION:
            _refuse(
                f'requested API version "{asked.version}" is not supported by kubelet. '
                f'Supported version is ["{deviceplugin.VERSION}"]'
            )
        if not podresources.is_extended_resource(asked.resource_name):
            _refuse(f'the ResourceName "{asked.resource_name[:_SHOWN_MAX]}" is invalid')
        if asked.endpoint != PurePosixPath(asked.endpoint).name:
            _refuse(f'the endpoint "{asked.endpoint}" is not the name of a socket in {self._directory}')
        if self._group is None:
            raise CallFailed(Code.UNAVAILABLE, "the agent does not take plugins yet")
        work = self._attended(
            self.attend(asked.resource_name, str(self._directory / asked.endpoint), asked.options)
        )
        earlier = self._tasks.get(asked.resource_name)
        if earlier is not None:
            earlier.cancel()
        self._tasks[asked.resource_name] = self._group.create_task(
            work, name=f"device plugin {asked.resource_name}"
        )
        log.info("the device plugin of %s is registered: %s", asked.resource_name, asked.endpoint)
        return deviceplugin.Empty()

    def introduced(self, socket: str, info: registration.PluginInfo) -> str:
        """Of a plugin that was found like a driver: where it is called. Raises BadPlugin."""
        if deviceplugin.VERSION not in info.supported_versions:
            raise BadPlugin(
                f"manager version, {deviceplugin.VERSION}, is not among plugin supported versions "
                f"{list(info.supported_versions)}"
            )
        if not podresources.is_extended_resource(info.name):
            raise BadPlugin(f'the ResourceName "{info.name[:_SHOWN_MAX]}" is invalid')
        return info.endpoint or socket

    # -- what it says ---------------------------------------------------------------------------

    def attend(
        self, resource: str, path: str, options: deviceplugin.DevicePluginOptions | None = None
    ) -> Awaitable[None]:
        """Until cancelled, or until the plugin is given up. Raises OSError for a path that is too long.

        From this moment on no earlier plugin of the resource is heard (OFFER1)."""
        turn = self._offers.begin(resource, self._clock.monotonic_s())
        return self._attend(resource, turn, path, options)

    async def _attended(self, work: Awaitable[None]) -> None:
        try:
            await work
        except OSError as wrong:
            log.warning("a device plugin cannot be heard: %s", wrong)

    async def _attend(
        self, resource: str, turn: int, path: str, options: deviceplugin.DevicePluginOptions | None
    ) -> None:
        channel = self._sockets.dial(path)
        wait_s = _FIRST_WAIT_S
        lists = Paced(partial(self._listed, resource, turn), LIST_S)
        try:
            while True:
                try:
                    known = options or await _options(channel)
                    self._can_be_called(resource, turn, Spoken(channel, known))
                    async for said in channel.stream(deviceplugin.LIST_AND_WATCH, deviceplugin.Empty()):
                        wait_s = _FIRST_WAIT_S
                        lists.say(said.devices)
                    log.warning("the device plugin of %s has ended its list: %s", resource, path)
                except CallFailed as failed:
                    log.warning("the device plugin of %s is not heard: %s: %s", resource, path, failed)
                lists.forget()
                self._silent(resource, turn)
                if self._offers.is_given_up(resource, self._clock.monotonic_s()):
                    return
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        finally:
            lists.forget()
            self._silent(resource, turn)
            await channel.close()

    def _listed(self, resource: str, turn: int, devices: Sequence[deviceplugin.Device]) -> None:
        if self._offers.hear(resource, turn, devices):
            self._changed(resource)

    def _can_be_called(self, resource: str, turn: int, plugin: Spoken) -> None:
        if turn < self._spoken.get(resource, (0, None))[0]:
            return  # OFFER1
        self._spoken[resource] = turn, plugin
        if plugin.options.pre_start_required:
            self._starts_told.add(resource)
        else:
            self._starts_told.discard(resource)

    def _silent(self, resource: str, turn: int) -> None:
        if self._spoken.get(resource, (0, None))[0] == turn:
            del self._spoken[resource]
        if self._offers.lose(resource, turn, self._clock.monotonic_s()):
            self._changed(resource)


async def _options(channel: Channel) -> deviceplugin.DevicePluginOptions:
    try:
        return await channel.call(deviceplugin.GET_OPTIONS, deviceplugin.Empty(), timeout_s=OPTIONS_S)
    except CallFailed as failed:
        if failed.code is Code.UNIMPLEMENTED:
            return deviceplugin.DevicePluginOptions()
        raise


def _refuse(why: str) -> NoReturn:
    raise CallFailed(Code.INVALID_ARGUMENT, why)
