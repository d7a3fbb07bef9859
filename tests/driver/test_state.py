"""What a driver keeps on disk, on a disk that loses what was not synced."""

import asyncio
import contextlib
import random
from pathlib import Path

import pytest

from allot.driver import Entry
from allot.driver.state import FILE, State
from allot.sim.disk import Disk
from allot.sim.faults import Fenced

DATA = Path("/var/lib/kubelet/plugins/gpu.example.com")
ENTRY = Entry("uid", "default", "claim", (), "boot")
STEPS = 12  # more than there are until the entry is written


async def put(state):
    async with state.alone():
        await state.put([ENTRY])


async def known(state):
    async with state.alone():
        return dict(state.entries)


@pytest.mark.parametrize("steps", range(STEPS))
def test_what_a_driver_goes_by_is_certain_to_stay_whenever_the_one_before_it_died(steps):
    """A driver was killed after it had renamed its file and before that was synced. The next one answered
    by the file, which could still be lost with the power (STATE2)."""
    disk, left = Disk(), steps
    asyncio.run(put(State(DATA, "boot", disk.process())))  # once, so that there is a file before

    def touched():
        nonlocal left
        left -= 1
        if left < 0:
            doomed.kill()

    doomed = disk.process(touched)

    async def written(state):
        async with state.alone():
            await state.put([Entry("other", "default", "other", (), "boot")])

    with contextlib.suppress(Fenced, asyncio.CancelledError):
        asyncio.run(written(State(DATA, "boot", doomed)))
    doomed.kill()
    entries = asyncio.run(known(State(DATA, "boot", disk.process())))
    assert ENTRY.uid in entries
    for seed in range(4):
        later = Disk()
        later.names, later.kept = dict(disk.names), dict(disk.kept)
        later.cut_power(random.Random(seed))
        assert asyncio.run(known(State(DATA, "boot", later.process()))) == entries, FILE
