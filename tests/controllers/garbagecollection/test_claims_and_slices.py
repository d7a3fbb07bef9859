"""What garbage collection does for devices: claims go with their pod, slices with their node. Rule 6.5."""

from typing import Any

from allot.api import Object
from allot.controllers import garbagecollection, resourceclaims
from controllers.resourceclaims.objects import (
    allocate,
    allocation,
    claim,
    consumer,
    direct,
    generated,
    gone,
    owned_by,
    pod,
    template,
)
from controllers.world import NS, World, tell

BOTH = (garbagecollection.CONTROLLER, resourceclaims.CONTROLLER)


def test_a_generated_claim_goes_with_its_pod():
    """Rule 6.5: generated claims are deleted by owner when the pod goes away."""

    async def story(here: World) -> None:
        made = await here.pods.create(pod(claims=[]))
        await here.claims.create(claim(**owned_by(made)))
        await here.claims.create(claim("kept"))
        await here.quiet()
        await here.pods.delete("p", NS, grace_period_s=0)
        await gone(here, "c")
        assert await here.find(here.claims, "kept") is not None

    tell(story, garbagecollection.CONTROLLER)


def test_the_claim_for_extended_resources_goes_with_its_pod():
    """Rule 6.5: so are the claims that a scheduler made for extended resources."""

    async def story(here: World) -> None:
        made = await here.pods.create(pod(claims=[]))
        owner = {**owned_by(made), "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}
        await here.claims.create(claim(**owner))
        await here.quiet()
        await here.pods.delete("p", NS, grace_period_s=0)
        await gone(here, "c")

    tell(story, garbagecollection.CONTROLLER)


def test_an_allocated_claim_is_held_by_its_finalizer_until_the_claim_controller_lets_go():
    """Rule 6.5: delete-protection holds a claim until its consumers have been removed."""

    async def alone(here: World) -> None:
        made = await here.pods.create(pod(claims=[]))
        own = await here.claims.create(claim(**owned_by(made)))
        await allocate(here, own, consumer(made))
        await here.quiet()
        await here.pods.delete("p", NS, grace_period_s=0)

        async def leaving() -> bool:
            found = await here.claims.get("c", NS)
            return found.metadata.deletion_timestamp is not None

        await here.until(leaving)
        await here.quiet()
        assert allocation(await here.claims.get("c", NS)) is not None

    tell(alone, garbagecollection.CONTROLLER)

    async def together(here: World) -> None:
        await here.templates.create(template())
        made = await here.pods.create(pod())
        own = await generated(here)
        await allocate(here, own, consumer(made))
        await here.quiet()
        await here.pods.delete("p", NS, grace_period_s=0)
        await gone(here, own.name)

    tell(together, *BOTH)


def test_a_claim_in_use_by_another_pod_outlives_the_pod_it_was_made_for():
    """Rule 6.5, C6: it is told to go and goes when the last consumer has left."""

    async def story(here: World) -> None:
        made = await here.pods.create(pod(claims=[]))
        own = await here.claims.create(claim(**owned_by(made)))
        other = await here.pods.create(pod("other", direct("c"), nodeName="n"))
        await allocate(here, own, consumer(made), consumer(other))
        await here.quiet()
        await here.pods.delete("p", NS, grace_period_s=0)
        await here.quiet()
        assert allocation(await here.claims.get("c", NS)) is not None
        await here.pods.delete("other", NS, grace_period_s=0)
        await gone(here, "c")

    tell(story, *BOTH)


def slice_of(node: Object) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid, "controller": True}
    pool = {"name": node.name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node.name, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return {"metadata": {"name": f"{node.name}-gpu", "ownerReferences": [owner]}, "spec": spec}


def test_slices_of_a_node_go_with_it():
    """Rule 6.5: ResourceSlices that a Node owns are collected with the Node."""

    async def story(here: World) -> None:
        nodes = here.client.resource("", "v1", "nodes", namespaced=False)
        slices = here.client.resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
        for name in ("gone", "stays"):
            await slices.create(slice_of(await nodes.create({"metadata": {"name": name}})))
        await here.quiet()
        await nodes.delete("gone")

        async def left() -> bool:
            return [one.name for one in (await slices.list()).objects] == ["stays-gpu"]

        await here.until(left)

    tell(story, garbagecollection.CONTROLLER)
