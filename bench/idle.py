"""What an idle cluster asks, and what one change costs, with 50 pods and with 5,000.

    bench/idle.py [--small PODS] [--large PODS] [--seconds S]

The real server on a memory store and all controllers, each with its own rights, in one process
and in made-up time: a minute of an idle cluster takes as long as what happens in it. There is one
node for ten pods, and most pods belong to replica sets and have a generated claim, allocated and
reserved; a daemon set, a deployment, a job, a namespace and a quota elsewhere are there as well.

First everybody is left alone: which requests do the controllers make? Then one thing at a time
changes, again and again: how many requests follow, and how much processor time does all of it
take, the server and the stand-in for scheduler and nodes (`standin`) included? Prints one JSON
object. The large cluster must ask nothing but to renew its lease, and the same as the small one.
The small one is also left alone for an hour, in which watches end and are begun again.
"""

import argparse
import asyncio
import gc
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from controlling import Counts, controlling
from standin import FINALIZER, READY, StandIn, allocated, furnish, heartbeats, node_name

from allot.api import Object, Transport
from allot.apiserver import Options, identities
from allot.base import RandomIds
from allot.client import Client, InProcessTransport
from allot.sim.loop import VirtualClock, VirtualLoop
from allot.sim.loop import run as run_virtual
from allot.testing import TestServer, api_server

NS = "default"
PODS_PER_NODE = 10
PODS_PER_SET = 15
OTHERS = 15  # pods of the deployment and of the job
FOLLOWS_S = 6.0
"""Long enough for all that follows from a change; in made-up time."""
REPEATS = 5
ALLOWED_WHEN_IDLE = ("update leases",)
HOUR_S = 3600.0

Change = Callable[[int], Awaitable[object]]


