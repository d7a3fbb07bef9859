"""KEP-4381 switched off and on again, with a scheduler: what waits, what goes on, what is told."""

import asyncio
import json
from inspect import signature

import pytest

import scheduler.cluster
from allot.api import Gates, Request, numeric
from allot.apiserver import Options, identities
from allot.client import Client, InProcessTransport
from allot.store import MemoryStore
from allot.testing import api_server
from controllers.world import Record
from scheduler import test_classic, test_stories
from scheduler.cluster import NS, Cluster
from scheduler.numeric import VENDOR, Numeric

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


def test_off_nothing_of_it_is_there_and_claims_of_such_a_class_are_their_drivers():
    """4381-TST-01: no kind, no field, and nobody reads parameters of the kind that an older class names."""

    async def before(here):
        await here.furnish()

    async def whole():
        store = MemoryStore()
        await running(store, Gates(), before)
        async with api_server(store, Options(gates=OFF)) as server:
            place, wires, connect = Cluster(server, server.client(), OFF), [], server.client

            def client(user=identities.ADMIN):
                if user == identities.ADMIN:
                    return connect(user)
                wires.append(Record(InProcessTransport(server.api.handle, user)))
                return Client(wires[-1])

            server.client = client
            try:
                await place.start_controllers()
                await place.start_scheduler()
                here = Numeric(place)
                await here.resource_class("late")
                assert "numericParameters" not in (await here.classes.get("late")).fields
                asked = Request("GET", "/apis/resource.k8s.io/v1alpha1", {}, {}, b"")
                served = json.loads((await server.api.handle(asked, identities.ADMIN)).body)["resources"]
                assert "resourceclasses" in {one["name"] for one in served}
                assert "noderesourcecapacities" not in {one["name"] for one in served}
                await here.claim("p", resource_class="late", made=False)
                await here.pod("p", "p")

                async def talks():
                    return (await here.talks.list(NS)).objects

                await place.until(talks, "the driver is asked, as for any classic claim")
            finally:
                await place.stop()
        asked = {one.path for wire in wires for one in wire.requests}
        assert any(path.endswith("/resourceclasses") for path in asked)
        assert not [path for path in asked if VENDOR in path]

    asyncio.run(whole())


SUITE = (
    test_classic.test_a_driver_that_allocates_and_does_not_reserve_does_as_well,
    test_classic.test_two_claims_of_two_drivers_are_asked_about_and_then_allocated_together,
    test_classic.test_an_immediate_claim_is_waited_for_and_has_no_talk,
    test_classic.test_pods_share_a_claim_whose_driver_allows_it,
    test_stories.test_a_pod_with_a_template_gets_a_claim_a_device_and_a_node,
    test_stories.test_a_pod_for_which_no_device_is_left_is_told_so_and_placed_when_one_is_given_back,
    test_stories.test_an_unmodified_pod_with_an_extended_resource_lands_on_devices,
)


@pytest.mark.parametrize("test", SUITE, ids=lambda one: one.__name__)
def test_with_it_off_the_stories_of_other_claims_are_as_they_are(test, monkeypatch):
    """4381-TST-01."""
    made = []

    def off():
        made.append(OFF)
        return OFF

    monkeypatch.setattr(scheduler.cluster, "Gates", off)
    test(**({"transactions": True} if "transactions" in signature(test).parameters else {}))
    assert made
