"""What a container gets: several devices, several files, several directories."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.wire import cdi
from wire.cdi.specs import EDITS

Edits, Node, Mount = cdi.ContainerEdits, cdi.DeviceNode, cdi.Mount


def test_edits_merge_as_runtimes_merge_them():
    first = Edits(
        env=("A=1", "B=1"),
        device_nodes=(Node("/dev/a", type="c"), Node("/dev/b")),
        mounts=(Mount("/x", "/deep/er/path"), Mount("/y", "/b")),
        hooks=(cdi.Hook("prestart", "/h1"),),
        additional_gids=(5, 0),
        intel_rdt=cdi.IntelRdt("one"),
    )
    second = Edits(
        env=("C=2", "A=2"),
        device_nodes=(Node("/dev/a", type="b"),),
        mounts=(Mount("/z", "/b"), Mount("/w", "/a")),
        hooks=(cdi.Hook("prestart", "/h1"),),
        additional_gids=(6, 5),
        intel_rdt=cdi.IntelRdt("two"),
    )
    assert cdi.merged([first, second]) == Edits(
        env=("A=2", "B=1", "C=2"),
        device_nodes=(Node("/dev/b"), Node("/dev/a", type="b")),
        mounts=(Mount("/z", "/b"), Mount("/w", "/a"), Mount("/x", "/deep/er/path")),
        hooks=(cdi.Hook("prestart", "/h1"),) * 2,
        additional_gids=(5, 6),
        intel_rdt=cdi.IntelRdt("two"),
    )


@settings(max_examples=60)
@given(st.lists(EDITS, max_size=4))
def test_merging_by_steps_is_merging_at_once(several):
    at_once = cdi.merged(several)
    by_steps = Edits()
    for one in several:
        by_steps = cdi.merged([by_steps, one])
    assert {*by_steps.env} == {*at_once.env}
    assert {*by_steps.device_nodes} == {*at_once.device_nodes}
    assert {*by_steps.mounts} == {*at_once.mounts}
    assert by_steps.hooks == at_once.hooks
    assert cdi.merged([at_once]) == at_once


def spec(*names, everywhere=(), kind="vendor.com/gpu"):
    devices = tuple(cdi.Device(name, Edits(env=(f"D_{name}={name}",))) for name in names)
    return cdi.Spec("0.3.0", kind, devices, Edits(env=everywhere))


def write(directory, name, one):
    cdi.SpecDirectory(directory).write(name, one)


def test_a_file_s_own_edits_come_once_before_those_of_its_devices(tmp_path):
    write(tmp_path, "gpu.json", spec("a", "b", everywhere=("ALL=1",)))
    write(tmp_path, "nic.json", spec("n", everywhere=("NIC=1",), kind="vendor.com/nic"))
    names = ["vendor.com/gpu=b", "vendor.com/nic=n", "vendor.com/gpu=a", "vendor.com/gpu=b"]
    edits = cdi.catalogue([tmp_path]).edits(names)
    assert edits.env == ("ALL=1", "D_b=b", "NIC=1", "D_n=n", "D_a=a")


def test_the_later_directory_wins(tmp_path):
    write(tmp_path / "etc", "gpu.json", spec("a", everywhere=("FROM=etc",)))
    write(tmp_path / "run", "gpu.json", spec("a", everywhere=("FROM=run",)))
    found = cdi.catalogue([tmp_path / "etc", tmp_path / "run", tmp_path / "none"])
    assert found.edits(["vendor.com/gpu=a"]).env[0] == "FROM=run"


def test_a_device_in_two_files_of_one_directory_is_nobodys(tmp_path):
    write(tmp_path, "one.json", spec("a", "b"))
    write(tmp_path, "two.json", spec("a"))
    found = cdi.catalogue([tmp_path])
    assert found.edits(["vendor.com/gpu=b"]).env == ("D_b=b",)
    with pytest.raises(
        cdi.Unresolvable, match=r"unresolvable CDI devices vendor.com/gpu=a .*one.json and .*two.json"
    ):
        found.edits(["vendor.com/gpu=a"])


def test_a_later_directory_settles_what_two_files_of_an_earlier_one_dispute(tmp_path):
    write(tmp_path / "etc", "one.json", spec("a"))
    write(tmp_path / "etc", "two.json", spec("a"))
    write(tmp_path / "run", "three.json", spec("a", everywhere=("FROM=run",)))
    found = cdi.catalogue([tmp_path / "etc", tmp_path / "run"])
    assert "FROM=run" in found.edits(["vendor.com/gpu=a"]).env


def test_what_is_no_file_is_not_waited_for(tmp_path):
    write(tmp_path, "good.json", spec("a"))
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "round.json").symlink_to("round.json")
    (tmp_path / "gone.json").symlink_to("nothing")
    (tmp_path / "folder.json").mkdir()
    found = cdi.catalogue([tmp_path])
    assert found.edits(["vendor.com/gpu=a"]).env == ("D_a=a",)
    names = {path.name for path in found.faults}
    assert names == {"pipe.json", "zero.json", "round.json", "folder.json"}


def test_a_broken_file_hurts_itself_and_is_named(tmp_path):
    write(tmp_path, "good.json", spec("a"))
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / ".half.json").write_text("{")
    (tmp_path / "readme.txt").write_text("not ours")
    found = cdi.catalogue([tmp_path])
    assert found.edits(["vendor.com/gpu=a"]).env == ("D_a=a",)
    assert [path.name for path in found.faults] == ["bad.json"]
    with pytest.raises(
        cdi.Unresolvable, match=r"vendor.com/gpu=x, vendor.com/gpu=y .*bad\.json"
    ) as unresolved:
        found.edits(["vendor.com/gpu=x", "vendor.com/gpu=a", "vendor.com/gpu=y"])
    assert unresolved.value.devices == ("vendor.com/gpu=x", "vendor.com/gpu=y")


def test_what_a_file_asks_for_with_any_of_its_devices_comes_once(tmp_path):
    """Its hooks would run once for each of them."""
    hook = cdi.Hook("createRuntime", "/bin/true")
    devices = (cdi.Device("0", Edits(env=("A=0",))), cdi.Device("1", Edits(env=("B=1",))))
    write(tmp_path, "vendor.json", cdi.Spec("0.5.0", "vendor.com/gpu", devices, Edits(hooks=(hook,))))
    found = cdi.catalogue([tmp_path]).edits(["vendor.com/gpu=0", "vendor.com/gpu=1", "vendor.com/gpu=0"])
    assert found.hooks == (hook,)
    assert found.env == ("A=0", "B=1")
