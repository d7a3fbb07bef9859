"""What an agent keeps on disk, and who asks for it."""

import asyncio
import random
import threading
from pathlib import Path

import pytest

from allot.api import Object
from allot.api import encode as encoded
from allot.base import MachineFiles, SystemClock
from allot.node import ClaimRef
from allot.nodeagent.checkpoint import NAME, encode
from allot.nodeagent.deviceplugins import checkpoint as of_plugins
from allot.nodeagent.deviceplugins.lending import remembered
from allot.nodeagent.keeping import Keeper, Kept
from allot.nodeagent.pods import Pods
from allot.nodeagent.starting import Place
from allot.nodeagent.told import Entry, Part
from allot.sim.disk import Disk
from allot.sim.faults import Fenced
from sim.test_disk import STEPS, Doomed


class SlowFiles(MachineFiles):
    """Whose first write waits to be let go."""

    def __init__(self) -> None:
        self.began, self.may_go_on = threading.Event(), threading.Event()

    def write(self, path: Path, content: bytes, *, durable: bool = True) -> None:
        if not self.began.is_set():
            self.began.set()
            assert self.may_go_on.wait(30)
        super().write(path, content, durable=durable)


def test_a_write_that_nobody_waits_for_any_more_is_over_before_the_next(tmp_path):
    """Else the older content might come to lie over the newer."""

    async def story() -> None:
        files, content = SlowFiles(), [b"old"]
        kept = Kept(tmp_path / "kept", files, lambda: content[0])
        first = asyncio.create_task(kept.keep())
        await asyncio.to_thread(files.began.wait, 30)
        first.cancel()
        content[0] = b"new"
        second = asyncio.create_task(kept.keep())
        done, _ = await asyncio.wait((first, second), timeout=0.2)
        assert not done
        files.may_go_on.set()
        await second
        assert (tmp_path / "kept").read_bytes() == b"new"
        assert first.cancelled()

    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.parametrize("seed", range(8))
def test_what_an_agent_begins_with_outlasts_a_power_cut(seed):
    """N8: an agent was killed after its last claim had been unprepared, before that was certain on disk; the
    next one saw a claim less, let the pod's files go, and after a power cut the claim was there again."""
    root, disk = Path("/var/lib/agent"), Disk()
    used = Entry(ClaimRef("uid", "default", "claim"), {"gpu.example.com": Part()}, frozenset({"pod"}))
    disk.process().write(root / NAME, encode([used]))
    disk.process().write(root / NAME, encode([]), durable=False)
    assert Keeper(root, disk.process()).told.entries == ()
    disk.cut_power(random.Random(seed))
    assert Keeper(root, disk.process()).told.entries == ()


@pytest.mark.parametrize("steps", range(STEPS + 1))
@pytest.mark.parametrize("seed", range(8))
def test_a_pod_that_an_agent_begins_with_outlasts_a_power_cut(steps, seed):
    """N8: an agent was killed while it wrote the pod down, and the next one relied on that and ran it. After
    a power cut nobody knew the pod, and the runtime's record of its container stayed for ever."""
    disk, pod = Disk(), Object(encoded({"metadata": {"name": "p", "uid": "uid"}}))

    def pods_of(files) -> Pods:
        return Pods(Place(Path("/var/lib/agent"), (), "127.0.0.1", files), SystemClock())

    doomed = pods_of(disk.process())
    doomed._place = Place(Path("/var/lib/agent"), (), "127.0.0.1", Doomed(disk, steps).files)
    try:
        asyncio.run(doomed.keep(pod))
    except Fenced:
        assert steps < STEPS
    begun_with = [one.uid for one in asyncio.run(pods_of(disk.process()).kept())]
    disk.cut_power(random.Random(seed))
    assert [one.uid for one in asyncio.run(pods_of(disk.process()).kept())] == begun_with
    assert begun_with == (["uid"] if steps >= STEPS - 1 else [])


@pytest.mark.parametrize("seed", range(8))
def test_what_plugins_lent_before_an_agent_began_outlasts_a_power_cut(seed):
    directory, disk = Path("/var/lib/agent/device-plugins"), Disk()
    disk.process().write(directory / of_plugins.NAME, of_plugins.encode((), ["example.com/old"]))
    later = of_plugins.encode((), ["example.com/new"])
    disk.process().write(directory / of_plugins.NAME, later, durable=False)
    assert remembered(directory, disk.process()).resources == ("example.com/new",)
    disk.cut_power(random.Random(seed))
    assert remembered(directory, disk.process()).resources == ("example.com/new",)
