"""A driver at work: the real API server in this process, real sockets and files, and a kubelet's calls."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from allot.apiserver import Options
from allot.base import Metrics
from allot.client import Client
from allot.driver import Device, Driver, Edits, Node, Places, Pool, Running, Surroundings, running
from allot.testing import TestServer, api_server
from allot.wire import UnixSockets, cdi, dra

NAME, NODE, NAMESPACE = "gpu.example.com", "node-1", "default"


def pools(node: Node) -> list[Pool]:
    return [Pool(node.name, [Device(f"gpu-{at}", {"index": at}) for at in range(4)])]


def prepare(claim):
    return {one: Edits(env=(f"GPU_{at}={one.device}",)) for at, one in enumerate(claim.devices)}


def _asked(name: str) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "c"}}


def _either(name: str, *alternatives: str) -> dict[str, Any]:
    return {"name": name, "firstAvailable": [{"name": one, "deviceClassName": "c"} for one in alternatives]}


def _shares(ids: Sequence[str], count: int, consumed: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"shareID": id, "consumedCapacity": {**consumed}} for id in ids] or [{}] * count


@dataclass
class World:
    server: TestServer
    client: Client
    places: Places

    async def claim(
        self,
        name: str,
        *devices: str,
        driver: str = NAME,
        request: str = "r",
        shares: Sequence[str] = (),
        capacity: Mapping[str, str] | None = None,
        **more: Any,
    ) -> dra.Claim:
        """A claim that has these devices, as a scheduler would have written it."""
        claims = self.client.resource("resource.k8s.io", "v1", "resourceclaims")
        made = await claims.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {"devices": {"requests": [_asked("r"), _asked("q"), _either("s", "small")]}},
            }
        )
        if devices:
            results = [
                {"request": request, "driver": driver, "pool": NODE, "device": one, **share}
                for one, share in zip(
                    devices, _shares(shares, len(devices), capacity or {"memory": "1Gi"}), strict=True
                )
            ]
            allocation = {
                "devices": {"results": results, **more},
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
                    ]
                },
            }
            await claims.patch(name, {"status": {"allocation": allocation}}, NAMESPACE, subresource="status")
        return dra.Claim(NAMESPACE, made.uid, name)

    async def slices(self) -> list[dict[str, Any]]:
        found = await self.client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False).list()
        return [one.fields for one in found.objects]

    async def devices(self) -> set[str]:
        return {device["name"] for one in await self.slices() for device in one["spec"].get("devices", ())}

    def env(self, answer: dra.NodePrepareResourceResponse) -> tuple[str, ...]:
        """What a container with all devices of an answer gets, looked up as a runtime does."""
        names = [name for device in answer.devices for name in device.cdi_device_ids]
        return cdi.catalogue([self.places.cdi]).edits(names).env

    def files(self) -> set[str]:
        return set(cdi.SpecDirectory(self.places.cdi).names())

    @asynccontextmanager
    async def driver(
        self,
        prepare: Any = prepare,
        boot: str = "boot-1",
        places: Places | None = None,
        user: Any = None,
        **more: Any,
    ) -> AsyncIterator["Kubelet"]:
        driver = Driver(NAME, more.pop("pools", pools), prepare, **more)
        client = self.server.client(user) if user else self.server.client()
        metrics, at = Metrics(), places or self.places
        around = Surroundings(client, metrics=metrics, boot=boot)
        async with running(driver, Node(NODE), at, around) as work:
            channel = UnixSockets().dial(str(at.service_socket))
            try:
                yield Kubelet(channel, work, metrics)
            finally:
                await channel.close()


@dataclass
class Kubelet:
    channel: Any
    work: Running
    metrics: Metrics
    version: dra.Version = dra.V1

    async def prepare(self, *claims: dra.Claim) -> dict[str, dra.NodePrepareResourceResponse]:
        return await dra.prepare(self.channel, self.version, claims, timeout_s=60)

    async def unprepare(self, *claims: dra.Claim) -> dict[str, dra.NodeUnprepareResourceResponse]:
        return await dra.unprepare(self.channel, self.version, claims, timeout_s=60)


@asynccontextmanager
async def world(options: Options | None = None) -> AsyncIterator[World]:
    """In a folder whose name is short: a socket's address has 107 bytes."""
    with TemporaryDirectory(prefix="dra") as path:
        folder = Path(path)
        async with _world(folder, options) as here:
            yield here


def tell(story: Any, options: Options | None = None) -> Any:
    """A story in a world of its own."""

    async def told() -> Any:
        async with world(options) as here:
            return await story(here)

    return asyncio.run(told())


@asynccontextmanager
async def _world(folder: Path, options: Options | None) -> AsyncIterator[World]:
    async with api_server(options=options) as server:
        client = server.client()
        await client.resource("", "v1", "nodes", namespaced=False).create(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        )
        yield World(server, client, Places(NAME, folder / "kubelet", folder / "cdi"))


async def until(holds: Any, *, within_s: float = 30) -> Any:
    """The first answer of `holds` that is true."""
    async with asyncio.timeout(within_s):
        while True:
            found = await holds()
            if found:
                return found
            await asyncio.sleep(0.02)
