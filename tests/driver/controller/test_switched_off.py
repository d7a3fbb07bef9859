"""What a driver does when caches say that claims are gone: it asks the server before it frees anything."""

import asyncio

from allot.api import Gates
from allot.apiserver import Options, identities
from allot.base import Metrics
from allot.driver import controller as kit
from allot.informers import Pace
from allot.store import MemoryStore
from allot.testing import api_server
from driver.controller.world import DRIVER, NS, Recording, World, grant, tell


def off():
    return Options(gates=Gates({"DRAControlPlaneController": False}))


def test_a_driver_is_not_told_that_nothing_is_held_while_classic_claims_are_switched_off():
    """3063-PRR-03, C6: a process that begins meanwhile waits, and what pods use stays theirs."""

    async def story():
        store, driver = MemoryStore(), Recording()
        async with api_server(store) as server:
            world = World(server, server.client(identities.ADMIN))
            await grant(world.client)
            await world.make_class()
            await world.claim(mode="Immediate")
            async with world.driver(driver):
                await world.until_allocated()
        held = dict(driver.held)
        driver.calls.clear()
        async with api_server(store, off()) as server:
            around = kit.Around(server.client(DRIVER), metrics=Metrics(), pace=Pace(absent_s=0.2))
            async with kit.controlling(driver.controller(), around) as work:
                await asyncio.sleep(1)
                assert not work.followed.claims.served
                assert not work.leading.is_set()
            assert (driver.calls, driver.held) == ([], held)
        async with api_server(store) as server:
            world = World(server, server.client(identities.ADMIN))
            async with world.driver(driver, metrics=Metrics()):
                assert (driver.calls, driver.held) == ([("begin", "c")], held)
        await store.close()

    async def whole():
        async with asyncio.timeout(100):
            await story()

    asyncio.run(whole())


def test_a_claim_that_only_a_cache_has_lost_is_not_freed():
    """C6, REFL1: it is told as deleted when v1alpha1 is served no more, and the server still has it."""

    async def story(world):
        driver = Recording()
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver) as work:
            await world.until_allocated()
            await world.quiet(0.2)
            lost = work.followed.claims.cache.get("c", NS)
            for change in work.followed.claims.cache.remove(lost):
                work.followed.claims._changed(change)
            await world.quiet()
        assert driver.made("deallocate") == []
        assert len(driver.held) == 1

    tell(story)
