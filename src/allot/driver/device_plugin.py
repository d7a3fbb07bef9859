"""A device plugin (v1beta1): what its author declares, and everything put together around it.

    plugin = DevicePlugin("example.com/gpu", devices, allocate)
    plugin.main()

Such devices are counted under one name, and a pod asks for a number of them. What they are like is known
where they have properties, and the node exports them as compute resources (KEP-14). Whoever begins today
writes a `Driver`. A plugin is for devices that are counted already, and works beside drivers of other nodes
(KEP-5004).

What it promises
    PLUG1  Whatever begins anew, kubelet or plugin, the plugin registers again: with each kubelet once.
    PLUG2  Each kubelet that listens hears what the devices are, and then whenever that is different.
    PLUG3  What the author cannot give is refused with the author's words; the plugin goes on.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from allot.api import podresources
from allot.wire import (
    ADDRESS_BYTES_MAX,
    CallFailed,
    Code,
    Handler,
    Server,
    Sockets,
    UnixSockets,
    deviceplugin,
)

from .assembly import Node
from .claims import Edits
from .deeds import done, first_of_several
from .places import KUBELET_ROOT

log = logging.getLogger(__name__)

KUBELET: Final = "kubelet.sock"
LOOK_S: Final = 0.2
"""Between two looks at whether the kubelet is another one."""
REGISTER_S: Final = 5.0
AGAIN_S: Final = 5.0
"""After a registration or the author's list of devices failed."""
_NO_WORD: Final = ("hooks", "intel_rdt", "additional_gids")


@dataclass(frozen=True, slots=True)
class Counted:
    """A device that is counted."""

    id: str
    is_healthy: bool = True
    numa: tuple[int, ...] = ()  # the NUMA nodes that it is near to
    properties: Mapping[str, str] = field(default_factory=dict)  # what it is like, for classes to select


@dataclass(frozen=True, slots=True)
class Allotted:
    """What a container gets with its devices."""

    edits: Edits = field(default_factory=Edits)  # variables, device nodes and mounts
    cdi_devices: tuple[str, ...] = ()  # by their full names, for which CDI specs are there
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """A container is about to get `count` devices: all of `included`, and others of `available`."""

    available: tuple[str, ...]
    included: tuple[str, ...]
    count: int


