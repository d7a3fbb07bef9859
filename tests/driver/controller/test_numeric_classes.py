"""A driver that has classes of both kinds: its controller has no business with what the scheduler allocates
(KEP-4381), whatever becomes of it."""

from typing import Any

from allot.api import resource
from allot.client import Resource
from api.numeric.objects import capacity, class_, counter
from driver.controller.world import ME, NS, Recording, World, tell
from kep.test_4381_claims import allocation, result

BY_SCHEDULER = resource.shape.NUMERIC_FINALIZER


async def allocated(world: World, name: str) -> None:
    """As the scheduler does it, and for nobody."""
    claims = structured(world)
    await claims.patch(name, {"metadata": {"finalizers": [BY_SCHEDULER]}}, NS)
    given = allocation(result(driver=ME))
    status: dict[str, Any] = {"driverName": ME, "allocation": given}
    await claims.patch(name, {"status": status}, NS, subresource="status")


def structured(world: World) -> Resource:
    return world.client.of(resource.RESOURCE_CLAIM)


def test_a_controller_leaves_what_the_scheduler_allocates_alone():
    """Neither allocated nor protected, nor given back when it is deleted, or goes with what it has."""

    async def story(world: World) -> None:
        driver = Recording()
        capacities = world.client.resource(
            "resource.k8s.io", "v1alpha1", "noderesourcecapacities", namespaced=False
        )
        await capacities.create(capacity(driver=ME, instances=[counter(count=8)]))
        await world.classes.create(class_("counted", driver=ME))
        await world.make_class()
        async with world.driver(driver):
            await world.claim("waits", of="counted", mode="Immediate")
            made = await world.claim("held", of="counted")
            await allocated(world, "held")
            await world.quiet()
            assert await world.status("waits") == {}
            assert await world.finalizers("held") == [BY_SCHEDULER]
            writes = structured(world).writes
            released = {"metadata": {"finalizers": None}, "status": {"allocation": None}}
            await world.client.together(
                [writes.patch_with_status("held", released, NS), writes.delete("held", NS, uid=made.uid)]
            )
            await world.claim("own", mode="Immediate")
            await world.until_allocated("own")
            await world.quiet()
        assert [call for call in driver.calls if call[0] != "begin"] == [("allocate", "own", None)]

    tell(story)