class Cluster:
    def __init__(self, client: Client, pods: int) -> None:
        self.client = client
        self.nodes = max(1, pods // PODS_PER_NODE)
        self.sets = (pods - self.nodes - OTHERS) // PODS_PER_SET
        self.pods = client.resource("", "v1", "pods")
        self.claims = client.resource("resource.k8s.io", "v1", "resourceclaims")
        self.templates = client.resource("resource.k8s.io", "v1", "resourceclaimtemplates")
        self.node = client.resource("", "v1", "nodes", namespaced=False)
        self.leases = client.resource("coordination.k8s.io", "v1", "leases")
        self.quotas = client.resource("", "v1", "resourcequotas")
        self._rounds = 0

    # -- before the controllers run -------------------------------------------------------------

    async def fill(self) -> None:
        await furnish(self.client, self.nodes)
        await self.templates.create(_object("gpu", {"spec": _claim_spec()}))
        sets = self.client.resource("apps", "v1", "replicasets")
        for number in range(self.sets):
            name = f"set-{number}"
            spec = {"replicas": PODS_PER_SET, "selector": _selector(name), "template": _template(name)}
            owner = await sets.create(_object(name, spec))
            await asyncio.gather(*(self._pod(owner, at) for at in range(PODS_PER_SET)))
        for group, plural, body in _others():
            await self.client.resource(group, "v1", plural).create(body)

    async def _pod(self, owner: Object, at: int) -> None:
        """A pod of a replica set, running, with its claim."""
        name = f"{owner.name}-{at}"
        node = node_name((int(owner.name.split("-")[1]) * PODS_PER_SET + at) % self.nodes)
        body = _template(owner.name)
        body["metadata"] |= {"name": name, "namespace": NS, "ownerReferences": [_owner(owner)]}
        pod = await self.pods.create({**body, "spec": {**body["spec"], "nodeName": node}})
        metadata = {
            "name": f"{name}-gpu",
            "namespace": NS,
            "finalizers": [FINALIZER],
            "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
            "ownerReferences": [_owner(pod)],
        }
        claim = await self.claims.create({"metadata": metadata, "spec": _claim_spec()})
        status = allocated(claim, pod, node)
        await self.claims.patch(claim.name, {"status": status}, NS, subresource="status")
        recorded = [{"name": "gpu", "resourceClaimName": claim.name}]
        status = {**READY, "resourceClaimStatuses": recorded}
        await self.pods.patch(name, {"status": status}, NS, subresource="status")

    # -- changes, each of something that nothing has touched yet --------------------------------

    def changes(self) -> dict[str, Change]:
        return {
            "nothing": self._nothing,
            "pod_finished": self._finish,
            "pod_deleted": self._delete,
            "pod_told_otherwise": self._annotate,
            "claim_changed": self._tell_of_device,
            "node_heartbeat": self._renew,
            "node_status": self._report,
        }

    async def _finish(self, at: int) -> None:
        await self.pods.patch(f"set-0-{at}", {"status": {"phase": "Failed"}}, NS, subresource="status")

    async def _delete(self, at: int) -> None:
        await self.pods.delete(f"set-0-{REPEATS + at}", NS)

    async def _annotate(self, at: int) -> None:
        await self.pods.patch(f"set-1-{at}", {"metadata": {"annotations": {"note": "x"}}}, NS)

    async def _tell_of_device(self, at: int) -> None:
        claim = await self.claims.get(f"set-1-{at}-gpu", NS)
        result = claim.fields["status"]["allocation"]["devices"]["results"][0]
        device = {name: result[name] for name in ("driver", "pool", "device")}
        patch = {"status": {"devices": [{**device, "data": {"seen": at}}]}}
        await self.claims.patch(claim.name, patch, NS, subresource="status")

    async def _renew(self, at: int) -> None:
        patch = {"spec": {"renewTime": f"2031-01-01T00:00:00.{at:06d}Z"}}
        await self.leases.patch(node_name(at % self.nodes), patch, "kube-node-lease")

    async def _report(self, at: int) -> None:
        beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2031-01-01T00:00:{at:02d}Z"}
        await self.node.patch(
            node_name(at % self.nodes), {"status": {"conditions": [beat]}}, subresource="status"
        )

    async def renew_all(self) -> None:
        self._rounds += 1
        patch = {"spec": {"renewTime": f"2032-01-01T00:00:00.{self._rounds:06d}Z"}}
        for number in range(self.nodes):
            await self.leases.patch(node_name(number), patch, "kube-node-lease")

    async def _nothing(self, at: int) -> None:
        """The renewal of the lease, which goes on meanwhile."""

    async def delete_with_quota(self, at: int) -> None:
        await self.pods.delete(f"set-1-{REPEATS + at}", NS)


# -- measuring -----------------------------------------------------------------------------------


async def measure(pods: int, seconds: float, *, changes: bool = True) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    clock = VirtualClock(loop)
    options = Options(clock=clock, ids=RandomIds(random.Random(3)), watch_loop=False)
    async with api_server(options=options) as server:
        cluster = Cluster(server.client(), pods)
        await cluster.fill()
        async with controlling(_connecting(server), clock) as counts:
            standing_in = asyncio.create_task(StandIn(server.client(), clock, cluster.nodes).run())
            beating = asyncio.create_task(heartbeats(server.client(), cluster.nodes))
            await counts.quiet(FOLLOWS_S)
            report: dict[str, Any] = {
                "pods": len((await cluster.pods.list(NS)).objects),
                "nodes": cluster.nodes,
                "idle": await _idle(counts, seconds),
            }
            await _end(beating)
            if changes:
                await _change_everything(cluster, counts, report)
            await _end(standing_in)
        return report


def _connecting(server: TestServer) -> Callable[[str], Transport]:
    def connect(account: str) -> Transport:
        user = identities.controller(account) if account else identities.CONTROLLER_MANAGER
        return InProcessTransport(server.api.handle, user)

    return connect


async def _idle(counts: Counts, seconds: float) -> dict[str, Any]:
    before, cpu = counts.made.copy(), time.process_time()
    await asyncio.sleep(seconds)
    made = counts.made - before
    watches = sum(n for call, n in made.items() if call.startswith("watch "))
    others = {call: n for call, n in sorted(made.items()) if not call.startswith("watch ")}
    return {
        "seconds": seconds,
        "watches_begun_again": watches,
        "requests": others,
        "unexpected_requests": sum(n for call, n in others.items() if call not in ALLOWED_WHEN_IDLE),
        "cpu_ms_per_second": round(1000 * (time.process_time() - cpu) / seconds, 3),
    }


async def _change_everything(cluster: Cluster, counts: Counts, report: dict[str, Any]) -> None:
    _leave_garbage_alone()
    report["changes"] = {
        name: await _repeated(cluster, counts, change) for name, change in cluster.changes().items()
    }
    await cluster.quotas.create(_object("all", {"hard": {"pods": "100k", "count/pods": "100k"}}))
    await asyncio.sleep(FOLLOWS_S)
    report["changes"]["pod_deleted_with_quota"] = await _repeated(cluster, counts, cluster.delete_with_quota)


async def _repeated(cluster: Cluster, counts: Counts, change: Change) -> dict[str, Any]:
    """The median of a few. Nodes are heard of before, and not while it is measured."""
    await cluster.renew_all()
    await asyncio.sleep(0.1)
    costs, made = [], Counter[str]()
    for at in range(REPEATS):
        before, cpu = counts.made.copy(), time.process_time()
        await change(at)
        await asyncio.sleep(FOLLOWS_S)
        costs.append(time.process_time() - cpu)
        made += counts.made - before
    calls = {call: n / REPEATS for call, n in sorted(made.items()) if _follows(call)}
    return {
        "cpu_ms": round(1000 * sorted(costs)[REPEATS // 2], 3),
        "requests": round(sum(calls.values()), 2),
        "requests_by_call": calls,
    }


def _follows(call: str) -> bool:
    """Leases are renewed and watches end whatever happens."""
    return call not in ALLOWED_WHEN_IDLE and not call.startswith("watch ")


def _leave_garbage_alone() -> None:
    """What Python's collector does now and then grows with everything that is in memory; it is
    not part of what a change costs."""
    gc.collect()
    gc.freeze()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))


# -- objects -------------------------------------------------------------------------------------


def _object(name: str, spec: dict[str, Any], namespace: str = NS) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _selector(name: str) -> dict[str, Any]:
    return {"matchLabels": {"set": name}}


def _template(name: str, *, claims: bool = True) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "app:1"}]}
    if claims:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return {"metadata": {"labels": {"set": name}}, "spec": spec}


