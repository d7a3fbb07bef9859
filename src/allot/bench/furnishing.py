"""Before the load: nodes, slices, classes, and claims that hold devices already.

Claims that are there before anything is measured are allocated by the allocator
itself, on random nodes from a seed, and written through the API like any other.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from allot.allocation import Features, Inventory, Ledger, Node, Plan, allocate, read_demand, taken_by
from allot.api import Gates, meta, resource
from allot.base import Ids, require
from allot.client import Client, Resource

from . import objects
from .load import IN_FLIGHT
from .shape import Scene, Shape

T = TypeVar("T")
Say = Callable[[str], None]


async def furnish(client: Client, shape: Shape, say: Say) -> None:
    """Everything but the pods and the claims that are allocated before."""
    core = client.resource("", "v1", "namespaces", namespaced=False)
    await core.create(objects.namespace())
    classes = client.of(resource.DEVICE_CLASS)
    await pipelined(shape.scene.classes, classes.create)
    nodes = client.resource("", "v1", "nodes", namespaced=False)
    names = [objects.node_name(number) for number in range(shape.nodes)]
    plain = [objects.plain_node_name(number) for number in range(shape.plain_nodes)]
    await pipelined((objects.node(name) for name in (*names, *plain)), nodes.create)
    slices = client.of(resource.RESOURCE_SLICE)
    published = (one for name in names for one in objects.slices(shape.scene, name))
    await pipelined(published, slices.create)
    await _claims_to_use(client, shape)
    say(f"{len(names) + len(plain)} nodes, {shape.nodes * len(shape.scene.devices)} devices")


async def _claims_to_use(client: Client, shape: Shape) -> None:
    scene = shape.scene
    if scene.claim is None:
        return
    if not scene.pods_per_claim:
        await client.of(resource.RESOURCE_CLAIM_TEMPLATE).create(objects.template(scene.claim))
        return
    count = -(-scene.room * shape.nodes // scene.pods_per_claim)
    wanted = (objects.claim(objects.shared_claim_name(n), scene.claim) for n in range(count))
    await pipelined(wanted, client.of(resource.RESOURCE_CLAIM).create)


async def allocate_before(
    client: Client, shape: Shape, gates: Gates, rng: random.Random, ids: Ids, say: Say
) -> None:
    """Give devices to claims that no pod uses."""
    count = shape.claims_before.at(shape.nodes)
    if not count or shape.scene.claim is None:
        return
    claims = client.of(resource.RESOURCE_CLAIM)
    names = (f"before-{number:06d}" for number in range(count))
    allocations = _allocations(shape, count, gates, rng, ids)

    async def write(pair: tuple[str, resource.AllocationResult]) -> None:
        await _write(claims, shape.scene, *pair)

    await pipelined(zip(names, allocations, strict=True), write)
    say(f"{count} claims allocated")


def _allocations(
    shape: Shape, count: int, gates: Gates, rng: random.Random, ids: Ids
) -> Iterator[resource.AllocationResult]:
    """So many allocations, each on a random node that still has devices for it."""
    scene, features = shape.scene, Features.from_gates(gates)
    inventory, ledger = Inventory(features), Ledger()
    nodes = [Node(objects.node_name(number)) for number in range(shape.nodes)]
    for node in nodes:
        for published in objects.slices(scene, node.name):
            inventory.apply(meta.view(resource.ResourceSlice, published))
    classes = [meta.view(resource.DeviceClass, one) for one in scene.classes]
    claim = meta.view(resource.ResourceClaim, objects.claim("before", scene.claim or {}))
    demand = read_demand([claim], {one.metadata.name: one for one in classes}, features)
    while count:
        require(bool(nodes), f"{shape.name} asks for more claims than its devices can serve")
        at = rng.randrange(len(nodes))
        answer = allocate(nodes[at], inventory, ledger, demand)
        if isinstance(answer, Plan):
            (allocation,) = answer.results(ids)
            ledger.settle(ids.uid(), taken_by(allocation))
            count -= 1
            yield allocation
        else:
            nodes[at] = nodes[-1]
            nodes.pop()


async def _write(claims: Resource, scene: Scene, name: str, allocation: resource.AllocationResult) -> None:
    created = await claims.create(objects.claim(name, scene.claim or {}, resource.limits.FINALIZER))
    await claims.update_status(created.changed({"status": {"allocation": msgspec.to_builtins(allocation)}}))


async def pipelined(work: Iterable[T], do: Callable[[T], Awaitable[Any]]) -> None:
    """Do it to all, several at once, in about their order."""
    left = iter(work)

    async def worker() -> None:
        for one in left:
            await do(one)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(worker())
