"""A real API server over HTTPS, controllers, a scheduler, and agents with the credentials of their nodes."""

import asyncio
import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from allot.api import Gates, Object, errors, kinds
from allot.apiserver import Options, ServingOptions, identities, security
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Access, Client, Credential, Fixed, HttpsTransport, kubeconfig
from allot.cluster import Cluster, ClusterOptions, cluster, way_to_nodes
from allot.fleet import fleet
from allot.informers import Informers, Telemetry
from allot.nodeagent import Agent, Measured, Process, Settings, runtimes
from allot.nodeagent.registering import measured
from allot.wire import UnixSockets, cdi

from .plugins import DRIVER, Plugin, until

NS, NODE = "default", "worker"


@dataclass
class World:
    folder: Path
    cluster: Cluster
    client: Client  # the administrator
    plugins: list[Plugin] = field(default_factory=list)
    runtime: str = "process"
    image: str = "none"

    def __post_init__(self) -> None:
        self.pods = self.client.resource("", "v1", "pods")
        self.nodes = self.client.resource("", "v1", "nodes", namespaced=False)
        self.claims = self.client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.slices = self.client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
        self.prepared = self.client.of(kinds.PREPARED_CLAIMS)
        self.root, self.cdi = self.folder / "root", self.folder / "cdi"
        found = security.read_authority(self.folder / "data")
        assert found is not None
        self.authority = found

    # -- nodes and drivers ----------------------------------------------------------------------

    @asynccontextmanager
    async def agent(
        self,
        name: str = NODE,
        measure: Callable[[Path], Measured] = measured,
        root: Path | None = None,
        **more: Any,
    ) -> AsyncIterator[Agent]:
        """Runs while the block does. Its containers go on."""
        user = identities.node(name)
        pair = self.authority.client(user.name, user.groups, datetime.now(UTC))
        server = kubeconfig.load(self.cluster.server.kubeconfig).server
        credential = Credential(certificate=pair.certificate, key=pair.key)
        client = Client(HttpsTransport(Access(server, Fixed(credential))))
        clock, metrics = SystemClock(), Metrics()
        async with (
            Informers(client, random.Random(1)) as informers,
            runtimes.attached(self.runtime, self.root, (self.cdi,), UnixSockets()) as runtime,
        ):
            process = Process(
                client,
                informers,
                clock,
                RandomIds(),
                metrics,
                Telemetry(metrics, clock),
                UnixSockets(),
                runtime,
                credential,
                self.authority.ca.certificate,
                measure=measure,
            )
            agent = Agent(Settings(name, root or self.root, (self.cdi,), **more), process)
            ready = asyncio.Event()
            task = asyncio.create_task(agent.run(ready.set))
            done = asyncio.create_task(ready.wait())
            try:
                await asyncio.wait((task, done), return_when=asyncio.FIRST_COMPLETED)
                assert not task.done(), task.exception()
                yield agent
                assert not task.done(), task.exception()
            finally:
                task.cancel()
                done.cancel()
                await asyncio.wait((task,))
                await client.close()

    async def end_containers(self) -> None:
        """Whatever runs is killed, as when a machine goes down."""
        async with runtimes.attached(self.runtime, self.root, (self.cdi,), UnixSockets()) as runtime:
            for attempt in await runtime.attempts():
                if attempt.runs:
                    await runtime.signal(attempt, 9)

    async def remove_pods(self) -> None:
        """Whatever is left of them."""
        async with runtimes.attached(self.runtime, self.root, (self.cdi,), UnixSockets()) as runtime:
            for uid in {attempt.pod_uid for attempt in await runtime.attempts()}:
                await runtime.remove(uid)

    async def driver(self, **more: Any) -> Plugin:
        """Beside the agent: its devices are in a slice, and each sets GPU to the claim's name."""
        plugin = Plugin(self.root, **more)
        self.plugins.append(plugin)
        await plugin.start()
        return plugin

    async def publish(self, devices: int = 2, node: str = NODE, **more: Any) -> None:
        await self.client.resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False).create(
            {
                "metadata": {"name": "gpu"},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
            }
        )
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        listed = [{"name": f"dev-{number}"} for number in range(devices)]
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed, **more}
        await self.slices.create({"metadata": {"name": f"{node}-gpu"}, "spec": spec})

    def inject(self, name: str, **edits: Any) -> None:
        """A CDI spec for the device that the driver names after a claim."""
        self.cdi.mkdir(exist_ok=True)
        edits.setdefault("env", (f"GPU={name}",))
        device = cdi.Device(name, cdi.ContainerEdits(**edits))
        spec = cdi.with_minimum_version(cdi.Spec("", "example.com/gpu", (device,)))
        cdi.SpecDirectory(self.cdi).write(cdi.spec_file_name("example.com/gpu", name), spec)

    # -- pods -----------------------------------------------------------------------------------

    async def claim(self, name: str = "c") -> Object:
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
        return await self.claims.create(
            {"metadata": {"name": name, "namespace": NS}, "spec": {"devices": {"requests": requests}}}
        )

    async def pod(self, script: str, name: str = "p", claim: str = "", **spec: Any) -> Object:
        """One container that runs a shell script, on the agent's node."""
        container: dict[str, Any] = {"name": "main", "image": self.image, "command": ["sh", "-c", script]}
        if claim:
            container["resources"] = {"claims": [{"name": "gpu"}]}
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": NODE},
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 20,
            **spec,
        }
        return await self.pods.create({"metadata": {"name": name, "namespace": NS}, "spec": spec})

    async def status(self, name: str = "p") -> dict[str, Any]:
        return dict((await self.pods.get(name, NS)).fields.get("status") or {})

    async def state(self, name: str = "p", container: str = "main") -> dict[str, Any]:
        known = await self.status(name)
        every = [*known.get("containerStatuses", ()), *known.get("initContainerStatuses", ())]
        return next((one for one in every if one["name"] == container), {})

    async def until_phase(self, phase: str, name: str = "p") -> None:
        async def is_so() -> bool:
            return bool((await self.status(name)).get("phase") == phase)

        try:
            await until(is_so)
        except AssertionError:
            raise AssertionError(await self.status(name)) from None

    async def until_waiting(self, reason: str, name: str = "p", container: str = "main") -> str:
        said: list[str] = []

        async def is_so() -> bool:
            waiting = ((await self.state(name, container)).get("state") or {}).get("waiting") or {}
            said[:] = [waiting.get("message", "")]
            return bool(waiting.get("reason") == reason)

        try:
            await until(is_so)
        except AssertionError:
            raise AssertionError(await self.status(name)) from None
        return said[0]

    async def until_gone(self, name: str = "p") -> None:
        async def is_so() -> bool:
            try:
                await self.pods.get(name, NS)
            except errors.NotFound:
                return True
            return False

        await until(is_so)

    async def log(self, name: str = "p", **options: Any) -> str:
        answer = await self.client.send("GET", f"/api/v1/namespaces/{NS}/pods/{name}/log", options)
        if answer.stream is None:
            return answer.body.decode()
        return b"".join([piece async for piece in answer.stream]).decode()

    async def first_words(self, name: str = "p", **options: Any) -> str:
        """A container that runs may not have come to them yet."""
        said = ""

        async def is_so() -> bool:
            nonlocal said
            said = await self.log(name, **options)
            return bool(said)

        await until(is_so)
        return said

    async def listed(self) -> list[str]:
        found = [one for one in (await self.prepared.list()).objects if one.name == NODE]
        return [claim["name"] for one in found for claim in one.fields["status"].get("claims") or ()]


@asynccontextmanager
async def world(gates: Mapping[str, bool]) -> AsyncIterator[World]:
    folder = Path(tempfile.mkdtemp(prefix="ag"))  # short: sockets lie below it
    server = Options(gates=Gates(gates))
    serving = ServingOptions(folder / "data", "memory", server=server, way_to_nodes=way_to_nodes)
    try:
        async with AsyncExitStack() as stack:
            running = await stack.enter_async_context(cluster(ClusterOptions(serving, fleet("plain", 1))))
            transport = HttpsTransport(kubeconfig.load(running.server.kubeconfig))
            stack.push_async_callback(transport.close)
            here = World(folder, running, Client(transport))
            try:
                yield here
            finally:
                for plugin in here.plugins:
                    await plugin.stop()
                await here.end_containers()
                if here.runtime != "process":
                    await here.remove_pods()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tell(
    play: Callable[[World], Awaitable[None]],
    within_s: float = 120,
    gates: Mapping[str, bool] = MappingProxyType({}),
) -> None:
    async def whole() -> None:
        async with world(gates) as here:
            await play(here)

    asyncio.run(asyncio.wait_for(whole(), within_s))