Devices = Callable[[Node], Iterable[Counted] | AsyncIterator[Iterable[Counted]]]
"""The devices of a node: once, or, as an async generator, all of them again whenever they change."""
Allocate = Callable[[tuple[str, ...]], Edits | Allotted | Awaitable[Edits | Allotted]]
Prefer = Callable[[Choice], Sequence[str] | Awaitable[Sequence[str]]]
Starting = Callable[[tuple[str, ...]], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class DevicePlugin:
    name: str  # of the resource: example.com/gpu
    devices: Devices
    allocate: Allocate
    prefer: Prefer | None = None  # which devices go well together
    starting: Starting | None = None  # called before each start of a container

    def __post_init__(self) -> None:
        if not podresources.is_extended_resource(self.name):
            raise ValueError(f"{self.name!r} cannot be the name of a resource that a device plugin counts")

    def main(self, argv: Sequence[str] | None = None) -> int:
        """As a program: reads flags, runs until interrupted, returns the exit status."""
        from .main import main_of_plugin

        return main_of_plugin(self, argv)


class Plugged:
    """A plugin at work."""

    def __init__(
        self, plugin: DevicePlugin, node: Node, directory: Path, sockets: Sockets, look_s: float = LOOK_S
    ) -> None:
        self._plugin, self._node = plugin, node
        self._directory, self._sockets = directory, sockets
        self._look_s = look_s
        self._devices: tuple[deviceplugin.Device, ...] | None = None  # None: the author has not said yet
        self._turn = asyncio.Event()  # set, and replaced, with every list
        self._server: Server | None = None
        self.registered = asyncio.Event()

    @property
    def socket(self) -> str:
        """The name of its own, which fits into an address wherever the kubelet's does."""
        name = f"{self._plugin.name.replace('/', '_')}.sock"
        if len(bytes(self._directory / name)) <= ADDRESS_BYTES_MAX:
            return name
        return f"{sha256(self._plugin.name.encode()).hexdigest()[: len('kubelet')]}.sock"

    async def run(self) -> None:
        """Until cancelled. Raises OSError where its socket cannot be served."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow())
                group.create_task(self._stay_registered())
        finally:
            await self._close()

    # -- the kubelet ----------------------------------------------------------------------------

    async def _stay_registered(self) -> None:
        """PLUG1: a kubelet that begins anew removes all sockets, and makes its own anew."""
        with_whom: Hashable | None = None
        while True:
            found = self._sockets.found(str(self._directory))
            if self._server is None or self.socket not in found:  # what lies there may be a dead one's
                await self._close()
                self._server = await self._sockets.serve(str(self._directory / self.socket), self._handlers)
                with_whom = None
            kubelet = found.get(KUBELET)
            if kubelet is None:
                self.registered.clear()
            elif kubelet != with_whom or not self.registered.is_set():
                with_whom = kubelet if await self._register() else None
            await asyncio.sleep(self._look_s if with_whom is not None or kubelet is None else AGAIN_S)

    async def _register(self) -> bool:
        self.registered.clear()
        channel = self._sockets.dial(str(self._directory / KUBELET))
        request = deviceplugin.RegisterRequest(
            deviceplugin.VERSION, self.socket, self._plugin.name, self._options
        )
        try:
            await channel.call(deviceplugin.REGISTER, request, timeout_s=REGISTER_S)
        except CallFailed as failed:
            log.warning("the device plugin of %s is not registered: %s", self._plugin.name, failed)
            return False
        finally:
            await channel.close()
        self.registered.set()
        log.info("the device plugin of %s is registered", self._plugin.name)
        return True

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    # -- the author's devices -------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                given = self._plugin.devices(self._node)
                if not isinstance(given, AsyncIterator):
                    self._tell(given)
                    return
                async for devices in given:
                    self._tell(devices)
                return
            except Exception:
                log.exception("the devices of %s cannot be told; again in %.0f s", self._plugin.name, AGAIN_S)
            await asyncio.sleep(AGAIN_S)

    def _tell(self, devices: Iterable[Counted]) -> None:
        self._devices = tuple(map(_listed, devices))
        self._turn.set()
        self._turn = asyncio.Event()

    # -- what a kubelet asks --------------------------------------------------------------------

    @property
    def _options(self) -> deviceplugin.DevicePluginOptions:
        plugin = self._plugin
        return deviceplugin.DevicePluginOptions(plugin.starting is not None, plugin.prefer is not None)

    @property
    def _handlers(self) -> list[Handler]:
        return [
            deviceplugin.GET_OPTIONS.by(self._say_options),
            deviceplugin.LIST_AND_WATCH.by(self._list),
            deviceplugin.GET_PREFERRED.by(self._prefer),
            deviceplugin.ALLOCATE.by(self._allocate),
            deviceplugin.PRE_START.by(self._start),
        ]

    async def _say_options(self, asked: deviceplugin.Empty) -> deviceplugin.DevicePluginOptions:
        return self._options

    async def _list(self, asked: deviceplugin.Empty) -> AsyncIterator[deviceplugin.ListAndWatchResponse]:
        """PLUG2."""
        told: tuple[deviceplugin.Device, ...] | None = None
        while True:
            turn = self._turn
            if self._devices is not None and self._devices != told:
                told = self._devices
                yield deviceplugin.ListAndWatchResponse(told)
            else:
                await turn.wait()

    async def _prefer(
        self, asked: deviceplugin.PreferredAllocationRequest
    ) -> deviceplugin.PreferredAllocationResponse:
        if self._plugin.prefer is None:
            raise CallFailed(Code.UNIMPLEMENTED, f"the device plugin of {self._plugin.name} likes all alike")
        answers = []
        for one in asked.container_requests:
            choice = Choice(one.available_device_ids, one.must_include_device_ids, one.allocation_size)
            liked = await self._answer(self._plugin.prefer, choice)
            answers.append(deviceplugin.ContainerPreferredAllocationResponse(tuple(liked)))
        return deviceplugin.PreferredAllocationResponse(tuple(answers))

    async def _allocate(self, asked: deviceplugin.AllocateRequest) -> deviceplugin.AllocateResponse:
        answers = []
        for one in asked.container_requests:
            given = await self._answer(self._plugin.allocate, one.devices_ids)
            answers.append(_answer(given if isinstance(given, Allotted) else Allotted(given)))
        return deviceplugin.AllocateResponse(tuple(answers))

    async def _start(
        self, asked: deviceplugin.PreStartContainerRequest
    ) -> deviceplugin.PreStartContainerResponse:
        if self._plugin.starting is not None:
            await self._answer(self._plugin.starting, asked.devices_ids)
        return deviceplugin.PreStartContainerResponse()

    async def _answer(self, deed: Callable[..., Any], about: object) -> Any:
        """PLUG3."""
        try:
            return await done(deed, about)
        except CallFailed:
            raise
        except Exception as wrong:
            log.warning("the device plugin of %s: %s", self._plugin.name, wrong, exc_info=wrong)
            raise CallFailed(Code.UNKNOWN, str(wrong) or type(wrong).__name__) from None


@asynccontextmanager
async def plugged(
    plugin: DevicePlugin, node: Node, root: Path = KUBELET_ROOT, sockets: Sockets | None = None
) -> AsyncIterator[Plugged]:
    """The plugin at work while the block runs; `root` is the kubelet's. Raises OSError."""
    work = Plugged(plugin, node, root / "device-plugins", sockets or UnixSockets())
    with first_of_several():
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work.run())
            yield work
            task.cancel()


def _listed(one: Counted) -> deviceplugin.Device:
    health = deviceplugin.HEALTHY if one.is_healthy else deviceplugin.UNHEALTHY
    nodes = tuple(map(deviceplugin.NumaNode, one.numa))
    near = deviceplugin.TopologyInfo(nodes) if nodes else None
    return deviceplugin.Device(one.id, health, near, dict(one.properties))


def _answer(given: Allotted) -> deviceplugin.ContainerAllocateResponse:
    """Raises CallFailed: a plugin's answer has no word for everything that CDI has."""
    missing = [name for name in _NO_WORD if getattr(given.edits, name)]
    if missing:
        raise CallFailed(
            Code.FAILED_PRECONDITION,
            f"a device plugin cannot answer with {', '.join(missing)}: write a CDI spec with them, and "
            "answer with the names of its devices (cdi_devices)",
        )
    return deviceplugin.ContainerAllocateResponse(
        dict(one.partition("=")[::2] for one in given.edits.env),
        tuple(
            deviceplugin.Mount(one.container_path, one.host_path, "ro" in one.options)
            for one in given.edits.mounts
        ),
        tuple(
            deviceplugin.DeviceSpec(one.path, one.host_path or one.path, one.permissions or "rwm")
            for one in given.edits.device_nodes
        ),
        dict(given.annotations),
        tuple(map(deviceplugin.CdiDevice, given.cdi_devices)),
    )
