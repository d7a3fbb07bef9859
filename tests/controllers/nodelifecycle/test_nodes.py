"""Nodes that fall silent, over the real server, with little patience."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from allot.api import Object, age, encode
from allot.controllers import nodelifecycle
from allot.controllers.nodelifecycle.eviction import leaves_in_s
from allot.controllers.nodelifecycle.health import are_too_many, granted_s
from allot.controllers.nodelifecycle.leaving import Leaving
from allot.controllers.nodelifecycle.loop import Listening
from allot.controllers.nodelifecycle.taints import tainted
from controllers.kubelet import make_ready
from controllers.world import NS, World, tell

UNREACHABLE = "node.kubernetes.io/unreachable"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _impatient(world):
    return [Listening(world, grace_s=0.5).loop, Leaving(world).loop]


QUICK = replace(nodelifecycle.CONTROLLER, make=_impatient)


def nodes(here: World):
    return here.client.resource("", "v1", "nodes", namespaced=False)


def leases(here: World):
    return here.client.resource("coordination.k8s.io", "v1", "leases")


async def add_node(here: World, name: str, **spec: Any) -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    await nodes(here).create({**body, "status": {"conditions": [ready("True")]}})
    metadata = {"name": name, "namespace": "kube-node-lease"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    renewed = age.micro_timestamp(datetime.now(UTC))
    await leases(here).create({**lease, "spec": {"renewTime": renewed, **spec}})


def ready(status: str) -> dict[str, str]:
    now = age.timestamp(datetime.now(UTC))
    return {"type": "Ready", "status": status, "lastHeartbeatTime": now, "lastTransitionTime": now}


class Alive:
    """Renews the leases of nodes."""

    def __init__(self, here: World, *names: str) -> None:
        self.here, self.names = here, names

    async def __aenter__(self) -> None:
        self.task = asyncio.create_task(self._renew())

    async def __aexit__(self, *unused: object) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))

    async def _renew(self) -> None:
        while True:
            for name in self.names:
                spec = {"renewTime": age.micro_timestamp(datetime.now(UTC))}
                await leases(self.here).patch(name, {"spec": spec}, "kube-node-lease")
            await asyncio.sleep(0.1)


async def pod(here: World, name: str, node: str, *tolerations: dict[str, Any]) -> None:
    spec = {"containers": [{"name": "main", "image": "app:1"}], "nodeName": node}
    metadata = {"name": name, "namespace": NS}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    await here.pods.create({**body, "spec": {**spec, "tolerations": [*tolerations]}})
    await make_ready(here.client, name)


async def taints(here: World, name: str) -> set[tuple[str, str]]:
    live = await nodes(here).get(name)
    found = (live.fields.get("spec") or {}).get("taints") or []
    return {(one["key"], one["effect"]) for one in found}


async def status(here: World, name: str) -> str:
    live = await nodes(here).get(name)
    found = (live.fields.get("status") or {}).get("conditions") or []
    return next(one["status"] for one in found if one["type"] == "Ready")


def test_a_node_with_a_long_lease_may_be_silent_for_long():
    """It has said so. Its neighbour with a short one is given up on meanwhile."""

    async def story(here: World) -> None:
        await add_node(here, "rarely", leaseDurationSeconds=240)
        await add_node(here, "often", leaseDurationSeconds=1)
        await add_node(here, "alive")
        async with Alive(here, "alive"):

            async def unknown() -> bool:
                return await status(here, "often") == "Unknown"

            await here.until(unknown)
            assert await status(here, "rarely") == "True"

    tell(story, QUICK)


def test_patience_is_never_less_than_usual_and_never_without_end():
    assert granted_s(50, 40) == 50
    assert granted_s(50, 0) == 50
    assert granted_s(50, 240) == 300
    assert granted_s(50, 10**9) == 600


def test_a_silent_node_is_unreachable_and_its_pods_leave_when_their_time_is_up():
    async def story(here: World) -> None:
        await add_node(here, "alive")
        await add_node(here, "silent")
        soon = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        await pod(here, "patient", "silent")  # admission lets it stay for five minutes
        await pod(here, "hasty", "silent", soon)
        await pod(here, "other", "alive", soon)
        async with Alive(here, "alive"):

            async def unreachable() -> bool:
                found = await taints(here, "silent")
                return found == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}

            await here.until(unreachable)
            assert await status(here, "silent") == "Unknown"

            async def leaves() -> bool:
                return (await here.pods.get("hasty", NS)).metadata.deletion_timestamp is not None

            await here.until(leaves)
            told = (await here.pods.get("hasty", NS)).fields["status"]["conditions"]
            assert "DeletionByTaintManager" in [one.get("reason") for one in told]
            patient = await here.pods.get("patient", NS)
            assert patient.metadata.deletion_timestamp is None
            assert {one["type"]: one["status"] for one in patient.fields["status"]["conditions"]}[
                "Ready"
            ] == "False"
            assert (await here.pods.get("other", NS)).metadata.deletion_timestamp is None
            assert await taints(here, "alive") == set()
            shown = here.metrics.text()
            assert 'node_collector_zone_size{zone=""} 2' in shown
            assert 'node_collector_unhealthy_nodes_in_zone{zone=""} 1' in shown
            assert "taint_eviction_controller_pod_deletions_total 1" in shown

    tell(story, QUICK)


def test_a_node_that_speaks_again_loses_its_taints():
    async def story(here: World) -> None:
        await add_node(here, "alive")
        await add_node(here, "back")
        async with Alive(here, "alive"):

            async def unknown() -> bool:
                return await status(here, "back") == "Unknown"

            await here.until(unknown)
            await asyncio.sleep(1.1)  # heartbeats are whole seconds
            async with Alive(here, "back"):
                patch = {"status": {"conditions": [ready("True")]}}
                await nodes(here).patch("back", patch, subresource="status")

                async def clean() -> bool:
                    return not await taints(here, "back")

                await here.until(clean)

    tell(story, QUICK)


def test_when_all_nodes_fall_silent_nobody_is_evicted():
    async def story(here: World) -> None:
        for name in ("a", "b"):
            await add_node(here, name)

        async def both() -> bool:
            return {await status(here, "a"), await status(here, "b")} == {"Unknown"}

        await here.until(both)

        async def only_unschedulable() -> bool:
            wanted = {(UNREACHABLE, "NoSchedule")}
            return await taints(here, "a") == wanted and await taints(here, "b") == wanted

        await here.until(only_unschedulable)
        await here.quiet()
        assert await only_unschedulable()

    tell(story, QUICK)


def test_a_cordoned_node_is_tainted():
    async def story(here: World) -> None:
        await add_node(here, "a")
        async with Alive(here, "a"):
            await nodes(here).patch("a", {"spec": {"unschedulable": True}})
            key = "node.kubernetes.io/unschedulable"

            async def cordoned() -> bool:
                return await taints(here, "a") == {(key, "NoSchedule")}

            await here.until(cordoned)
            await nodes(here).patch("a", {"spec": {"unschedulable": None}})

            async def open_again() -> bool:
                return not await taints(here, "a")

            await here.until(open_again)

    tell(story, QUICK)


def test_taints_of_others_stay_and_ours_keep_their_time():
    other = {"key": "mine", "effect": "NoExecute"}
    ours = {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    conditions = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    node = {
        "metadata": {"name": "a"},
        "spec": {"taints": [other, ours]},
        "status": {"conditions": conditions},
    }
    found = tainted(Object(encode(node)), "later", evicts=True)
    assert found == [other, ours, {"key": UNREACHABLE, "effect": "NoSchedule"}]
    assert tainted(Object(encode({**node, "spec": {"taints": found}})), "later", evicts=True) is None
    node["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert tainted(Object(encode(node)), "later", evicts=True) == [other]


def test_a_pod_stays_as_long_as_its_shortest_toleration_of_each_taint():
    def node(*keys: str) -> Object:
        since = age.timestamp(NOW - timedelta(seconds=10))
        found = [{"key": key, "effect": "NoExecute", "timeAdded": since} for key in keys]
        return Object(encode({"metadata": {"name": "n"}, "spec": {"taints": found}}))

    def tolerating(**seconds: int | None) -> Object:
        found = [
            {"key": key, "operator": "Exists", **({} if s is None else {"tolerationSeconds": s})}
            for key, s in seconds.items()
        ]
        return Object(encode({"metadata": {}, "spec": {"tolerations": found}}))

    assert leaves_in_s(tolerating(a=30, b=60), node("a", "b"), NOW) == 20
    assert leaves_in_s(tolerating(a=None), node("a"), NOW) is None
    assert leaves_in_s(tolerating(a=None), node("a", "b"), NOW) == 0
    assert leaves_in_s(tolerating(), node(), NOW) is None


def test_how_many_are_too_many():
    assert are_too_many(1, 1) and are_too_many(3, 4) and are_too_many(2, 2)
    assert not are_too_many(0, 0) and not are_too_many(1, 2) and not are_too_many(3, 10)
