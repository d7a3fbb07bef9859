"""Components that use a machine die with everything they have there, at any step."""

import asyncio
from pathlib import Path

from allot.sim.component import Component
from allot.sim.disk import Disk
from allot.sim.faults import Faults
from allot.sim.journal import Journal
from allot.sim.loop import run
from allot.sim.lots import Lots

FILE = Path("/d/file")


def component(main):
    faults = Faults(Lots(1), Journal(lambda: 0.0), compact=None)
    return Component("agent", main, lambda user: None, faults)


def test_a_doomed_component_dies_between_two_steps_of_a_write():
    """And what it left running dies with it, though nobody waits for that."""

    async def story(steps):
        disk, strays = Disk(), []

        async def stray():
            while True:
                await asyncio.sleep(1)
                strays.append(asyncio.get_running_loop().time())

        async def main(connect):
            files = disk.process(me.touched)
            me.at_kill(files.kill)
            kept.append(asyncio.ensure_future(stray()))
            number = 0
            while True:
                await asyncio.sleep(1)
                await asyncio.to_thread(files.write, FILE, b"%d" % number)
                number += 1

        kept: list = []
        me = component(main)
        me.start()
        await asyncio.sleep(10.5)
        await me.kill_at_work(steps, 0, 60)
        content, before = disk.process().read(FILE), len(strays)
        await asyncio.sleep(30)
        assert disk.process().read(FILE) == content and len(strays) == before
        assert not me.failures and not me.runs
        return content, sorted(path.name for path in disk.names)

    outcomes = [run(story(steps)) for steps in range(1, 6)]
    assert {content for content, _ in outcomes} == {b"9", b"10"}
    assert any(len(names) > 1 for _, names in outcomes), "somewhere half a write is left"


def test_a_component_whose_machine_is_off_does_not_start():
    async def story():
        async def main(connect):
            await asyncio.Event().wait()

        me = component(main)
        me.start()
        me.unplug("power")
        await me.kill()
        me.unplug("away")
        me.start()
        me.release("power")
        assert not me.runs
        me.release("away")
        assert me.runs and me.starts == 2
        me.start()
        assert me.starts == 2, "once is enough"
        await me.stop()

    run(story())
