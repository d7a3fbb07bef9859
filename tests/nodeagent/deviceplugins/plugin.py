"""A device plugin over real sockets that does what the story says, and notes what it was asked."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from allot.wire import CallFailed, Code, Server, UnixSockets, registration
from allot.wire import deviceplugin as wire

from ..plugins import until

GPU = "example.com/gpu"


@dataclass
class RawPlugin:
    """Written against the protocol and not with the kit: what any plugin in any language does."""

    root: Path
    devices: dict[str, bool] = field(default_factory=lambda: {"a": True, "b": True})  # and whether healthy
    resource: str = GPU
    name: str = "gpu"  # of its socket
    numa: dict[str, tuple[int, ...]] = field(default_factory=dict)
    properties: dict[str, dict[str, str]] = field(default_factory=dict)
    options: wire.DevicePluginOptions = field(default_factory=wire.DevicePluginOptions)
    likes: tuple[str, ...] = ()
    thinks_s: float = 0.0  # before it says what it likes
    fails: str = ""  # what it answers to Allocate
    fails_start: str = ""  # what it answers to PreStartContainer
    answer: wire.ContainerAllocateResponse | None = None
    asked: list[str] = field(default_factory=list)  # "allocate a,b"
    statuses: list[registration.RegistrationStatus] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        return self.root / "device-plugins"

    @property
    def socket(self) -> Path:
        return self.directory / f"{self.name}.sock"

    async def start(self) -> "RawPlugin":
        """As a plugin does: serve, then register."""
        await until((self.directory / "kubelet.sock").exists)
        await self.serve(self.socket)
        await self.register()
        return self

    async def serve(self, path: Path) -> None:
        self.servers.append(
            await UnixSockets().serve(
                str(path),
                [
                    wire.GET_OPTIONS.by(self._options),
                    wire.LIST_AND_WATCH.by(self._list),
                    wire.GET_PREFERRED.by(self._prefer),
                    wire.ALLOCATE.by(self._allocate),
                    wire.PRE_START.by(self._pre_start),
                    registration.GET_INFO.by(self._info),
                    registration.NOTIFY.by(self._notified),
                ],
            )
        )

    async def register(self, version: str = wire.VERSION, endpoint: str = "") -> None:
        channel = UnixSockets().dial(str(self.directory / "kubelet.sock"))
        name = endpoint or self.socket.name
        try:
            request = wire.RegisterRequest(version, name, self.resource, self.options)
            await channel.call(wire.REGISTER, request, timeout_s=20)
        finally:
            await channel.close()

    async def stop(self) -> None:
        for server in self.servers:
            await server.close()
        self.servers.clear()
        self.socket.unlink(missing_ok=True)

    async def _options(self, asked: wire.Empty) -> wire.DevicePluginOptions:
        self.asked.append("options")
        return self.options

    async def _list(self, asked: wire.Empty) -> AsyncIterator[wire.ListAndWatchResponse]:
        said = None
        while True:
            now = wire.ListAndWatchResponse(tuple(map(self._device, self.devices)))
            if now != said:
                said = now
                yield now
            await asyncio.sleep(0.02)

    def _device(self, id: str) -> wire.Device:
        nodes = tuple(map(wire.NumaNode, self.numa.get(id, ())))
        health = wire.HEALTHY if self.devices[id] else wire.UNHEALTHY
        near = wire.TopologyInfo(nodes) if nodes else None
        return wire.Device(id, health, near, dict(self.properties.get(id, {})))

    async def _prefer(self, asked: wire.PreferredAllocationRequest) -> wire.PreferredAllocationResponse:
        (one,) = asked.container_requests
        self.asked.append(
            f"prefer {one.allocation_size} of {','.join(one.available_device_ids)} "
            f"with {','.join(one.must_include_device_ids)}"
        )
        await asyncio.sleep(self.thinks_s)
        return wire.PreferredAllocationResponse((wire.ContainerPreferredAllocationResponse(self.likes),))

    async def _allocate(self, asked: wire.AllocateRequest) -> wire.AllocateResponse:
        (one,) = asked.container_requests
        ids = ",".join(one.devices_ids)
        self.asked.append(f"allocate {ids}")
        if self.fails:
            raise CallFailed(Code.UNKNOWN, self.fails)
        return wire.AllocateResponse((self.answer or wire.ContainerAllocateResponse({"GPUS": ids}),))

    async def _pre_start(self, asked: wire.PreStartContainerRequest) -> wire.PreStartContainerResponse:
        self.asked.append(f"start {','.join(asked.devices_ids)}")
        if self.fails_start:
            raise CallFailed(Code.UNKNOWN, self.fails_start)
        return wire.PreStartContainerResponse()

    async def _info(self, asked: registration.InfoRequest) -> registration.PluginInfo:
        return registration.PluginInfo(registration.DEVICE_PLUGIN, self.resource, "", (wire.VERSION,))

    async def _notified(
        self, status: registration.RegistrationStatus
    ) -> registration.RegistrationStatusResponse:
        self.statuses.append(status)
        return registration.RegistrationStatusResponse()
