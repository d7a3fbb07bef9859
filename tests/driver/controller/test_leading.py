"""Several processes of one driver's controller: one works, and another takes over."""

import asyncio
from dataclasses import replace

from allot.base import Metrics
from allot.driver import controller as kit
from driver.controller.world import NS, Recording, tell
from driver.world import until


def lease(name):
    return replace(
        kit.lease_of(Recording().controller(), name),
        duration_s=2,
        renew_deadline_s=1.0,
        retry_period_s=0.2,
    )


def test_one_process_works_and_the_next_goes_on_where_it_ended():
    """3063-COMP-07: a connection to the API server is all it needs. What the first allocated, the second
    hears of before it does anything, and gives back."""

    async def story(world):
        first, second = Recording(), Recording()
        await world.make_class()
        async with world.driver(second, lease=lease("b"), metrics=Metrics()) as waiting:
            async with world.driver(first, lease=lease("a"), metrics=Metrics()) as working:
                done = await asyncio.wait(
                    [asyncio.create_task(one.leading.wait()) for one in (working, waiting)],
                    return_when=asyncio.FIRST_COMPLETED,
                    timeout=30,
                )
                assert len(done[0]) == 1
                await world.claim("a", "Immediate")
                await world.until_allocated("a")
                assert [bool(one.calls) for one in (first, second)].count(True) == 1
                leads = second if second.calls else first
            if leads is first:
                await asyncio.wait_for(waiting.leading.wait(), 30)
                assert second.calls[0] == ("begin", "a")
            await world.claims.delete("a", NS)
            await world.until_gone("a")

    tell(story)


def test_what_was_begun_comes_to_its_end_when_the_process_ends():
    """CALLING2: a driver's function is not cut in the middle."""

    async def story(world):
        driver, ended = Recording(), []

        async def slow(asks):
            await asyncio.sleep(0.3)
            ended.append(True)

        driver.pause = slow
        await world.make_class()
        await world.claim(mode="Immediate")
        async with world.driver(driver):

            async def is_running():
                return driver.made("allocate")

            await until(is_running)
        assert ended == [True]
        after = Recording()
        async with world.driver(after, metrics=Metrics()):
            await world.until_allocated()
        assert after.calls == [("begin", "c"), ("deallocate", "c", ""), ("allocate", "c", None)]

    tell(story)


def test_what_the_controller_does_is_counted():
    async def story(world):
        driver = Recording()
        driver.refuse = {"n1"}
        await world.make_class()
        await world.claim()
        pod = await world.pod()
        async with world.driver(driver, refresh_s=3600):
            await world.scheduling(pod, "n1", "n1", "n2")
            await world.until_answered({"entry-c": {"n1"}})
            await world.select("p", "n2")
            await world.until_allocated()
            await world.claims.patch("c", {"status": {"reservedFor": None}}, NS, subresource="status")
            await world.claims.delete("c", NS)
            await world.until_gone()
            text = world.metrics.text()
        for line in (
            'allot_driver_controller_allocations_total{result="refused"} 1',
            'allot_driver_controller_allocations_total{result="allocated"} 1',
            "allot_driver_controller_deallocations_total 1",
            'allot_driver_controller_call_seconds_count{function="allocate"} 2',
            "allot_driver_controller_leads 1",
        ):
            assert line in text

    tell(story)
