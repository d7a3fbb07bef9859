"""kill -9 of server, scheduler and driver while classic claims are negotiated for, again and again; and a
server that comes back without classic claims for a while."""

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from components import binary

from .process import Component, Controllers, Kubectl, MockDriver, Scheduler, ServerProcess
from .scheduling import NS, SOON_S, World, node_of

YAML = Path(__file__).parents[2] / "examples" / "classic" / "mock-driver.yaml"
FINALIZER = "mock.example.com/deletion-protection"
NODES, PER_NODE, ROUNDS, PODS = 4, 7, 4, 4
LOOK_S = 30.0
"""So long it takes components to see that the server has classic claims again."""
SWITCHED_OFF = "DRAControlPlaneController=false"
TEMPLATE = """
apiVersion: resource.k8s.io/v1alpha1
kind: ResourceClaimTemplate
metadata: {name: mock}
spec: {spec: {resourceClassName: mock}}
"""


def pod(name: str, claims: int) -> dict[str, object]:
    entries = [{"name": f"e{number}", "resourceClaimTemplateName": "mock"} for number in range(claims)]
    spec = {"containers": [{"name": "main", "image": "none"}], "resourceClaims": entries}
    return {"metadata": {"name": name}, "spec": spec}


async def furnish(server: ServerProcess, world: World) -> None:
    kubectl = Kubectl(binary("kubectl"), server.kubeconfig)
    await asyncio.to_thread(kubectl, "apply", "-f", str(YAML))
    await asyncio.to_thread(lambda: kubectl("apply", "-f", "-", stdin=TEMPLATE))
    nodes = world.client.resource("", "v1", "nodes", namespaced=False)
    for number in range(NODES):
        made = await nodes.create({"metadata": {"name": f"n{number}"}})
        have = {"cpu": "64", "memory": "64Gi", "pods": "110"}
        await nodes.update_status(made.changed({"status": {"capacity": have, "allocatable": have}}))


def test_whoever_is_killed_in_the_middle_of_a_negotiation_every_pod_gets_its_claims_once(tmp_path):
    """3063-TROUBLE-02, 3063-API-05, C9, P1, P5: half of the pods have two claims, so that drivers are asked
    first."""
    server, chance = ServerProcess(tmp_path / "data"), random.Random(18)

    async def story() -> None:
        async with World(server) as world:
            await furnish(server, world)
            makers: dict[str, Callable[[str], Component]] = {
                "scheduler": lambda name: Scheduler(
                    server, name, None, "--no-leader-elect", "--driver-timeout", "5"
                ),
                "driver": lambda name: MockDriver(server, name, None, "--per-node", str(PER_NODE)),
            }
            controllers = world.add(Controllers(server, "controllers", None, "--no-leader-elect"))
            living = {what: world.add(make(f"{what}-0")) for what, make in makers.items()}
            for one in (controllers, *living.values()):
                await asyncio.to_thread(one.await_ready)
            for number in range(ROUNDS):
                victim = ("driver", "scheduler", "server", "gate")[number % 4]
                made = [pod(f"p{number}-{at}", 1 + at % 2) for at in range(PODS)]
                await asyncio.gather(*(world.pods.create(one, NS) for one in made))
                await asyncio.sleep(chance.uniform(0.02, 0.6))
                if victim in ("server", "gate"):
                    await asyncio.to_thread(server.kill)
                    if victim == "gate":
                        await asyncio.to_thread(server.start, "--feature-gates", SWITCHED_OFF)
                        await asyncio.sleep(chance.uniform(0.5, 3))
                        await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
                    continue
                await asyncio.to_thread(living[victim].end, signal.SIGKILL)
                living[victim] = world.add(makers[victim](f"{victim}-{number + 1}"))
                await asyncio.to_thread(living[victim].await_ready)
            await until_bound(world)
            await world.until(lambda: is_settled(world), "P5: no PodScheduling left")
            await check(world)
            for one in (await world.pods.list(NS)).objects:
                await world.pods.delete(one.name, NS, grace_period_s=0)

            async def nothing_left() -> bool:
                return not (await world.claims.list(NS)).objects

            await world.until(nothing_left, "C3, C9: every claim given back")
            assert not world.seen.moved

    try:
        asyncio.run(asyncio.wait_for(story(), 280))
    finally:
        server.kill()


async def until_bound(world: World) -> None:
    end = asyncio.get_running_loop().time() + LOOK_S + 2 * SOON_S
    while left := [one for one in (await world.pods.list(NS)).objects if not node_of(one)]:
        told = [(one.name, (one.fields.get("status") or {}).get("conditions")) for one in left]
        assert asyncio.get_running_loop().time() < end, f"P2: not bound: {told}"
        await asyncio.sleep(0.2)


async def is_settled(world: World) -> bool:
    talks = world.client.resource("resource.k8s.io", "v1alpha1", "podschedulings")
    return not (await talks.list(NS)).objects


async def check(world: World) -> None:
    claims = {one.name: one for one in (await world.claims.list(NS)).objects}
    used: Counter[str] = Counter()
    wanted = 0
    for one in (await world.pods.list(NS)).objects:
        for entry in one.fields["spec"]["resourceClaims"]:
            claim = claims[f"{one.name}-{entry['name']}"]
            status = claim.fields["status"]
            assert [user["uid"] for user in status["reservedFor"]] == [one.uid], f"P1: {claim.name}"
            assert claim.metadata.finalizers == [FINALIZER], f"C9: {claim.name}"
            assert not status.get("deallocationRequested"), f"C10: {claim.name}"
            where = json.loads(status["allocation"]["resourceHandle"])["node"]
            assert where == node_of(one), f"{claim.name} is allocated on {where}"
            used[where] += 1
            wanted += 1
    assert len(claims) == wanted
    assert max(used.values()) <= PER_NODE, f"the driver has given more than it has: {used}"
