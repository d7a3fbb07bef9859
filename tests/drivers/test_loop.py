"""Loop devices: real ones, where tests run as root; the driver's own decisions anywhere."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

import rights
from allot.cli.main import main
from allot.driver import Node, Places, Surroundings, running
from allot.drivers import loop
from allot.drivers.loop import attaching
from driver.world import NODE, tell, until
from drivers.asking import prepared, unprepared

MIB = 2**20
needs_root = rights.needs_root("only root may make loop devices")


@pytest.fixture
def devices(tmp_path):
    made = loop.LoopDevices(tmp_path / "files")
    yield made
    for file in (tmp_path / "files").glob("*"):
        made.detach(file.name)


@needs_root
def test_a_file_is_a_block_device_of_its_size(devices, tmp_path):
    one = devices.attach("a", 8 * MIB)
    known = os.stat(one.path)
    assert stat.S_ISBLK(known.st_mode)
    assert (os.major(known.st_rdev), os.minor(known.st_rdev)) == (one.major, one.minor)
    assert size(one.path) == 8 * MIB
    with open(one.path, "r+b", buffering=0) as block:
        block.seek(MIB)
        block.write(b"x" * 512)
        os.fsync(block)
    assert (tmp_path / "files/a").read_bytes()[MIB : MIB + 512] == b"x" * 512


@needs_root
def test_the_room_is_taken_when_the_device_is_made(devices, tmp_path):
    """LOOP2: not when it is written to, when nobody could be told any more that the disk is full."""
    devices.attach("a", 8 * MIB)
    assert (tmp_path / "files/a").stat().st_blocks * 512 >= 8 * MIB


@needs_root
def test_asked_for_again_it_is_the_same_device(devices, tmp_path):
    """LOOP1: by whom ever, and wherever the file is by now."""
    one = devices.attach("a", 8 * MIB)
    assert devices.attach("a", 8 * MIB) == one
    (tmp_path / "files").rename(tmp_path / "elsewhere")
    (tmp_path / "files").symlink_to(tmp_path / "elsewhere")
    assert loop.LoopDevices(tmp_path / "files").attach("a", 8 * MIB) == one


@needs_root
def test_neither_device_nor_file_is_left(devices, tmp_path):
    one, other = devices.attach("a", MIB), devices.attach("b", MIB)
    devices.detach("a")
    assert [path.name for path in (tmp_path / "files").iterdir()] == ["b"]
    assert not has_file(Path(one.path), tmp_path / "files/a")
    assert [*attaching._behind(os.stat(tmp_path / "files/b"))] == [Path(other.path)]
    devices.detach("a")


@needs_root
def test_more_than_there_is_cannot_be_had_and_leaves_nothing(devices, tmp_path):
    with pytest.raises(loop.CannotAttach, match="bytes cannot be had: "):
        devices.attach("a", 2**50)
    assert not (tmp_path / "files/a").exists()


@needs_root
def test_what_is_let_go_keeps_its_file_and_what_was_written(devices, tmp_path):
    one = devices.attach("a", MIB)
    with open(one.path, "r+b", buffering=0) as block:
        block.write(b"x" * 512)
        os.fsync(block)
    devices.let_go("a")
    assert not has_file(Path(one.path), tmp_path / "files/a")
    with open(devices.attach("a", MIB).path, "rb") as block:
        assert block.read(512) == b"x" * 512


@needs_root
def test_a_device_whose_file_was_removed_is_let_go_and_nobody_elses(devices, tmp_path, caplog, monkeypatch):
    """LOOP3: of a data directory that was deleted, and with it everybody who knew of the device."""
    monkeypatch.setattr(attaching, "_OURS", b"of this test:")  # a cluster that starts meanwhile is not first
    orphan, kept = devices.attach("a", MIB), devices.attach("b", MIB)
    (tmp_path / "foreign").write_bytes(b"0" * MIB)
    done = ["losetup", "--find", "--show", str(tmp_path / "foreign")]
    foreign = subprocess.run(done, check=True, capture_output=True, text=True).stdout.strip()
    try:
        (tmp_path / "foreign").unlink()
        (tmp_path / "files/a").unlink()
        loop.LoopDevices(tmp_path / "elsewhere").sweep()
        assert not has_file(Path(orphan.path), tmp_path / "files/a")
        assert has_file(Path(kept.path), tmp_path / "files/b")
        assert has_file(Path(foreign), tmp_path / "foreign")
        told = [one.getMessage() for one in caplog.records if str(tmp_path) in one.getMessage()]
        assert told == [f"{orphan.path} is let go: its file {tmp_path / 'files/a'} was removed"]
    finally:
        subprocess.run(["losetup", "--detach", foreign], check=True)


def test_without_a_way_to_loop_devices_the_reason_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(attaching, "CONTROL", tmp_path / "loop-control")
    assert main(["driver", "loop", "--node", "n", "--root", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"allot driver loop: loop devices take {tmp_path}/loop-control: this machine has none\n"
    )


@pytest.mark.parametrize("size", ["", "many", "-1Gi", "100"])
def test_a_size_that_is_none_is_refused(size, capsys):
    with pytest.raises(SystemExit):
        main(["driver", "loop", "--node", "n", f"--size={size}"])
    assert "is not an amount of at least 1Mi" in capsys.readouterr().err


def has_file(device, file):
    backing = Path("/sys/block", device.name, "loop/backing_file")
    return backing.exists() and str(file) in backing.read_text()


def size(path):
    with open(path, "rb", buffering=0) as block:
        return block.seek(0, os.SEEK_END)


# -- the driver -----------------------------------------------------------------------------------


class Pretended:
    """Files that are no devices."""

    def __init__(self):
        self.files = {}

    def attach(self, name, size):
        self.files.setdefault(name, (len(self.files), size))
        return loop.Attached(f"/dev/loop{self.files[name][0]}", 7, self.files[name][0])

    def detach(self, name):
        self.files.pop(name, None)

    def sweep(self):
        pass


def loops(world, volumes):
    driver = loop.driver(volumes, 64 * MIB)
    places = Places(driver.name, world.places.root, world.places.cdi)
    return places, running(driver, Node(NODE), places, Surroundings(world.server.client()))


def test_each_part_of_a_claim_is_a_device_of_its_own():
    volumes = Pretended()

    async def story(world):
        places, driver = loops(world, volumes)
        async with driver:
            await until(world.devices)
            shares = ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"]
            claim = await world.claim(
                "a", "loop", "loop", driver=loop.DRIVER, shares=shares, capacity={"storage": "8Mi"}
            )
            error, edits = await prepared(world, places, claim)
            assert error == ""
            assert [(one.path, one.type, one.permissions) for one in edits.device_nodes] == [
                ("/dev/loop0", "b", "rw"),
                ("/dev/loop1", "b", "rw"),
            ]
            assert {size for _, size in volumes.files.values()} == {8 * MIB}
            assert await unprepared(places, claim) == ""
            assert volumes.files == {}

    tell(story)


def test_a_claim_that_does_not_say_how_much_is_refused():
    async def story(world):
        places, driver = loops(world, Pretended())
        async with driver:
            claim = await world.claim("a", "loop", driver=loop.DRIVER)
            return (await prepared(world, places, claim))[0]

    assert tell(story) == "claim default/a: its allocation does not say how much storage it has"


class DyingVolumes(loop.LoopDevices):
    """Makes a device, and is gone before anybody hears of it."""

    def attach(self, name, size):
        super().attach(name, size)
        raise OSError("killed here")


@needs_root
def test_a_device_of_a_prepare_that_did_not_come_back_is_given_back_too(tmp_path):
    async def story(world):
        places, driver = loops(world, DyingVolumes(tmp_path / "files"))
        share = ["11111111-1111-1111-1111-111111111111"]
        claim = await world.claim("a", "loop", driver=loop.DRIVER, shares=share, capacity={"storage": "8Mi"})
        async with driver:
            error, _ = await prepared(world, places, claim)
            assert error == "killed here"
        (file,) = (tmp_path / "files").iterdir()
        (device,) = attaching._behind(os.stat(file))
        places, again = loops(world, loop.LoopDevices(tmp_path / "files"))
        async with again:
            assert await unprepared(places, claim) == ""
        return file, device

    file, device = tell(story)
    assert not file.exists() and not has_file(device, file)


@needs_root
def test_a_claim_has_a_real_device_until_it_is_given_back(tmp_path):
    async def story(world):
        places, driver = loops(world, loop.LoopDevices(tmp_path / "files"))
        share = ["11111111-1111-1111-1111-111111111111"]
        claim = await world.claim("a", "loop", driver=loop.DRIVER, shares=share, capacity={"storage": "8Mi"})
        async with driver:
            error, edits = await prepared(world, places, claim)
            assert error == ""
        path = edits.device_nodes[0].path
        assert size(path) == 8 * MIB
        assert edits.env == (f"LOOP_DEVICE_R={path}",)
        places, again = loops(world, loop.LoopDevices(tmp_path / "files"))
        async with again:
            assert await unprepared(places, claim) == ""
        assert [*(tmp_path / "files").iterdir()] == []

    tell(story)
