"""A Deployment whose pods have generated claims: created, rolled, scaled to zero. Is any claim left?

    bench/deployment.py [--pods N] [--nodes M]

All controllers run in this process, each with its own rights, on a server with a SQLite store:
once in the same process, once in a process of its own over HTTPS. A stand-in (`standin`) takes
the place of the scheduler and the nodes. For each stage: how long, pods and claims a second,
and how many requests the controllers made for each pod that came or went, by verb and resource.
What the stand-in asks is counted apart. Prints one JSON object; fails if a claim is left.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop
from controlling import Connect, Counts, controlling
from standin import StandIn, furnish

from allot.api import Transport
from allot.apiserver import ApiServer, identities
from allot.base import SystemClock
from allot.client import Access, Client, HttpsTransport, InProcessTransport, kubeconfig
from allot.controllers.accounts import AccountToken
from allot.store import open_store

NS = "default"
PATIENCE_S = 300.0


class Bench:
    def __init__(self, client: Client, controllers: Counts, others: Counts) -> None:
        self.deployments = client.resource("apps", "v1", "deployments")
        self.pods = client.resource("", "v1", "pods")
        self.claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.templates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
        self._controllers, self._others = controllers, others

    async def live(self, pods: int) -> dict[str, Any]:
        await self.templates.create(_template())

        async def roll() -> None:
            await self.deployments.patch("web", {"spec": {"template": _pod_template("app:2")}}, NS)

        async def end() -> None:
            await self.deployments.scale("web", NS, 0)

        async def create() -> None:
            await self.deployments.create(_deployment(pods))

        report: dict[str, Any] = {}
        report["created"] = await self._stage(create, self._is_complete(pods), pods)
        report["rolled"] = await self._stage(roll, self._is_complete(pods), pods)
        report["scaled_to_zero"] = await self._stage(end, self._is_empty, pods)
        report["pods_left"] = len((await self.pods.list(NS)).objects)
        report["claims_left"] = len((await self.claims.list(NS)).objects)
        return report

    async def _stage(self, do: Any, done: Any, pods: int) -> dict[str, Any]:
        before, theirs = self._controllers.made.copy(), self._others.made.copy()
        refused = self._controllers.refused.copy()
        began, cpu = time.perf_counter(), time.process_time()
        await do()
        async with asyncio.timeout(PATIENCE_S):
            while not await done():  # noqa: ASYNC110 -- asked through the API, as anybody would
                await asyncio.sleep(0.1)
        seconds = time.perf_counter() - began
        made = self._controllers.made - before
        refused = self._controllers.refused - refused
        return {
            "seconds": round(seconds, 2),
            "cpu_s": round(time.process_time() - cpu, 2),
            "pods_per_second": round(pods / seconds, 1),
            "claims_per_second": round(_changed(made - refused) / seconds, 1),
            "requests_per_pod": round(sum(made.values()) / pods, 2),
            "requests_per_pod_by_call": _each(made, pods),
            "refused_per_pod_by_call": _each(refused, pods),
            "stand_in_per_pod_by_call": _each(self._others.made - theirs, pods),
        }

    def _is_complete(self, pods: int) -> Callable[[], Any]:
        async def look() -> bool:
            one = await self.deployments.get("web", NS)
            status = one.fields.get("status") or {}
            is_seen = status.get("observedGeneration") == one.fields["metadata"]["generation"]
            counts = ("replicas", "updatedReplicas", "availableReplicas")
            if not is_seen or any(status.get(name) != pods for name in counts):
                return False
            # Old pods go after the new ones are there, and their claims after them.
            return len((await self.claims.list(NS)).objects) == pods

        return look

    async def _is_empty(self) -> bool:
        left = (await self.pods.list(NS, limit=1)).objects or (await self.claims.list(NS, limit=1)).objects
        return not left


def _changed(made: Counter[str]) -> int:
    """Claims that came, or went where none came. In a transaction a claim is made and recorded in its pod."""
    return max(made["create resourceclaims"], made["delete resourceclaims"]) or made["create transactions"]


def _each(made: Counter[str], pods: int) -> dict[str, float]:
    shares = {call: round(count / pods, 3) for call, count in sorted(made.items())}
    return {call: share for call, share in shares.items() if share >= 0.005}


def _template() -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return {"metadata": {"name": "gpu", "namespace": NS}, "spec": spec}


def _pod_template(image: str) -> dict[str, Any]:
    resources = {"claims": [{"name": "gpu"}], "requests": {"cpu": "100m", "memory": "64Mi"}}
    spec = {
        "containers": [{"name": "main", "image": image, "resources": resources}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    return {"metadata": {"labels": {"app": "web"}}, "spec": spec}


def _deployment(pods: int) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": pods, "selector": selector, "template": _pod_template("app:1")}
    return {"metadata": {"name": "web", "namespace": NS}, "spec": spec}


# -- two ways to a server ------------------------------------------------------------------------


@asynccontextmanager
async def in_process(folder: Path) -> AsyncIterator[tuple[Transport, Connect]]:
    store = open_store("sqlite", folder)
    api = ApiServer(store)
    await api.start()

    def connect(account: str) -> Transport:
        user = identities.controller(account) if account else identities.CONTROLLER_MANAGER
        return InProcessTransport(api.handle, user)

    admin = InProcessTransport(api.handle, identities.ADMIN)
    try:
        yield admin, connect
    finally:
        await admin.close()
        await api.close()
        await store.close()


@asynccontextmanager
async def over_https(folder: Path) -> AsyncIterator[tuple[Transport, Connect]]:
    server, manager = _started(folder)
    access = kubeconfig.load(manager)
    admin, process = HttpsTransport(kubeconfig.load(folder / "kubeconfig")), HttpsTransport(access)
    transports = [admin, process]

    def connect(account: str) -> Transport:
        token = AccountToken(account, Client(process), SystemClock())
        transports.append(HttpsTransport(Access(access.server, token) if account else access))
        return transports[-1]

    try:
        yield admin, connect
    finally:
        for transport in transports:
            await transport.close()
        server.terminate()
        server.wait(20)


def _started(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """A server that is ready, and the kubeconfig of its controllers."""
    command, where = [sys.executable, "-m", "allot.cli"], ["--data-dir", str(folder)]
    server = subprocess.Popen(
        [*command, "apiserver", *where, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    manager = folder / "manager"
    credentials = [*command, "credentials", "system:kube-controller-manager", *where]
    subprocess.run([*credentials, "--out", str(manager)], check=True, stdout=subprocess.DEVNULL)
    return server, manager


async def measure(way: Any, pods: int, nodes: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with way(Path(folder)) as (admin, connect):
            client, others = Client(admin), Counts()
            await furnish(client, nodes)
            counted = Client(others.wire(admin))
            async with controlling(connect, SystemClock()) as counts:
                standing_in = asyncio.create_task(StandIn(counted, SystemClock(), nodes).run())
                try:
                    await counts.quiet()
                    return await Bench(client, counts, others).live(pods)
                finally:
                    standing_in.cancel()
                    await asyncio.wait((standing_in,))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=100)
    options = parser.parse_args()
    report: dict[str, Any] = {"pods": options.pods, "nodes": options.nodes, "store": "sqlite"}
    for name, way in (("in_process", in_process), ("https", over_https)):
        report[name] = uvloop.run(measure(way, options.pods, options.nodes))
    print(json.dumps(report))
    return 1 if any(report[name]["claims_left"] for name in ("in_process", "https")) else 0


if __name__ == "__main__":
    sys.exit(main())
