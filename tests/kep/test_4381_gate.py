"""KEP-4381 switched off and on again, with a scheduler: what waits, what goes on, what is told."""

import asyncio

from allot.api import Gates, numeric
from allot.apiserver import Options
from allot.store import MemoryStore
from allot.testing import api_server
from scheduler.cluster import NS, Cluster
from scheduler.numeric import Numeric

OFF = Gates({numeric.limits.GATE: False})


async def running(store, gates, story):
    async with api_server(store, Options(gates=gates)) as server:
        place = Cluster(server, server.client(), gates)
        try:
            await place.start_controllers()
            await place.start_scheduler()
            await asyncio.wait_for(story(Numeric(place)), 60)
        finally:
            await place.stop()


def test_off_nothing_is_allocated_and_what_is_goes_on_and_on_again_it_resumes():
    """4381-GATE-02, 4381-GATE-06, 4381-GATE-07, 4381-GATE-08, 4381-GATE-09, 4381-GATE-11, 4381-GATE-13,
    4381-DEA-14, 4381-ERR-13, 4381-TST-03, 4381-TST-05."""

    async def on(here):
        await here.furnish()
        await here.resource_class("shared", shareable=True)
        await here.claim("c", 2, resource_class="shared")
        await here.pod("p", "c")
        await here.here.bound("p")
        await here.asks("ending", 1)
        await here.here.bound("ending")

    async def off(here):
        await here.asks("late", 1)
        await here.waits("late", "DRANumericParameters is off")
        assert not (await here.talks.list(NS)).objects
        await here.pod("second", "c")
        assert await here.here.bound("second") == await here.here.bound("p")
        await here.finish("ending")
        await here.free("ending")

    async def again(here):
        await here.here.bound("late")

    async def whole():
        store = MemoryStore()
        await running(store, Gates(), on)
        await running(store, OFF, off)
        await running(store, Gates(), again)
        await store.close()

    asyncio.run(whole())


def test_a_model_that_is_off_leaves_its_claims_waiting():
    """4381-EXT-05, 4381-EXT-01, 4381-ERR-13."""

    async def on(here):
        await here.furnish()
        await here.asks("p", 1)
        await here.here.bound("p")

    async def off(here):
        await here.asks("q", 1)
        await here.waits("q", "DRANumericModelCounter is off")
        await here.finish("p")
        await here.free("p")

    async def whole():
        store = MemoryStore()
        await running(store, Gates(), on)
        await running(store, Gates({"DRANumericModelCounter": False}), off)
        await store.close()

    asyncio.run(whole())


def test_a_scheduler_waits_for_a_type_that_the_server_does_not_serve():
    """4381-GATE-14: and places everything else."""

    async def whole():
        async with api_server(MemoryStore(), Options(gates=OFF)) as server:
            place = Cluster(server, server.client(), Gates())
            try:
                await place.start_controllers()
                await place.start_scheduler()
                await place.node("a")
                await place.pod("plain")
                assert await place.bound("plain") == ["a"]
            finally:
                await place.stop()

    asyncio.run(whole())
