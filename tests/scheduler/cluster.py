"""A control plane at work in the test's own process: API server, claim controller, scheduler.

Pods are bound and stay so: there are no nodes behind the node objects. Every part acts
with its own identity and no other rights.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from allot.api import Gates, Object, Transport, errors
from allot.apiserver import Options, identities
from allot.base import Metrics, RandomIds, SystemClock
from allot.client import Client, InProcessTransport, Resource
from allot.controllers import ALL, Controller, Process
from allot.controllers import run as run_controllers
from allot.informers import Informers, Pace, Telemetry
from allot.scheduler import Dependencies, Scheduler, Settings
from allot.testing import TestServer, api_server

NS = "default"
DRIVER = "gpu.example.com"
GROUP = "resource.k8s.io"
QUICK = Pace(first_s=0.02, longest_s=0.1, absent_s=60, watch_s=60)
SOON_S = 10.0
CLAIM_CONTROLLERS = tuple(
    one for one in ALL if one.name in ("resourceclaim-controller", "garbage-collector-controller")
)

Fields = dict[str, Any]


@dataclass
class Cluster:
    server: TestServer
    client: Client  # the administrator
    gates: Gates
    controllers: Sequence[Controller] = CLAIM_CONTROLLERS
    settings: Settings = field(default_factory=Settings)
    metrics: Metrics = field(default_factory=Metrics)
    scheduler: Scheduler | None = None
    leading: Callable[[], None] = lambda: None
    aside: Callable[[Callable[[], None]], Awaitable[None]] = asyncio.to_thread
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    # -- running --------------------------------------------------------------------------------

    async def start_controllers(self, controllers: Sequence[Controller] = ()) -> None:
        """Those of the cluster, or others besides them."""
        ready = asyncio.Event()
        self._begin(self._run_controllers(controllers or self.controllers, ready))
        await ready.wait()

    async def start_scheduler(
        self, settings: Settings | None = None, transport: Transport | None = None
    ) -> asyncio.Task[None]:
        """Several may run; each is ended by `stop`, or by cancelling what is returned."""
        client = Client(transport) if transport else self.server.client(identities.SCHEDULER)
        return self._begin(self._run_scheduler(settings or self.settings, client))

    async def stop(self) -> None:
        """As abruptly as a crash."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        failed = [one.exception() for one in self._tasks if not one.cancelled() and one.exception()]
        self._tasks.clear()
        if failed:
            raise ExceptionGroup("a component ended by itself", failed)  # type: ignore[type-var]

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.append(task)
        return task

    async def _run_controllers(self, controllers: Sequence[Controller], ready: asyncio.Event) -> None:
        rng = random.Random(7)
        reader = Client(InProcessTransport(self.server.api.handle, identities.CONTROLLER_MANAGER))
        async with Informers(reader, rng, pace=QUICK) as informers:
            process = Process.of(
                informers,
                lambda one: self.server.client(identities.controller(one.account)),
                SystemClock(),
                rng,
                RandomIds(rng),
                self.metrics,
                self.gates,
            )
            await run_controllers(process, controllers, leading=ready.set)

    async def _run_scheduler(self, settings: Settings, client: Client) -> None:
        rng, clock = random.Random(8), SystemClock()
        async with Informers(client, rng, pace=QUICK) as informers:
            dependencies = Dependencies(
                client,
                informers,
                clock,
                RandomIds(rng),
                self.metrics,
                Telemetry(Metrics(), clock),
                self.gates,
                self.aside,
            )
            self.scheduler = Scheduler(dependencies, settings)
            await self.scheduler.run(self.leading)

    # -- making ---------------------------------------------------------------------------------

    def resource(self, plural: str) -> Resource:
        group, version = _WHERE.get(plural, ("", "v1"))
        return self.client.resource(group, version, plural, namespaced=plural not in _CLUSTER_WIDE)

    async def create(self, plural: str, fields: Fields) -> Object:
        return await self.resource(plural).create(fields, "" if plural in _CLUSTER_WIDE else NS)

    async def node(
        self, name: str, *, labels: Mapping[str, str] = {}, taints: Sequence[Fields] = (), **amounts: str
    ) -> None:
        """`amounts` override what every node has: cpu, memory, pods, or e.g. **{"example.com/gpu": "2"}."""
        have = {"cpu": "8", "memory": "32Gi", "pods": "110", **amounts}
        made = await self.create(
            "nodes",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
                **({"spec": {"taints": list(taints)}} if taints else {}),
            },
        )
        ready = [{"type": "Ready", "status": "True"}]
        status = {"capacity": have, "allocatable": have, "conditions": ready}
        await self.resource("nodes").update_status(made.changed({"status": status}))

    async def devices(
        self,
        node: str,
        count: int = 2,
        *,
        driver: str = DRIVER,
        attributes: Fields | None = None,
        **spec: Any,
    ) -> None:
        """A slice with so many devices on a node: gpu-0, gpu-1, ..."""
        published = [
            {"name": f"gpu-{at}", **({"attributes": attributes} if attributes else {})} for at in range(count)
        ]
        await self.create("resourceslices", slice_of(node, published, driver=driver, **spec))

    async def device_class(self, name: str = "gpu", *, driver: str = DRIVER, **spec: Any) -> None:
        selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
        fields = {"metadata": {"name": name}, "spec": {"selectors": [selector], **spec}}
        await self.create("deviceclasses", {"apiVersion": f"{GROUP}/v1", "kind": "DeviceClass", **fields})

    async def template(
        self, name: str = "one", *, count: int = 1, device_class: str = "gpu", **exactly: Any
    ) -> None:
        await self.create(
            "resourceclaimtemplates",
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": name, "namespace": NS},
                "spec": {"spec": claim_spec(count, device_class, **exactly)},
            },
        )

    async def claim(self, name: str, *, count: int = 1, device_class: str = "gpu", **exactly: Any) -> Object:
        return await self.create(
            "resourceclaims",
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": NS},
                "spec": claim_spec(count, device_class, **exactly),
            },
        )

    async def pod(self, name: str, **parts: Any) -> Object:
        return await self.create("pods", pod(name, **parts))

    async def come_back(self, name: str) -> None:
        """A pod has ended, as somebody says, and has not, as they say then; the scheduler hears of both."""
        scheduler, pods = self.scheduler, self.resource("pods")
        assert scheduler is not None
        uid = (await pods.get(name, NS)).uid
        for phase, is_known in (("Failed", False), ("Pending", True)):
            await pods.patch(name, {"status": {"phase": phase}}, NS, subresource="status")

            async def is_heard(is_known: bool = is_known) -> bool:
                return (scheduler.queue.get(uid) is not None) is is_known

            await self.until(is_heard, f"the scheduler has heard that {name} is {phase}")

    # -- looking --------------------------------------------------------------------------------

    async def get(self, plural: str, name: str) -> Object | None:
        try:
            return await self.resource(plural).get(name, "" if plural in _CLUSTER_WIDE else NS)
        except errors.NotFound:
            return None

    async def all(self, plural: str) -> Sequence[Object]:
        return (await self.resource(plural).list()).objects

    async def node_of(self, name: str) -> str:
        found = await self.get("pods", name)
        return found.fields["spec"].get("nodeName", "") if found is not None else ""

    async def bound(self, *names: str) -> list[str]:
        """The nodes of these pods, once they all have one."""

        async def nodes() -> list[str] | None:
            found = [await self.node_of(name) for name in names]
            return found if all(found) else None

        return await self.until(nodes, f"{', '.join(names)} bound")

    async def condition(self, name: str) -> Fields:
        """The pod's PodScheduled condition, once it says that it cannot be placed."""

        async def reported() -> Fields | None:
            found = await self.get("pods", name)
            conditions = (
                (found.fields.get("status") or {}).get("conditions") or () if found is not None else ()
            )
            return next(
                (c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), None
            )

        return await self.until(reported, f"{name} told why it waits")

    async def held(self) -> dict[str, list[str]]:
        """Which claim holds which devices."""
        held = {}
        for claim in await self.all("resourceclaims"):
            allocation = (claim.fields.get("status") or {}).get("allocation")
            if allocation:
                held[claim.name] = [
                    f"{one['pool']}/{one['device']}" for one in allocation["devices"]["results"]
                ]
        return held

    async def until(self, question: Callable[[], Awaitable[Any]], what: str = "it") -> Any:
        loop = asyncio.get_running_loop()
        end = loop.time() + SOON_S
        while not (answer := await question()):
            for task in self._tasks:
                if task.done() and not task.cancelled():
                    task.result()
            assert loop.time() < end, f"{what}: did not become so"
            await asyncio.sleep(0.01)
        return answer

    async def quiet(self) -> None:
        await asyncio.sleep(0.3)


