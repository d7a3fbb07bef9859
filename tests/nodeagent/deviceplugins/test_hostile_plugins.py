"""Device plugins that send junk: their pods say what is wrong, and nobody else notices."""

import asyncio
from collections.abc import AsyncIterator

from allot.wire import deviceplugin as wire

from ..plugins import until
from ..world import NS, World, tell
from .plugin import RawPlugin
from .test_device_plugins import plugin, pod, until_counted

Answer = wire.ContainerAllocateResponse
ANSWERS = {
    "this machine has nothing at": Answer(mounts=(wire.Mount("/x", ""),)),
    "this machine has no /no/such": Answer(devices=(wire.DeviceSpec("/dev/x", "/no/such", "rw"),)),
    "permissions 'please'": Answer(devices=(wire.DeviceSpec("/dev/x", "/dev/null", "please"),)),
    "device node : this machine has no": Answer(devices=(wire.DeviceSpec("", "", ""),)),
    "null byte": Answer(envs={"A\x00": "b", "": "c", "D=": "e"}),
    "Argument list too long": Answer(envs={"A": "b" * 300_000}),
    "unresolvable CDI devices junk": Answer(cdi_devices=(wire.CdiDevice("junk"),)),
}


async def runs_beside(here: World) -> None:
    """The agent goes on: a pod without devices runs."""
    await here.pod("echo fine", name="other")
    await here.until_phase("Succeeded", "other")


def test_each_answer_that_cannot_be_is_said_by_its_pod_and_costs_no_other_anything():
    async def play(here: World) -> None:
        async with here.agent(), plugin(here, devices={str(n): True for n in range(20)}) as one:
            await until_counted(here, 20, 20)
            for number, (says, answer) in enumerate(ANSWERS.items()):
                one.answer, name = answer, f"p{number}"
                await pod(here, "sleep 300", name=name)

                async def is_said(name: str = name, says: str = says) -> bool:
                    waiting = ((await here.state(name)).get("state") or {}).get("waiting") or {}
                    return says in waiting.get("message", "")

                await until(is_said, says)
            one.answer = None
            await pod(here, "echo $GPUS", name="good")
            await here.until_phase("Succeeded", "good")
            for number in range(len(ANSWERS)):
                await here.pods.delete(f"p{number}", NS, grace_period_s=1)
                await here.until_gone(f"p{number}")
            await runs_beside(here)

    tell(play)


class Listing(RawPlugin):
    """Its list is as the story has it."""

    listed: tuple[wire.Device, ...] = ()

    async def _list(self, asked: wire.Empty) -> AsyncIterator[wire.ListAndWatchResponse]:
        yield wire.ListAndWatchResponse(self.listed)
        await asyncio.sleep(3600)


def test_of_an_odd_list_each_device_that_has_a_name_counts_once():
    """And whose health is a word that nobody knows is not healthy."""

    async def play(here: World) -> None:
        one = Listing(here.root)
        one.listed = (
            wire.Device("", wire.HEALTHY),
            wire.Device("a", wire.HEALTHY),
            wire.Device("a", wire.HEALTHY),
            wire.Device("b", "Excellent"),
            wire.Device("c\n" + "é" * 500, wire.HEALTHY),
        )
        async with here.agent():
            await one.start()
            try:
                await until_counted(here, 3, 2)
                await pod(here, "sleep 300", count=2)
                await here.until_phase("Running")
                await runs_beside(here)
            finally:
                await one.stop()

    tell(play)
