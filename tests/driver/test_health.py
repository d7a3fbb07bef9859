"""The health of devices, from the author to a kubelet."""

import asyncio
from contextlib import aclosing

from allot.base import SystemClock
from allot.driver import DeviceHealth
from allot.driver.health import Healths
from allot.wire import health
from driver.world import NODE, tell


def test_reports_reach_kubelets_that_listen_and_those_that_come_later():
    said = asyncio.Queue()

    async def look():
        while True:
            yield await said.get()

    async def story(world):
        async with world.driver(health=look) as kubelet:
            asked = health.NodeWatchResourcesRequest()
            async with aclosing(kubelet.channel.stream(health.V1.watch, asked)) as first:
                waiting = asyncio.ensure_future(anext(first))
                await asyncio.sleep(0.2)
                said.put_nowait([DeviceHealth(NODE, "gpu-0", True), DeviceHealth(NODE, "gpu-1", None)])
                report = await asyncio.wait_for(waiting, 30)
                assert [one.health for one in report.devices] == [
                    health.Health.HEALTHY,
                    health.Health.UNKNOWN,
                ]
                assert report.devices[0].device == health.DeviceIdentifier(NODE, "gpu-0")
                assert report.devices[0].health_check_timeout_seconds == 30
                async with aclosing(kubelet.channel.stream(health.V1ALPHA1.watch, asked)) as late:
                    assert await asyncio.wait_for(anext(late), 30) == report
                    said.put_nowait([DeviceHealth(NODE, "gpu-0", False, "x" * 2000, timeout_s=5)])
                    for stream in (first, late):
                        (one,) = (await asyncio.wait_for(anext(stream), 30)).devices
                        assert one.health == health.Health.UNHEALTHY
                        assert len(one.message) == 1024
                        assert one.health_check_timeout_seconds == 5

    tell(story)


def test_a_report_that_no_longer_holds_is_not_repeated():
    async def look():
        yield [DeviceHealth(NODE, "gpu-0", True, timeout_s=1)]
        await asyncio.Event().wait()

    async def story(world):
        async with world.driver(health=look) as kubelet:
            await asyncio.sleep(1.5)
            asked = health.NodeWatchResourcesRequest()
            async with aclosing(kubelet.channel.stream(health.V1.watch, asked)) as late:
                waiting = asyncio.ensure_future(anext(late))
                done, _ = await asyncio.wait([waiting], timeout=0.5)
                assert not done
                waiting.cancel()
                await asyncio.wait([waiting])

    tell(story)


def test_a_look_that_fails_is_begun_anew(monkeypatch):
    monkeypatch.setattr("allot.driver.health.AGAIN_S", 0.05)
    looks, thrice = [], asyncio.Event()

    async def look():
        looks.append(1)
        if len(looks) == 3:
            thrice.set()
        yield [DeviceHealth(NODE, "gpu-0", True)]
        raise OSError("the bus is silent")

    async def story(world):
        async with world.driver(health=look):
            await asyncio.wait_for(thrice.wait(), 30)

    tell(story)


def test_a_report_that_comes_while_another_is_being_told_is_told_too():
    """The next one may be long in coming."""

    async def story() -> None:
        is_told, are_both_said = asyncio.Event(), asyncio.Event()

        async def look():
            yield [DeviceHealth(NODE, "gpu-0", True)]
            await is_told.wait()
            yield [DeviceHealth(NODE, "gpu-0", False)]
            are_both_said.set()
            await asyncio.Event().wait()

        healths = Healths(look, SystemClock())
        following = asyncio.create_task(healths.run())
        async with aclosing(healths.watch(health.NodeWatchResourcesRequest())) as watching:
            assert (await anext(watching)).devices[0].health == health.Health.HEALTHY
            is_told.set()
            await are_both_said.wait()
            assert (await anext(watching)).devices[0].health == health.Health.UNHEALTHY
        following.cancel()
        await asyncio.wait((following,))

    asyncio.run(asyncio.wait_for(story(), 10))
