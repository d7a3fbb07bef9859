"""A disk that loses what was not synced, and a way of writing files that loses nothing."""

import random
from pathlib import Path

import pytest

from allot.base import HeldByAnother, MachineFiles
from allot.sim.disk import Disk
from allot.sim.faults import Fenced

ROOT, MEMORY = Path("/var/lib/x"), Path("/run/x")
FILE = ROOT / "checkpoint"
STEPS = 5  # of a write: clear the way, put, sync, rename, sync


class Doomed:
    """A process that dies before its next-but-so-many step."""

    def __init__(self, disk, steps):
        self.left = steps
        self.files = disk.process(self.touched)

    def touched(self):
        self.left -= 1
        if self.left < 0:
            self.files.kill()


def whole(disk):
    return disk.process().read(FILE)


def test_files_of_a_made_up_machine_are_used_as_those_of_a_real_one(tmp_path):
    for files, root in ((Disk().process(), ROOT), (MachineFiles(), tmp_path)):
        path = root / "d" / "a"
        assert files.read(path) is None and files.stamp(path) is None and files.names(path.parent) == ()
        files.make_directory(path.parent)
        files.write(path, b"one")
        first = files.stamp(path)
        files.write(path, b"two")
        assert files.stamp(path) != first
        assert (files.read(path), files.read(path, 2), files.names(path.parent)) == (b"two", b"tw", ("a",))
        lock = files.lock(root / "d" / "lock")
        with pytest.raises(HeldByAnother):
            files.lock(root / "d" / "lock")
        lock.release()
        files.lock(root / "d" / "lock").release()
        files.remove(path)
        files.remove(path)
        assert files.read(path) is None


@pytest.mark.parametrize("steps", range(STEPS))
@pytest.mark.parametrize("seed", range(8))
def test_a_file_is_whole_whenever_its_writer_dies_and_the_power_goes(steps, seed):
    disk = Disk()
    disk.process().write(FILE, b"what was there")
    with pytest.raises(Fenced):
        Doomed(disk, steps).files.write(FILE, b"what is written")
    assert whole(disk) in (b"what was there", b"what is written")
    disk.cut_power(random.Random(seed))
    assert whole(disk) in (b"what was there", b"what is written")
    disk.process().write(FILE, b"and again")
    assert whole(disk) == b"and again"


def test_what_was_written_stays_when_the_power_goes():
    for seed in range(8):
        disk = Disk()
        disk.process().write(FILE, b"content")
        assert disk.durable(FILE) == b"content"
        disk.cut_power(random.Random(seed))
        assert whole(disk) == b"content"


@pytest.mark.parametrize("forgotten", ["content", "names"])
def test_what_was_not_synced_is_lost_or_torn(forgotten):
    """Else a program that forgets to would never be found out."""

    class Forgets(type(Disk().process())):
        def _sync(self, path):
            if (path == ROOT) != (forgotten == "names"):
                super()._sync(path)

    found = set()
    for seed in range(40):
        disk = Disk()
        disk.process().write(FILE, b"old")
        Forgets(disk, lambda: None).write(FILE, b"what is new")
        disk.cut_power(random.Random(seed))
        found.add(whole(disk))
    if forgotten == "names":
        assert found == {b"old", b"what is new"}
    else:
        assert len(found) > 2 and all(b"what is new".startswith(one) for one in found)


def test_a_reboot_empties_directories_in_memory_and_a_death_does_not():
    disk = Disk([MEMORY])
    process = disk.process()
    process.write(MEMORY / "spec.json", b"{}")
    process.kill()
    assert disk.process().read(MEMORY / "spec.json") == b"{}"
    disk.cut_power(random.Random(1))
    assert disk.process().names(MEMORY) == ()


def test_a_dead_process_writes_nothing_and_holds_no_lock():
    disk = Disk()
    process = disk.process()
    process.lock(ROOT / "lock")
    process.kill()
    with pytest.raises(Fenced):
        process.write(FILE, b"")
    disk.process().lock(ROOT / "lock").release()
