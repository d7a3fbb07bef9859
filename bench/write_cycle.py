"""What the writes of a pod with a generated claim cost the control plane, verb by verb.

    bench/write_cycle.py [--pods N] [--nodes M] [--in-flight K] [--transport inprocess|socket|https]
                         [--profile ROWS]

No scheduler and no controller: their writes are played, in their order, with their identities and
over their clients, while informers for pods and claims listen as theirs would. The store is SQLite,
every write is authorized, validated and durable, and passes the device guard.

    burst    create pod, create claim, record it in the pod (apply), protect the claim (finalizer),
             allocate and reserve it (status), bind the pod                                 6 writes
    steady   and then: delete the pod, deallocate the claim, unprotect it, delete it       10 writes

First verb by verb, K at a time, for the processor time of each, informers included; then whole
cycles, K in flight, for the rate. Prints one JSON object. With socket and https the server is a process
of its own, and both sides are told apart. Timings on a shared machine are noise: read CPU time.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import pstats
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from allot.api import Object, User, core, resource
from allot.apiserver import ApiServer, identities, security
from allot.base import SystemClock
from allot.client import Client, HttpsTransport, InProcessTransport, Socket, kubeconfig
from allot.informers import Change, Deleted, Informers, ResourceId
from allot.store import open_store
from apiserver import Server

NS = "default"
DRIVER = "test-driver.cdi.k8s.io"
DEVICES_PER_NODE = 10
FINALIZER = "resource.kubernetes.io/delete-protection"
CONTROLLER = identities.controller("resource-claim-controller")
PODS = ResourceId("", "v1", "pods")
CLAIMS = ResourceId("resource.k8s.io", "v1", "resourceclaims")

ClientOf = Callable[[User], Client]
CpuOf = Callable[[], float]
Verbs = dict[str, Callable[["Case"], Awaitable[None]]]


# -- the objects ------------------------------------------------------------------------------------


def node(number: int) -> dict[str, Any]:
    capacity = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    status = {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": {"kubernetes.io/hostname": f"node-{number}"}},
        "status": status,
    }


def resource_slice(number: int) -> dict[str, Any]:
    devices = [device(number, place) for place in range(DEVICES_PER_NODE)]
    pool = {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": f"node-{number}", "pool": pool, "devices": devices}
    metadata = {"name": f"slice-{number}"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": spec,
    }


def device(number: int, place: int) -> dict[str, Any]:
    texts = {f"text{i}": {"string": f"value-{i}-{place}"} for i in range(7)}
    numbers = {f"number{i}": {"int": number + i} for i in range(3)}
    flags = {f"flag{i}": {"bool": bool(i)} for i in range(2)}
    attributes = {**texts, **numbers, **flags, "driverVersion": {"version": "1.2.3"}}
    capacity = {"memory": {"value": "16Gi"}, "millicores": {"value": "1k"}}
    return {"name": f"device-{place}", "attributes": attributes, "capacity": capacity}


DEVICE_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "test-class"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}
CLAIM_SPEC = {"devices": {"requests": [{"name": "req-0", "exactly": {"deviceClassName": "test-class"}}]}}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "test-claim-template", "namespace": NS},
    "spec": {"spec": CLAIM_SPEC},
}


def pod(name: str) -> dict[str, Any]:
    container = {"name": "pause", "image": "example/pause:3", "resources": {"claims": [{"name": "resource"}]}}
    claims = [{"name": "resource", "resourceClaimTemplateName": "test-claim-template"}]
    spec = {"containers": [container], "resourceClaims": claims}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NS}, "spec": spec}


def claim_for(owner: Object) -> dict[str, Any]:
    metadata = {
        "generateName": f"{owner.name}-resource-",
        "namespace": NS,
        "annotations": {"resource.kubernetes.io/pod-claim-name": "resource"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": owner.uid, "controller": True}
        ],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": CLAIM_SPEC,
    }


# -- the cycle --------------------------------------------------------------------------------------


NOTHING = Object(b"{}")


@dataclass(slots=True)
class Case:
    """One pod, its claim, and the device that it gets."""

    name: str
    node: str
    device: str
    pod: Object = NOTHING
    claim: Object = NOTHING


class Play:
    """The writes of one cycle, each by whoever makes it in a cluster."""

    def __init__(self, client_of: ClientOf) -> None:
        user, controller = client_of(identities.ADMIN), client_of(CONTROLLER)
        scheduler = client_of(identities.SCHEDULER)
        self._user_pods = user.resource("", "v1", "pods")
        self._controller_pods = controller.resource("", "v1", "pods")
        self._controller_claims = controller.of(resource.RESOURCE_CLAIM)
        self._scheduler_pods = scheduler.resource("", "v1", "pods")
        self._scheduler_claims = scheduler.of(resource.RESOURCE_CLAIM)
        self.burst: Verbs = {
            "create pod": self._create_pod,
            "create claim": self._create_claim,
            "apply pod status": self._record,
            "update claim (finalizer)": self._protect,
            "update claim status (allocate)": self._allocate,
            "bind pod": self._bind,
        }
        self.steady: Verbs = {
            **self.burst,
            "delete pod": self._delete_pod,
            "patch claim status (deallocate)": self._deallocate,
            "patch claim (finalizer)": self._unprotect,
            "delete claim": self._delete_claim,
        }

    async def _create_pod(self, case: Case) -> None:
        case.pod = await self._user_pods.create(pod(case.name))

    async def _create_claim(self, case: Case) -> None:
        case.claim = await self._controller_claims.create(claim_for(case.pod))

    async def _record(self, case: Case) -> None:
        status = {"resourceClaimStatuses": [{"name": "resource", "resourceClaimName": case.claim.name}]}
        metadata = {"name": case.name, "namespace": NS, "uid": case.pod.uid}
        wanted = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}
        await self._controller_pods.apply(
            wanted, field_manager="ResourceClaimController", force=True, subresource="status"
        )

    async def _protect(self, case: Case) -> None:
        wanted = case.claim.changed({"metadata": {"finalizers": [FINALIZER]}})
        case.claim = await self._scheduler_claims.update(wanted)

    async def _allocate(self, case: Case) -> None:
        result = {"request": "req-0", "driver": DRIVER, "pool": case.node, "device": case.device}
        fields = [{"key": "metadata.name", "operator": "In", "values": [case.node]}]
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
            "allocationTimestamp": "2026-01-01T00:00:00Z",
        }
        consumer = {"resource": "pods", "name": case.name, "uid": case.pod.uid}
        status = {"allocation": allocation, "reservedFor": [consumer]}
        case.claim = await self._scheduler_claims.update_status(case.claim.changed({"status": status}))

    async def _bind(self, case: Case) -> None:
        await self._scheduler_pods.bind(case.name, NS, case.node, uid=case.pod.uid)

    async def _delete_pod(self, case: Case) -> None:
        await self._user_pods.delete(case.name, NS, grace_period_s=0)

    async def _deallocate(self, case: Case) -> None:
        status = {"allocation": None, "reservedFor": None}
        patch = {"metadata": _this(case.claim), "status": status}
        case.claim = await self._controller_claims.patch(case.claim.name, patch, NS, subresource="status")

    async def _unprotect(self, case: Case) -> None:
        patch = {"metadata": {**_this(case.claim), "finalizers": None}}
        case.claim = await self._controller_claims.patch(case.claim.name, patch, NS)

    async def _delete_claim(self, case: Case) -> None:
        await self._controller_claims.delete(case.claim.name, NS, uid=case.claim.uid)


def _this(claim: Object) -> dict[str, str]:
    return {"uid": claim.uid, "resourceVersion": claim.resource_version}


def cases(prefix: str, count: int, nodes: int) -> list[Case]:
    """Devices are given out node by node, as a scheduler that spreads would."""
    return [
        Case(f"{prefix}-{number}", f"node-{number % nodes}", f"device-{number // nodes % DEVICES_PER_NODE}")
        for number in range(count)
    ]


# -- those who listen -------------------------------------------------------------------------------


@asynccontextmanager
async def listening(client_of: ClientOf) -> AsyncIterator[list[int]]:
    """The informers of the controllers and of a scheduler, which reads every object. Counts changes."""
    heard = [0]

    def note(change: Change) -> None:
        heard[0] += 1

    def read(view: type[Any]) -> Callable[[Change], None]:
        def look(change: Change) -> None:
            heard[0] += 1
            if not isinstance(change, Deleted):
                change.object.view(view)

        return look

    async with AsyncExitStack() as stack:
        for user in (identities.CONTROLLER_MANAGER, identities.SCHEDULER):
            informers = await stack.enter_async_context(Informers(client_of(user), random.Random(1)))
            pods, claims = informers.use(PODS), informers.use(CLAIMS)
            reads = user is identities.SCHEDULER
            pods.handle(read(core.Pod) if reads else note)
            claims.handle(read(resource.ResourceClaim) if reads else note)
            await informers.synced()
        yield heard


async def settle(heard: list[int], expected: int) -> None:
    async with asyncio.timeout(30):
        while heard[0] < expected:  # noqa: ASYNC110 -- what is awaited is a count
            await asyncio.sleep(0.001)


# -- measuring --------------------------------------------------------------------------------------


async def many(work: Callable[[Case], Awaitable[None]], on: Iterable[Case], in_flight: int) -> None:
    left = iter(on)

    async def worker() -> None:
        for case in left:
            await work(case)

    await asyncio.gather(*(worker() for _ in range(in_flight)))


class Meter:
    """Processor time of this process and, where that is another one, of the server's."""

    def __init__(self, server_cpu: CpuOf | None) -> None:
        self._server_cpu = server_cpu
        self._here, self._there, self._wall = self._now()

    def _now(self) -> tuple[float, float, float]:
        there = self._server_cpu() if self._server_cpu else 0.0
        return time.process_time(), there, time.perf_counter()

    def lap(self, count: int) -> dict[str, float]:
        """Microseconds for each of `count` since the last lap."""
        here, there, wall = self._now()
        spent = {"cpu_us": round((here - self._here) * 1e6 / count, 1)}
        if self._server_cpu:
            spent["server_cpu_us"] = round((there - self._there) * 1e6 / count, 1)
        spent["per_second"] = round(count / (wall - self._wall), 1)
        self._here, self._there, self._wall = here, there, wall
        return spent


