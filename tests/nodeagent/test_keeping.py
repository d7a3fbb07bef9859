"""What an agent keeps on disk, and who asks for it."""

import asyncio
import random
import threading
from pathlib import Path

import pytest

from allot.base import MachineFiles
from allot.node import ClaimRef
from allot.nodeagent.checkpoint import NAME, encode
from allot.nodeagent.keeping import Keeper, Kept
from allot.nodeagent.told import Entry, Part
from allot.sim.disk import Disk


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
