"""A driver over real sockets that does what the story says, and notes what it was told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from allot.wire import CallFailed, Code, Server, UnixSockets, dra, health, registration

DRIVER = "gpu.example.com"
V1, V1BETA1 = dra.V1.name, dra.V1BETA1.name
SOON_S = 30.0


@dataclass
class Plugin:
    root: Path
    driver: str = DRIVER
    name: str = "gpu"  # of its sockets
    versions: tuple[str, ...] = (V1, V1BETA1)
    type: str = registration.DRA_PLUGIN
    endpoint: str | None = None
    is_deaf: bool = False  # it never answers who it is
    breaks_notify: bool = False
    requests: tuple[str, ...] = ("r/sub",)  # of a claim, that its device is for
    fails: str = ""  # what it answers for each claim
    forgets: bool = False  # to answer for claims
    share: str | None = None  # which of its shares a claim has of a device
    delay_s: float = 0.0
    sick: list[str] | None = None  # devices that are not well; None: it says nothing of health
    before: Callable[[str], None] = lambda what: None
    told: list[str] = field(default_factory=list)  # "prepare a,b"
    held: set[str] = field(default_factory=set)  # claims that are prepared
    statuses: list[registration.RegistrationStatus] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of devices whose health it tells

    @property
    def announced(self) -> Path:
        return self.root / "plugins_registry" / f"{self.name}-reg.sock"

    @property
    def service(self) -> Path:
        return self.root / "plugins" / self.name / "dra.sock"

    async def start(self) -> "Plugin":
        await self.serve()
        await self.announce()
        return self

    async def serve(self) -> None:
        handlers = dra.served(
            self._prepare, self._unprepare, [v for v in dra.VERSIONS if v.name in self.versions]
        )
        handlers += health.served(self._watch, [v for v in health.VERSIONS if v.name in self.versions])
        self.servers.append(await UnixSockets().serve(str(self.service), handlers))

    async def announce(self) -> None:
        handlers = [registration.GET_INFO.by(self._info), registration.NOTIFY.by(self._notified)]
        self.servers.append(await UnixSockets().serve(str(self.announced), handlers))

    async def stop(self) -> None:
        """As a driver that ends: its sockets are gone."""
        for server in reversed(self.servers):
            await server.close()
        self.servers.clear()
        self.announced.unlink(missing_ok=True)

    async def _info(self, asked: registration.InfoRequest) -> registration.PluginInfo:
        if self.is_deaf:
            await asyncio.sleep(3600)
        endpoint = str(self.service) if self.endpoint is None else self.endpoint
        return registration.PluginInfo(self.type, self.driver, endpoint, self.versions)

    async def _notified(
        self, status: registration.RegistrationStatus
    ) -> registration.RegistrationStatusResponse:
        self.statuses.append(status)
        if self.breaks_notify:
            raise CallFailed(Code.INTERNAL, "as the story says")
        return registration.RegistrationStatusResponse()

    async def _prepare(self, asked: dra.NodePrepareResourcesRequest) -> dra.NodePrepareResourcesResponse:
        await self._hear("prepare", asked.claims)
        answers = {}
        for claim in () if self.forgets else asked.claims:
            if self.fails:
                answers[claim.uid] = dra.NodePrepareResourceResponse(error=self.fails)
                continue
            self.held.add(claim.uid)
            device = dra.Device(
                self.requests, "pool", f"dev-{claim.name}", (f"example.com/gpu={claim.name}",), self.share
            )
            answers[claim.uid] = dra.NodePrepareResourceResponse((device,))
        return dra.NodePrepareResourcesResponse(answers)

    async def _unprepare(
        self, asked: dra.NodeUnprepareResourcesRequest
    ) -> dra.NodeUnprepareResourcesResponse:
        await self._hear("unprepare", asked.claims)
        if not self.fails:
            self.held -= {claim.uid for claim in asked.claims}
        claims = () if self.forgets else asked.claims
        answers = {claim.uid: dra.NodeUnprepareResourceResponse(self.fails) for claim in claims}
        return dra.NodeUnprepareResourcesResponse(answers)

    async def _watch(
        self, asked: health.NodeWatchResourcesRequest
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        """Whenever it is different."""
        said = None
        while self.sick is not None:
            if self.sick != said:
                said = list(self.sick)
                devices = [f"dev-{uid.removeprefix('uid-')}" for uid in self.held] + self.names
                yield health.NodeWatchResourcesResponse(
                    tuple(
                        health.DeviceHealth(
                            health.DeviceIdentifier("pool", name),
                            health.Health.UNHEALTHY if name in said else health.Health.HEALTHY,
                            message="too hot" if name in said else "",
                        )
                        for name in dict.fromkeys(devices)
                    )
                )
            await asyncio.sleep(0.02)

    async def _hear(self, what: str, claims: tuple[dra.Claim, ...]) -> None:
        self.told.append(f"{what} {','.join(claim.name for claim in claims)}")
        self.before(what)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)


async def until(
    question: Callable[[], bool | Awaitable[bool]], what: object = "it did not become so"
) -> None:
    end = asyncio.get_running_loop().time() + SOON_S
    while True:
        answer = question()
        if answer if isinstance(answer, bool) else await answer:
            return
        assert asyncio.get_running_loop().time() < end, what
        await asyncio.sleep(0.01)
