"""`allot controllers` as processes: killed, replaced, and cut off from the server.

Over HTTPS, on the SQLite store, with the rights of the controller manager and no more.
"""

import asyncio
import signal
from pathlib import Path
from typing import Any

from allot.api import errors
from allot.client import Client, HttpsTransport, kubeconfig
from e2e.process import Controllers, ServerProcess

NS = "default"
PODS = 24
FINALIZER = "resource.kubernetes.io/delete-protection"


class Cluster:
    def __init__(self, client: Client) -> None:
        self.pods = client.resource("", "v1", "pods")
        self.claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.templates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
        self.leases = client.resource("coordination.k8s.io", "v1", "leases")

    async def leader(self) -> str:
        try:
            lease = await self.leases.get("kube-controller-manager", "kube-system")
        except errors.ApiError:
            return ""
        return lease.fields["spec"].get("holderIdentity") or ""

    async def create_pods(self, prefix: str) -> None:
        for n in range(PODS):
            await self.pods.create(pod(f"{prefix}{n}"))

    async def settle(self, prefix: str) -> None:
        """Every pod's claim is there; allocate it for the pod, as a scheduler would."""
        for n in range(PODS):
            name = await until(lambda n=n: self._recorded(f"{prefix}{n}"))
            running = await self.pods.get(f"{prefix}{n}", NS)
            await self.claims.patch(name, {"metadata": {"finalizers": [FINALIZER]}}, NS)
            result = {"request": "r", "driver": "gpu.example.com", "pool": "pool", "device": f"{prefix}{n}"}
            consumer = {"resource": "pods", "name": running.name, "uid": running.uid}
            status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]}
            await self.claims.patch(name, {"status": status}, NS, subresource="status")

    async def _recorded(self, pod: str) -> str | None:
        found = await self.pods.get(pod, NS)
        for one in found.fields["status"].get("resourceClaimStatuses") or ():
            return str(one["resourceClaimName"])
        return None

    async def finish(self, prefix: str) -> None:
        for n in range(PODS):
            await self.pods.patch(
                f"{prefix}{n}", {"status": {"phase": "Succeeded"}}, NS, subresource="status"
            )

    async def claims_left(self) -> int:
        return len((await self.claims.list(NS)).objects)

    async def no_claims(self) -> bool:
        return await self.claims_left() == 0


def pod(name: str) -> dict[str, Any]:
    spec = {
        "containers": [{"name": "main", "image": "example/app:1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NS}, "spec": spec}


def template() -> dict[str, Any]:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": NS},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


async def until(question, within_s: float = 40.0) -> Any:
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not (answer := await question()):
        assert loop.time() < end, "it did not become so"
        await asyncio.sleep(0.05)
    return answer


def tell(tmp_path: Path, story) -> None:
    server = ServerProcess(tmp_path / "data")
    copies = [Controllers(server, "first"), Controllers(server, "second")]
    try:
        for copy in copies:
            copy.await_ready()

        async def whole() -> None:
            client = Client(HttpsTransport(kubeconfig.load(server.kubeconfig)))
            try:
                await asyncio.wait_for(story(server, Cluster(client), copies), 100)
            finally:
                await client.close()

        asyncio.run(whole())
    finally:
        for copy in copies:
            if copy.process.returncode is None:
                copy.end(signal.SIGKILL)
        server.kill()


def test_a_second_copy_takes_over_what_a_killed_one_left_half_done(tmp_path):
    """kill -9 of the leader while it makes claims, and of the next while it gives them back."""

    async def story(server: ServerProcess, cluster: Cluster, copies: list[Controllers]) -> None:
        await cluster.templates.create(template())
        leader = await until(cluster.leader)
        creating = asyncio.ensure_future(cluster.create_pods("a"))
        await until(lambda: seen(cluster, 3))
        by_name = {copy.name: copy for copy in copies}
        by_name[leader].end(signal.SIGKILL)
        await creating
        await cluster.settle("a")
        assert await cluster.claims_left() == PODS  # none was made twice
        (left,) = [copy for copy in copies if copy.name != leader]
        await until(lambda: leads(cluster, left.name))  # the first may have done all of it before it died

        third = Controllers(server, "third")
        copies.append(third)
        third.await_ready()
        finishing = asyncio.ensure_future(cluster.finish("a"))
        await until(lambda: fewer(cluster, PODS - 2))
        left.end(signal.SIGKILL)
        await finishing
        await until(cluster.no_claims)
        await until(lambda: leads(cluster, "third"))

    tell(tmp_path, story)


def test_a_copy_that_is_asked_to_stop_hands_over_at_once(tmp_path):
    async def story(server: ServerProcess, cluster: Cluster, copies: list[Controllers]) -> None:
        leader = await until(cluster.leader)
        (stopped,) = [copy for copy in copies if copy.name == leader]
        assert stopped.end(signal.SIGTERM) == 0
        began = asyncio.get_running_loop().time()

        async def another() -> bool:
            return await cluster.leader() not in ("", leader)

        await until(another)
        assert asyncio.get_running_loop().time() - began < 2.5  # less than the lease lasts

    tell(tmp_path, story)


def test_the_server_dies_and_comes_back_and_the_work_goes_on(tmp_path):
    """kill -9 of the server in the middle: watches break off, writes have unknown outcomes."""

    async def story(server: ServerProcess, cluster: Cluster, copies: list[Controllers]) -> None:
        await cluster.templates.create(template())
        await cluster.create_pods("a")
        await until(lambda: seen(cluster, 2))
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(server.start)
        await cluster.settle("a")
        await cluster.finish("a")
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await until(cluster.no_claims)
        assert all(copy.process.poll() is None for copy in copies)

    tell(tmp_path, story)


async def seen(cluster: Cluster, count: int) -> bool:
    return await cluster.claims_left() >= count


async def leads(cluster: Cluster, name: str) -> bool:
    return await cluster.leader() == name


async def fewer(cluster: Cluster, count: int) -> bool:
    return await cluster.claims_left() <= count