def _claim_spec() -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


def _owner(of: Object) -> dict[str, Any]:
    return {"apiVersion": of.api_version, "kind": of.kind, "name": of.name, "uid": of.uid, "controller": True}


def _others() -> list[tuple[str, str, dict[str, Any]]]:
    """One of each kind that has a controller."""
    web = {"replicas": OTHERS - 5, "selector": _selector("web"), "template": _template("web")}
    agent = {"selector": _selector("agent"), "template": _template("agent", claims=False)}
    ending = _template("batch", claims=False)
    ending["spec"]["restartPolicy"] = "Never"
    batch = {"parallelism": 5, "template": ending}
    return [
        ("apps", "deployments", _object("web", web)),
        ("apps", "daemonsets", _object("agent", agent)),
        ("batch", "jobs", _object("batch", batch)),
        ("", "resourcequotas", _object("some", {"hard": {"pods": "10"}}, "kube-public")),
    ]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", type=int, default=50)
    parser.add_argument("--large", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    hour = run_virtual(measure(options.small, HOUR_S, changes=False))
    small, large = (run_virtual(measure(pods, options.seconds)) for pods in (options.small, options.large))
    ratios = {
        name: round(large["changes"][name]["cpu_ms"] / small["changes"][name]["cpu_ms"], 2)
        for name in small["changes"]
    }
    print(json.dumps({"cpu_ratios": ratios, "small": small, "large": large, "hour": hour["idle"]}))
    same = all(large["changes"][n]["requests"] <= small["changes"][n]["requests"] + 0.5 for n in ratios)
    return 0 if same and not large["idle"]["unexpected_requests"] else 1


if __name__ == "__main__":
    sys.exit(main())
