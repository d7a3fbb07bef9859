"""How fast a driver of the kit answers, and how fast it publishes. Prints one JSON object.

    python bench/preparing.py

The API server is in this process, with a memory store; calls go over a unix socket with gRPC, and every
answer is on disk before it is given, as always. Claims of one call are prepared together, so a batch
costs two writes of the checkpoint whatever its size. The best of several rounds is shown: the machine is
shared.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from platform import python_version
from tempfile import TemporaryDirectory
from time import perf_counter

from allot.client import Client
from allot.driver import Claim, Device, Driver, Edits, Given, Node, Places, Pool, Surroundings, running
from allot.testing import api_server
from allot.wire import Channel, UnixSockets, dra

NAME, NODE = "gpu.example.com", "node-1"
CLAIMS, ROUNDS, DEVICES = 100, 3, 10_000


def prepare(claim: Claim) -> Given:
    return {one: Edits(env=(f"GPU={one.device}",)) for one in claim.devices}


async def main() -> None:
    with TemporaryDirectory(prefix="dra") as folder:
        async with api_server() as server:
            client = server.client()
            await client.resource("", "v1", "nodes", namespaced=False).create(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
            )
            claims = [await allocated(client, f"claim-{at}", f"gpu-{at}") for at in range(CLAIMS)]
            figures = {
                "publishing_10000_devices_s": await publishing(client, Path(folder, "p")),
                "pairs_per_s": await pairs(client, Path(folder, "c"), claims),
            }
    print(json.dumps({"benchmark": "preparing", "python": python_version(), **figures}, indent=1))


async def allocated(client: Client, name: str, device: str) -> dra.Claim:
    claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
    asked = {"name": "r", "exactly": {"deviceClassName": "c"}}
    new = {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": {"requests": [asked]}}}
    made = await claims.create(new)
    result = {"request": "r", "driver": NAME, "pool": NODE, "device": device}
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    await claims.patch(name, status, "default", subresource="status")
    return dra.Claim("default", made.uid, name)


async def publishing(client: Client, folder: Path) -> float:
    """From the start of the driver to the last slice."""
    slices = client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
    began = perf_counter()
    async with driver(client, folder, DEVICES):
        while True:
            page = await slices.list()
            if sum(len(one.fields["spec"]["devices"]) for one in page.objects) == DEVICES:
                return round(perf_counter() - began, 2)
            await asyncio.sleep(0.02)


async def pairs(client: Client, folder: Path, claims: list[dra.Claim]) -> dict[str, float]:
    """A prepare and an unprepare of a claim: one call after another, and a hundred claims in a call."""
    async with driver(client, folder, CLAIMS) as channel:
        single = batched = 0.0
        for _ in range(ROUNDS):
            began = perf_counter()
            for claim in claims:
                await prepared_and_back(channel, [claim])
            single = max(single, CLAIMS / (perf_counter() - began))
            began = perf_counter()
            await prepared_and_back(channel, claims)
            batched = max(batched, CLAIMS / (perf_counter() - began))
        return {"one_claim_a_call": round(single, 1), "hundred_claims_a_call": round(batched, 1)}


async def prepared_and_back(channel: Channel, claims: list[dra.Claim]) -> None:
    for answer in (await dra.prepare(channel, dra.V1, claims, timeout_s=60)).values():
        assert not answer.error, answer.error
    for back in (await dra.unprepare(channel, dra.V1, claims, timeout_s=60)).values():
        assert not back.error, back.error


@asynccontextmanager
async def driver(client: Client, folder: Path, devices: int) -> AsyncIterator[Channel]:
    def pools(node: Node) -> list[Pool]:
        return [Pool(node.name, [Device(f"gpu-{at}") for at in range(devices)])]

    places = Places(NAME, folder, folder / "cdi")
    async with running(Driver(NAME, pools, prepare), Node(NODE), places, Surroundings(client)):
        channel = UnixSockets().dial(str(places.service_socket))
        yield channel
        await channel.close()


if __name__ == "__main__":
    asyncio.run(main())
