"""A driver's controller that ends at any moment: before or after any of its writes."""

import asyncio

import pytest

from allot.base import Metrics
from allot.client import Client, InProcessTransport
from allot.driver import controller as kit
from driver.controller.world import DRIVER, FINALIZER, NS, Recording, tell
from driver.world import until


class Mortal:
    """Carries requests until it is time: then the process is gone, and the last one has no answer."""

    def __init__(self, handle, dies_at, after):
        self._transport = InProcessTransport(handle, DRIVER)
        self._left, self._after = dies_at, after
        self.died = asyncio.Event()

    async def send(self, request):
        if request.method == "GET":
            if self.died.is_set():
                await asyncio.Event().wait()
            return await self._transport.send(request)
        if self._left == 0 or self.died.is_set():
            if self._after and not self.died.is_set():
                await self._transport.send(request)  # it arrives, and nobody hears of it
            self.died.set()
            await asyncio.Event().wait()
        self._left -= 1
        return await self._transport.send(request)

    async def close(self):
        await self._transport.close()


def process(world, hardware, transport):
    around = kit.Around(Client(transport), metrics=Metrics())
    return kit.controlling(hardware.controller(refresh_s=0.3), around)


async def judged(world, hardware):
    """What the hardware holds is what claims say, and what is held is protected."""
    claims = (await world.claims.list(NS)).objects
    allocated = {one.uid for one in claims if (one.fields.get("status") or {}).get("allocation") is not None}
    protected = {one.uid for one in claims if FINALIZER in (one.metadata.finalizers or ())}
    return allocated == protected == set(hardware.held)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies_at", range(7))
def test_whenever_it_ends_the_next_one_finishes_or_undoes_it(dies_at, after):
    """3063-STATE-18, 3063-STATE-15, 3063-TROUBLE-02, C9: a pod with two claims, an immediate claim, one
    that is asked back and one that is deleted; in the end every claim has what it should, and nothing is
    lost or allocated twice."""

    async def story(world):
        hardware = Recording()  # the driver's own records outlive its processes
        await world.make_class()
        for name in ("a", "b", "back", "gone"):
            await world.claim(name)
        holder = await world.pod("holder", "back", "gone")
        whole = InProcessTransport(world.server.api.handle, DRIVER)
        async with process(world, hardware, whole) as first:
            await first.leading.wait()
            await world.scheduling(holder, "n1", "n1")
            for name in ("back", "gone"):
                await world.until_allocated(name)
        await world.schedulings.delete("holder", NS)
        await world.pods.delete("holder", NS, grace_period_s=0)
        free = {"status": {"reservedFor": None}}
        await world.claims.patch("gone", free, NS, subresource="status")
        await world.claims.delete("gone", NS)
        free["status"]["deallocationRequested"] = True
        await world.claims.patch("back", free, NS, subresource="status")
        await world.claim("now", "Immediate")
        pod = await world.pod("p", "a", "b")
        await world.scheduling(pod, "n1", "n1")
        mortal = Mortal(world.server.api.handle, dies_at, after)
        async with process(world, hardware, mortal):
            await asyncio.wait_for(mortal.died.wait(), 20)
        whole = InProcessTransport(world.server.api.handle, DRIVER)
        async with process(world, hardware, whole):
            for name in ("a", "b", "now"):
                await world.until_allocated(name)
            await world.until_gone("gone")
            await world.until_free("back")

            async def is_right():
                return await judged(world, hardware)

            await until(is_right)
            await world.quiet(0.3)
            assert await is_right()
        for name in ("a", "b"):
            reserved = (await world.status(name))["reservedFor"]
            assert [one["uid"] for one in reserved] == [pod.uid]

    tell(story)