_WHERE = {
    "resourceclaims": (GROUP, "v1"),
    "resourceclaimtemplates": (GROUP, "v1"),
    "resourceslices": (GROUP, "v1"),
    "deviceclasses": (GROUP, "v1"),
    "devicetaintrules": (GROUP, "v1"),
    "priorityclasses": ("scheduling.k8s.io", "v1"),
    "poddisruptionbudgets": ("policy", "v1"),
    "deployments": ("apps", "v1"),
}
_CLUSTER_WIDE = (
    "nodes",
    "resourceslices",
    "deviceclasses",
    "devicetaintrules",
    "priorityclasses",
    "namespaces",
)


def slice_of(node: str, devices: Sequence[Fields], *, driver: str = DRIVER, **spec: Any) -> Fields:
    """`spec` replaces where the devices are (nodeName) and everything else."""
    where = {} if spec.keys() & {"nodeSelector", "allNodes", "perDeviceNodeSelection"} else {"nodeName": node}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": list(devices),
            **where,
            **spec,
        },
    }


def claim_spec(count: int = 1, device_class: str = "gpu", **exactly: Any) -> Fields:
    wanted = {"deviceClassName": device_class, **({"count": count} if count != 1 else {}), **exactly}
    return {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}}


def pod(
    name: str,
    *,
    claim: str = "",
    template: str = "",
    requests: Mapping[str, str] = {},
    priority: int | None = None,
    labels: Mapping[str, str] = {},
    **spec: Any,
) -> Fields:
    """A pod with one container, that may use a claim or ask for resources."""
    resources: Fields = {}
    if requests:
        extended = {key: value for key, value in requests.items() if "/" in key}
        resources = {"requests": dict(requests), **({"limits": extended} if extended else {})}
    claims = []
    if claim:
        claims.append({"name": "gpu", "resourceClaimName": claim})
    if template:
        claims.append({"name": "gpu", "resourceClaimTemplateName": template})
    if claims:
        resources["claims"] = [{"name": "gpu"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NS, **({"labels": dict(labels)} if labels else {})},
        "spec": {
            "containers": [{"name": "main", "image": "busybox", "resources": resources}],
            **({"resourceClaims": claims} if claims else {}),
            **({"priority": priority} if priority is not None else {}),
            **spec,
        },
    }


@asynccontextmanager
async def cluster(
    gates: Gates | None = None, settings: Settings | None = None, *, transactions: bool = True
) -> AsyncIterator[Cluster]:
    wanted = gates or Gates()
    async with api_server(options=Options(gates=wanted, transactions=transactions)) as server:
        here = Cluster(server, server.client(), wanted, settings=settings or Settings())
        try:
            yield here
        finally:
            await here.stop()


def tell(
    story: Callable[[Cluster], Awaitable[None]],
    *,
    gates: Gates | None = None,
    settings: Settings | None = None,
    started: bool = True,
    transactions: bool = True,
) -> None:
    """Tell a story against a cluster with claim controller and scheduler running."""

    async def whole() -> None:
        async with cluster(gates, settings, transactions=transactions) as here:
            if started:
                await here.start_controllers()
                await here.start_scheduler()
            await asyncio.wait_for(story(here), 60)

    asyncio.run(whole())
