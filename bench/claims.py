"""What a pod's claim costs the claim controller, in a small cluster and in a large one.

    bench/claims.py [--small N] [--large M] [--changes K]

The real server, in process, on a memory store; the controller with its own rights. Twice,
with N and with M pods that have claims allocated and reserved, the controller starts, is
left alone for a while (how many requests does it make?), and then K pods finish one after
another (how long from the pod's end to the claim's?). In between, a burst of new pods gets
its claims. Prints one JSON object.

The time of a change includes what the server takes for four writes: read the ratio.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from allot.api import Request, Response, Transport
from allot.apiserver import identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client, InProcessTransport
from allot.controllers import Controller, Process, resourceclaims, run
from allot.informers import Informers
from allot.testing import TestServer, api_server

NS = "default"
BURST = 500
IDLE_S = 3.0


class Counting:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.requests = 0

    async def send(self, request: Request) -> Response:
        self.requests += 1
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()


class Bench:
    def __init__(self, server: TestServer) -> None:
        self.server = server
        self.wires: list[Counting] = []
        client = server.client()
        self.pods = client.resource("", "v1", "pods")
        self.claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.templates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")

    def client(self, user: Any) -> Client:
        self.wires.append(Counting(InProcessTransport(self.server.api.handle, user)))
        return Client(self.wires[-1])

    @property
    def requests(self) -> int:
        return sum(wire.requests for wire in self.wires)

    async def control(self, ready: Callable[[], None]) -> None:
        def client_of(controller: Controller) -> Client:
            return self.client(identities.controller(controller.account))

        rng = random.Random(1)
        async with Informers(self.client(identities.CONTROLLER_MANAGER), rng) as informers:
            process = Process.of(informers, client_of, SystemClock(), rng, RandomIds(rng), Metrics())
            await run(process, [resourceclaims.CONTROLLER], ready=ready)

    # -- the cluster ----------------------------------------------------------------------------

    async def fill(self, pods: int) -> None:
        for start in range(0, pods, 100):
            await asyncio.gather(*(self._running_pod(n) for n in range(start, min(start + 100, pods))))

    async def _running_pod(self, n: int) -> None:
        pod = await self.pods.create(_pod(f"p{n}", {"resourceClaimName": f"c{n}"}, nodeName=f"n{n % 500}"))
        await self.claims.create(_claim(f"c{n}"))
        result = {"request": "r", "driver": "gpu.example.com", "pool": f"n{n % 500}", "device": f"d{n}"}
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
        await self.claims.patch(f"c{n}", {"status": status}, NS, subresource="status")

    async def finish(self, n: int) -> float:
        """Seconds from a pod's end to the release of its claim."""
        began = time.perf_counter()
        await self.pods.patch(f"p{n}", {"status": {"phase": "Succeeded"}}, NS, subresource="status")
        await _until(lambda: self._is_free(f"c{n}"))
        return time.perf_counter() - began

    async def _is_free(self, name: str) -> bool:
        claim = await self.claims.get(name, NS)
        status = claim.fields.get("status") or {}
        return not status.get("allocation") and not claim.metadata.finalizers

    async def burst(self) -> dict[str, float]:
        """New pods that want a claim each."""
        before, began = self.requests, time.perf_counter()
        await asyncio.gather(
            *(self.pods.create(_pod(f"b{n}", {"resourceClaimTemplateName": "t"})) for n in range(BURST))
        )
        for n in range(BURST):
            await _until(lambda n=n: self._is_recorded(n))  # type: ignore[misc]
        seconds = time.perf_counter() - began
        return {
            "pods": BURST,
            "claims_per_second": round(BURST / seconds, 1),
            "requests_per_pod": round((self.requests - before) / BURST, 2),
        }

    async def _is_recorded(self, n: int) -> bool:
        pod = await self.pods.get(f"b{n}", NS)
        return bool((pod.fields.get("status") or {}).get("resourceClaimStatuses"))


async def _until(question: Callable[[], Awaitable[bool]]) -> None:
    while not await question():  # noqa: ASYNC110 -- asked through the API, as anybody would
        await asyncio.sleep(0.0005)


def _pod(name: str, source: dict[str, str], **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example/app:1"}]
    body = {"containers": containers, "resourceClaims": [{"name": "gpu", **source}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NS}, "spec": body}


def _spec() -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


def _claim(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NS, "finalizers": ["resource.kubernetes.io/delete-protection"]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": _spec(),
    }


async def measure(pods: int, changes: int) -> dict[str, Any]:
    async with api_server() as server:
        bench = Bench(server)
        await bench.templates.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "t", "namespace": NS},
                "spec": {"spec": _spec()},
            }
        )
        await bench.fill(pods)
        ready, began = asyncio.Event(), time.perf_counter()
        running = asyncio.create_task(bench.control(ready.set))
        await ready.wait()
        start_s = time.perf_counter() - began
        await asyncio.sleep(1.0)
        before = bench.requests
        await asyncio.sleep(IDLE_S)
        idle = bench.requests - before
        burst = await bench.burst()
        before = bench.requests
        times = [await bench.finish(n) for n in range(changes)]
        asked = bench.requests - before
        running.cancel()
        await asyncio.wait((running,))
        return {
            "pods": pods,
            "caches_filled_s": round(start_s, 3),
            "requests_while_idle": idle,
            "release_ms_median": round(1000 * statistics.median(times), 3),
            "requests_per_release": round(asked / changes, 2),
            "burst": burst,
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", type=int, default=50)
    parser.add_argument("--large", type=int, default=5000)
    parser.add_argument("--changes", type=int, default=40)
    options = parser.parse_args()
    small, large = (uvloop.run(measure(pods, options.changes)) for pods in (options.small, options.large))
    ratio = round(large["release_ms_median"] / small["release_ms_median"], 2)
    print(json.dumps({"small": small, "large": large, "release_ratio": ratio}))


if __name__ == "__main__":
    main()
