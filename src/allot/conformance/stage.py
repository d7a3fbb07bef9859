"""What a case has at hand: the driver's sockets, claims in the API, CDI files, a way to restart the driver.

Whatever a case makes is removed when it ends: prepared claims are unprepared, claims are deleted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from allot.api import errors, resource
from allot.base import Ids
from allot.client import Client, Resource
from allot.wire import CallFailed, Channel, Code, Sockets, cdi, dra, registration

from .devices import Free, ManyNodes, free, node_of

PREFIX: Final = "allot-conformance-"
FOREIGN: Final = "foreign.conformance.allot.dev"
"""A driver that is not there."""


class Broken(Exception):
    """The driver did what the contract does not allow. The message says what was seen."""


class NotTried(Exception):
    """The message says what the case would have needed."""


class NoDriver(Exception):
    """Nobody answers who could be tried."""


@dataclass(frozen=True, slots=True)
class Settings:
    socket: Path  # of the registration, or of the service
    sockets: Sockets
    ids: Ids
    client: Client | None = None
    namespace: str = "default"
    node: str = ""
    driver: str = ""  # where only the service is there to be asked
    cdi: Path | None = None
    restart: Callable[[], Awaitable[None]] | None = None
    call_s: float = 45.0  # as a kubelet waits
    come_back_s: float = 60.0  # after a restart, and for slices that were deleted


@dataclass(frozen=True, slots=True)
class Made:
    """A claim in the API, and what the driver should answer for it."""

    claim: dra.Claim
    devices: tuple[tuple[str, str, str], ...]  # request, pool, device: this driver's


@dataclass(slots=True)
class Stage:
    settings: Settings
    channel: Channel  # to the service
    announcing: Channel | None  # to the registration
    info: registration.PluginInfo
    _made: list[dra.Claim] = field(default_factory=list)
    _touched: dict[str, dra.Claim] = field(default_factory=dict)

    @property
    def driver(self) -> str:
        return self.info.name

    @property
    def version(self) -> dra.Version:
        """As a kubelet chooses: the first of the driver's that we know."""
        known = {version.name: version for version in dra.VERSIONS}
        return next((known[name] for name in self.info.supported_versions if name in known), dra.V1)

    # -- calls

    async def prepare(
        self, *claims: dra.Claim, version: dra.Version | None = None
    ) -> dict[str, dra.NodePrepareResourceResponse]:
        """The whole answer, read as it is. Broken where there is none, or not one for each claim."""
        self._touched.update((claim.uid, claim) for claim in claims)
        method = (version or self.version).prepare
        request = dra.NodePrepareResourcesRequest(tuple(claims))
        try:
            answer = await self.channel.call(method, request, timeout_s=self.settings.call_s)
        except CallFailed as failed:
            raise Broken(f"NodePrepareResources failed as a whole: {failed}") from None
        _same_claims("NodePrepareResources", claims, answer.claims)
        return answer.claims

    async def unprepare(
        self, *claims: dra.Claim, version: dra.Version | None = None
    ) -> dict[str, dra.NodeUnprepareResourceResponse]:
        method = (version or self.version).unprepare
        request = dra.NodeUnprepareResourcesRequest(tuple(claims))
        try:
            answer = await self.channel.call(method, request, timeout_s=self.settings.call_s)
        except CallFailed as failed:
            raise Broken(f"NodeUnprepareResources failed as a whole: {failed}") from None
        _same_claims("NodeUnprepareResources", claims, answer.claims)
        return answer.claims

    async def ready(self, made: Made, **more: Any) -> dra.NodePrepareResourceResponse:
        """Prepared, with exactly the claim's devices."""
        answer = (await self.prepare(made.claim, **more))[made.claim.uid]
        if answer.error:
            raise Broken(f"an allocated claim was not prepared: {answer.error}")
        found = sorted((one.pool_name, one.device_name) for one in answer.devices)
        wanted = sorted((pool, device) for _, pool, device in made.devices)
        if found != wanted:
            raise Broken(f"the claim has the devices {_shown(wanted)}, and the answer {_shown(found)}")
        return answer

    async def released(self, *claims: dra.Claim, **more: Any) -> None:
        for uid, answer in (await self.unprepare(*claims, **more)).items():
            if answer.error:
                raise Broken(f"unprepare of claim {uid} failed: {answer.error}")

    # -- claims

    async def claim(self, devices: int = 1, **more: Any) -> Made:
        return (await self.claims([devices], **more))[0]

    async def claims(self, sizes: Sequence[int], *, sub: bool = False, foreign: bool = False) -> list[Made]:
        """Allocated claims with so many devices each. NotTried where the driver has not enough."""
        found = await self._free()
        need = sum(sizes)
        if len(found) < need:
            raise NotTried(f"{need} free devices of {self.driver}; there are {len(found)}")
        made = []
        for size in sizes:
            own, found = found[:size], found[size:]
            made.append(await self._allocated(own, "r/a" if sub else "r", foreign=foreign))
        return made

    async def open_claim(self) -> dra.Claim:
        """A claim that has no devices."""
        return await self._create("r")

    async def foreign_claim(self) -> dra.Claim:
        """A claim that has a device of another driver alone."""
        return (await self._allocated([], "r", foreign=True)).claim

    def unknown(self) -> dra.Claim:
        """A claim that the API does not have."""
        uid = self.settings.ids.uid()
        return dra.Claim(self.settings.namespace, uid, f"{PREFIX}{uid}")

    async def delete(self, claim: dra.Claim) -> None:
        with suppress(errors.NotFound):
            await self._claims().delete(claim.name, claim.namespace)

    async def _free(self) -> list[Free]:
        slices = await self.slices()
        claims = await self._claims().list()
        return free(slices, claims.objects, self.driver, self.node(slices))

    def node(self, slices: Sequence[resource.ResourceSlice]) -> str:
        """Where the driver runs, as far as its slices tell."""
        try:
            return node_of(slices, self.settings.node)
        except ManyNodes as many:
            raise NotTried(str(many)) from None

    async def slices(self) -> list[resource.ResourceSlice]:
        selector = f"spec.driver={self.driver}"
        page = await self.client().of(resource.RESOURCE_SLICE).list(field_selector=selector)
        return [one.view(resource.ResourceSlice) for one in page.objects]

    async def _allocated(self, devices: Sequence[Free], request: str, *, foreign: bool) -> Made:
        claim = await self._create(request)
        results: list[dict[str, Any]] = [
            {"request": request, "driver": self.driver, **self._result(one)} for one in devices
        ]
        if foreign:
            other = {"request": request, "driver": FOREIGN, "pool": "p", "device": claim.uid}
            results.append(other)
        patch = {"status": {"allocation": {"devices": {"results": results}}}}
        try:
            await self._claims().patch(claim.name, patch, claim.namespace, subresource="status")
        except errors.ApiError as refused:
            raise NotTried(f"the right to allocate devices, free ones: {refused}") from None
        return Made(claim, tuple((request.partition("/")[0], one.pool, one.device) for one in devices))

    def _result(self, one: Free) -> dict[str, Any]:
        device = {"pool": one.pool, "device": one.device}
        if one.consumes is None:
            return device
        return {**device, "shareID": self.settings.ids.uid(), "consumedCapacity": dict(one.consumes)}

    async def _create(self, request: str) -> dra.Claim:
        main, _, sub = request.partition("/")
        asked: dict[str, Any] = {"name": main, "exactly": {"deviceClassName": "conformance"}}
        if sub:
            asked = {"name": main, "firstAvailable": [{"name": sub, "deviceClassName": "conformance"}]}
        new = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": f"{PREFIX}{self.settings.ids.uid()}",
                "namespace": self.settings.namespace,
            },
            "spec": {"devices": {"requests": [asked]}},
        }
        made = await self._claims().create(new)
        claim = dra.Claim(made.namespace, made.uid, made.name)
        self._made.append(claim)
        return claim

    def client(self) -> Client:
        if self.settings.client is None:
            raise NotTried("an API server: --kubeconfig")
        return self.settings.client

    def _claims(self) -> Resource:
        return self.client().of(resource.RESOURCE_CLAIM)

    # -- CDI

    def catalogue(self) -> cdi.Catalogue:
        if self.settings.cdi is None:
            raise NotTried("the directory of the driver's CDI files: --cdi-dir")
        return cdi.catalogue([self.settings.cdi])

    # -- the driver's life

    async def restart(self) -> None:
        """Returns when the driver answers again."""
        if self.settings.restart is None:
            raise NotTried("a way to restart the driver: --restart")
        await self.settings.restart()
        await self.answers()

    async def answers(self) -> None:
        """Waits for the service to take calls."""
        try:
            async with asyncio.timeout(self.settings.come_back_s):
                while True:
                    try:
                        await self.channel.call(
                            self.version.unprepare, dra.NodeUnprepareResourcesRequest(), timeout_s=5
                        )
                        return
                    except CallFailed as failed:
                        if failed.code not in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED):
                            return
                        await asyncio.sleep(0.1)
        except TimeoutError:
            seconds = f"{self.settings.come_back_s:.0f} seconds"
            raise Broken(f"the service does not answer within {seconds}") from None

    async def clean(self) -> None:
        """Nothing of a case stays, however it went."""
        touched, self._touched = tuple(self._touched.values()), {}
        if touched:
            request = dra.NodeUnprepareResourcesRequest(touched)
            with suppress(CallFailed):
                await self.channel.call(self.version.unprepare, request, timeout_s=self.settings.call_s)
        made, self._made = tuple(self._made), []
        for claim in made:
            with suppress(errors.ApiError):
                await self.delete(claim)


def _same_claims(method: str, asked: Sequence[dra.Claim], answered: Any) -> None:
    missing = [claim.uid for claim in asked if claim.uid not in answered]
    more = [uid for uid in answered if uid not in {claim.uid for claim in asked}]
    if missing:
        raise Broken(f"the answer of {method} lacks {len(missing)} of {len(asked)} claims: {missing[0]}")
    if more:
        raise Broken(f"the answer of {method} has claims that nobody asked for: {more[0]}")


def _shown(devices: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{pool}/{device}" for pool, device in devices) or "none"


def shown(answer: dra.NodePrepareResourceResponse) -> str:
    if answer.error:
        return f"an error ({answer.error})"
    devices = (f"{one.pool_name}/{one.device_name} {[*one.cdi_device_ids]}" for one in answer.devices)
    return "as " + (", ".join(devices) or "no device")