async def by_verb(play: Play, options: argparse.Namespace, heard: list[int], meter: Meter) -> dict[str, Any]:
    found: dict[str, Any] = {}
    on = cases("verb", min(options.pods, options.nodes * DEVICES_PER_NODE), options.nodes)
    for verb, work in play.steady.items():
        before = heard[0]
        meter.lap(1)
        await many(work, on, options.in_flight)
        await settle(heard, before + 2 * len(on))  # each informer of the kind hears of each write
        found[verb] = meter.lap(len(on))
    return found


async def whole(verbs: Verbs, prefix: str, options: argparse.Namespace, meter: Meter) -> dict[str, float]:
    async def cycle(case: Case) -> None:
        for work in verbs.values():
            await work(case)

    on = cases(prefix, min(options.pods, options.nodes * DEVICES_PER_NODE), options.nodes)
    meter.lap(1)
    await many(cycle, on, options.in_flight)
    spent = meter.lap(len(on))
    rate = spent.pop("per_second")
    per_write = {f"{name}_per_write": round(us / len(verbs), 1) for name, us in spent.items()}
    return {"cycles_per_second": rate, "writes_per_second": round(rate * len(verbs), 1), **per_write}


async def measure(
    client_of: ClientOf, options: argparse.Namespace, server_cpu: CpuOf | None = None
) -> dict[str, Any]:
    admin, play = client_of(identities.ADMIN), Play(client_of)
    await admin.of(resource.DEVICE_CLASS).create(DEVICE_CLASS)
    await admin.of(resource.RESOURCE_CLAIM_TEMPLATE).create(TEMPLATE)
    for number in range(options.nodes):
        await admin.resource("", "v1", "nodes", namespaced=False).create(node(number))
        await admin.of(resource.RESOURCE_SLICE).create(resource_slice(number))
    async with listening(client_of) as heard:
        await many(_warmed(play), cases("warm", 100, options.nodes), options.in_flight)
        gc.collect()
        gc.freeze()
        meter = Meter(server_cpu)
        with profiled(options.profile):
            verbs = await by_verb(play, options, heard, meter)
        steady = await whole(play.steady, "steady", options, meter)
        burst = await whole(play.burst, "burst", options, meter)
    return {"verbs": verbs, "burst": burst, "steady": steady, "cycle_us": _sums(verbs, play)}


def _warmed(play: Play) -> Callable[[Case], Awaitable[None]]:
    async def cycle(case: Case) -> None:
        for work in play.steady.values():
            await work(case)

    return cycle


def _sums(verbs: dict[str, dict[str, float]], play: Play) -> dict[str, float]:
    return {
        f"{form} {name}": round(sum(verbs[verb][name] for verb in of), 1)
        for form, of in (("burst", play.burst), ("steady", play.steady))
        for name in next(iter(verbs.values()))
        if name.endswith("_us")
    }


@contextmanager
def profiled(rows: int) -> Iterator[None]:
    """The dearest functions by their own time, on standard error."""
    if not rows:
        yield
        return
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        yield
    finally:
        profiler.disable()
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(rows)


# -- the ways to the server -------------------------------------------------------------------------


async def in_process(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store("sqlite", Path(folder))
        api = ApiServer(store)
        await api.start()
        transports: list[InProcessTransport] = []

        def client_of(user: User) -> Client:
            transports.append(InProcessTransport(api.handle, user))
            return Client(transports[-1])

        try:
            return await measure(client_of, options)
        finally:
            for transport in transports:
                await transport.close()
            await api.close()
            await store.close()


async def in_another_process(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), "sqlite")
        clients: list[Client] = []
        shared = Socket(server.data_dir / "api.sock")

        def named(user: User) -> Client:
            clients.append(Client(shared.transport(user)))
            return clients[-1]

        def certified(user: User) -> Client:
            return _client(server, user, clients)

        try:
            client_of = named if options.transport == "socket" else certified
            return await measure(client_of, options, server.cpu_s)
        finally:
            for client in clients:
                await client.close()
            server.process.terminate()
            server.process.wait()


def _client(server: Server, user: User, clients: list[Client]) -> Client:
    """As `user`, by a certificate that the cluster's own keys have signed."""
    authority = security.read_authority(server.data_dir)
    assert authority is not None
    admin = kubeconfig.load(str(server.data_dir / "kubeconfig"))
    groups = identities.well_known_groups(user.name)
    pair = authority.client(user.name, groups, SystemClock().now())
    text = security.Kubeconfig(str(admin.server), authority.ca.certificate, user.name, pair).text()
    path = server.data_dir / f"bench-{len(clients)}.kubeconfig"
    path.write_text(text)
    clients.append(Client(HttpsTransport(kubeconfig.load(str(path)))))
    return clients[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--transport", choices=("inprocess", "socket", "https"), default="inprocess")
    parser.add_argument("--profile", type=int, default=0, metavar="ROWS")
    options = parser.parse_args()
    sys.setswitchinterval(0.001)  # as `allot` runs
    gc.set_threshold(50_000, 20, 100)
    run = in_process if options.transport == "inprocess" else in_another_process
    print(json.dumps(uvloop.run(run(options)), indent=1))


if __name__ == "__main__":
    main()
