"""Specs as values and as files: what is written is read, and what runtimes would refuse is refused."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from msgspec.structs import replace

from allot.base import MachineFiles
from allot.wire import cdi
from wire.cdi.specs import SPECS

GPU = cdi.Spec(
    "0.3.0", "vendor.com/gpu", (cdi.Device("gpu0", cdi.ContainerEdits(env=("GPU=0",))),)
)  # fmt: skip

WHOLE = {
    "cdiVersion": "0.7.0",
    "kind": "vendor.com/gpu",
    "annotations": {"a.b/c": "d"},
    "devices": [
        {
            "name": "gpu0",
            "annotations": {"x": "y"},
            "containerEdits": {
                "env": ["A=b"],
                "deviceNodes": [
                    {
                        "path": "/dev/card0",
                        "hostPath": "/dev/vendor/card0",
                        "type": "c",
                        "major": 25,
                        "minor": 26,
                        "fileMode": 384,
                        "permissions": "rw",
                        "uid": 1000,
                        "gid": 1001,
                    }
                ],
                "hooks": [
                    {
                        "hookName": "createContainer",
                        "path": "/bin/vendor-hook",
                        "args": ["vendor-hook", "init"],
                        "env": ["C=d"],
                        "timeout": 5,
                    }
                ],
                "mounts": [
                    {
                        "hostPath": "/usr/lib/libVendor.so.0",
                        "containerPath": "/usr/lib/libVendor.so.0",
                        "options": ["ro", "nosuid"],
                        "type": "bind",
                    }
                ],
                "intelRdt": {
                    "closID": "c",
                    "l3CacheSchema": "L3:0=f",
                    "memBwSchema": "MB:0=10",
                    "enableCMT": True,
                    "enableMBM": True,
                },
                "additionalGids": [5, 6],
            },
        }
    ],
    "containerEdits": {"env": ["FOO=VALID"]},
}
"""Every field that there is, by the names that the specification gives them."""


@settings(max_examples=60)
@given(SPECS)
def test_what_is_written_is_read(spec):
    cdi.check(spec)
    assert cdi.decode(cdi.encode(spec)) == spec
    assert cdi.decode(yaml.safe_dump(json.loads(cdi.encode(spec))), yaml=True) == spec


def test_every_field_has_the_name_that_the_specification_gives_it():
    spec = cdi.decode(json.dumps(WHOLE))
    cdi.check(spec)
    assert json.loads(cdi.encode(spec)) == WHOLE
    edits = spec.devices[0].container_edits
    for value in (spec, spec.devices[0], edits, edits.device_nodes[0], edits.hooks[0], edits.mounts[0]):
        unset = [name for name in value.__struct_fields__ if not getattr(value, name)]
        assert unset == [], f"{type(value).__name__} has fields that this test does not name"
    assert edits.intel_rdt == cdi.IntelRdt("c", "L3:0=f", "MB:0=10", True, True)


def edited(**more):
    return replace(GPU, devices=(cdi.Device("gpu0", cdi.ContainerEdits(**more)),))


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        (GPU, "0.3.0"),
        (edited(mounts=(cdi.Mount("/a", "/b", type="bind"),)), "0.4.0"),
        (edited(device_nodes=(cdi.DeviceNode("/dev/a", host_path="/dev/b"),)), "0.5.0"),
        (replace(GPU, devices=(replace(GPU.devices[0], name="0"),)), "0.5.0"),
        (replace(GPU, annotations={"a": "b"}), "0.6.0"),
        (replace(GPU, devices=(replace(GPU.devices[0], annotations={"a": "b"}),)), "0.6.0"),
        (replace(GPU, kind="vendor.com/gpu.v2"), "0.6.0"),
        (edited(additional_gids=(5,)), "0.7.0"),
        (edited(intel_rdt=cdi.IntelRdt("a")), "0.7.0"),
        (replace(GPU, container_edits=cdi.ContainerEdits(additional_gids=(5,))), "0.7.0"),
    ],
)
def test_a_spec_needs_the_oldest_version_that_has_what_it_uses(spec, version):
    assert cdi.minimum_version(spec) == version
    cdi.check(cdi.with_minimum_version(spec))
    if version > "0.3.0":
        with pytest.raises(cdi.InvalidSpec, match=f"0.3.0 does not have what the spec uses, {version} does"):
            cdi.check(spec)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (replace(GPU, cdi_version="1.1.0"), "cdiVersion: '1.1.0' is not one of"),
        (replace(GPU, cdi_version=""), "cdiVersion: '' is not one of"),
        (replace(GPU, kind="gpu"), "kind: kind 'gpu' is not of the form \"vendor/class\""),
        (replace(GPU, kind="1vendor/gpu"), "kind: vendor '1vendor' must begin with a letter"),
        (replace(GPU, kind="vendor.com/gpu-"), "kind: class 'gpu-' must begin"),
        (
            replace(GPU, devices=GPU.devices * 2),
            r"devices\[1\].name: there are two devices with the name 'gpu0'",
        ),
        (
            replace(GPU, devices=(replace(GPU.devices[0], name="a/b"),)),
            r"devices\[0\].name: device name 'a/b'",
        ),
        (edited(), r"devices\[0\].containerEdits: a device without edits"),
        (edited(env=("A",)), r"devices\[0\].containerEdits.env\[0\]: 'A' is not of the form NAME=VALUE"),
        (edited(env=("=A",)), "is not of the form NAME=VALUE"),
        (edited(device_nodes=(cdi.DeviceNode(""),)), r"deviceNodes\[0\].path: must not be empty"),
        (edited(device_nodes=(cdi.DeviceNode("/a", type="x"),)), "type: 'x' is not one of b, c, u, p"),
        (edited(device_nodes=(cdi.DeviceNode("/a", major=-1),)), "major, minor: -1:0 must not be negative"),
        (edited(device_nodes=(cdi.DeviceNode("/a", permissions="rx"),)), "permissions: 'rx' has more than"),
        (edited(device_nodes=(cdi.DeviceNode("/a", uid=-1),)), "uid: -1 is not between 0 and"),
        (edited(hooks=(cdi.Hook("later", "/a"),)), r"hooks\[0\].hookName: 'later' is not one of"),
        (edited(hooks=(cdi.Hook("prestart", ""),)), r"hooks\[0\].path: must not be empty"),
        (edited(hooks=(cdi.Hook("prestart", "/a", env=("x",)),)), r"hooks\[0\].env\[0\]: 'x'"),
        (edited(hooks=(cdi.Hook("prestart", "/a", timeout=0),)), r"hooks\[0\].timeout: 0 is not above zero"),
        (edited(mounts=(cdi.Mount("", "/b"),)), r"mounts\[0\].hostPath: must not be empty"),
        (edited(mounts=(cdi.Mount("/b", ""),)), r"mounts\[0\].containerPath: must not be empty"),
        (edited(intel_rdt=cdi.IntelRdt("..")), "intelRdt.closID: '..' cannot be the name of a directory"),
        (edited(additional_gids=(2**32,)), r"additionalGids\[0\]: 4294967296 is not between"),
        (replace(GPU, annotations={"a b": ""}), "annotations: 'a b' is not a name for an annotation"),
        (replace(GPU, annotations={"a": "b" * 300_000}), "annotations: 300001 bytes are over the limit"),
    ],
)
def test_a_fault_is_named_with_its_place(spec, fault):
    with pytest.raises(cdi.InvalidSpec, match=fault):
        cdi.check(spec)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "truncated"),
        ('{"cdiVersion": "0.3.0", "kind": "a/b"}', "missing required field `devices`"),
        ('{"cdiVersion": "0.3.0", "kind": "a/b", "devices": [], "more": 1}', "unknown field `more`"),
        ('{"cdiVersion": "0.3.0", "kind": "a/b", "devices": [{"name": 1}]}', r"\$.devices\[0\].name"),
        ('{"cdiVersion": "9.9.9", "kind": "a/b", "devices": []}', "'9.9.9' is not one of"),
    ],
)
def test_a_file_that_is_no_spec_is_refused_with_its_name_and_place(tmp_path, text, words):
    path = tmp_path / "vendor.json"
    path.write_text(text)
    with pytest.raises(cdi.InvalidSpec, match=f"{path}.*{words}"):
        cdi.read_spec(path)


@settings(max_examples=20)
@given(SPECS)
def test_a_directory_gives_back_what_was_written(tmp_path_factory, spec):
    directory = cdi.SpecDirectory(tmp_path_factory.mktemp("cdi") / "made")
    name = cdi.spec_file_name(spec.kind, "claim:1/2")
    assert directory.names() == frozenset() and directory.read(name) is None
    directory.write(name, spec)
    assert directory.names() == {name} and directory.read(name) == spec
    directory.remove(name)
    directory.remove(name)
    assert directory.names() == frozenset()


def test_a_file_of_a_driver_has_the_name_that_other_drivers_would_give_it():
    assert cdi.spec_file_name("vendor.com/gpu", "a:b/c") == "vendor.com-gpu_a-b-c.json"


def test_a_spec_with_a_fault_leaves_the_file_as_it_was(tmp_path):
    directory = cdi.SpecDirectory(tmp_path)
    directory.write("a.json", GPU)
    with pytest.raises(cdi.InvalidSpec, match=r"a\.json: devices\[0\]"):
        directory.write("a.json", edited())
    assert directory.read("a.json") == GPU
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("name", ["../a.json", ".a.json", "a.txt", "a"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="is not a name for a CDI spec"):
        cdi.SpecDirectory(Path(tmp_path)).write(name, GPU)


@pytest.mark.parametrize("name", ["vendor.com/gpu=gpu0", "v/c=0", "v.w/c.d=a:b.c"])
def test_names_of_devices_are_read(name):
    read = cdi.qualified_name(name)
    assert cdi.device_name(read.kind, read.name) == name


@pytest.mark.parametrize(
    "name", ["gpu0", "vendor.com/gpu", "vendor.com=gpu0", "/gpu=0", "v/=0", "v/c=", "v/c=a/"]
)
def test_what_is_no_name_of_a_device_is_refused(name):
    with pytest.raises(ValueError, match="'"):
        cdi.qualified_name(name)


def test_nobody_waits_for_a_disk_that_a_spec_is_written(tmp_path):
    class Counted(MachineFiles):
        synced = 0

        def _sync(self, path):
            self.synced += 1

    files = Counted()
    cdi.SpecDirectory(tmp_path, files).write("a.json", GPU)
    assert cdi.SpecDirectory(tmp_path).read("a.json") == GPU
    assert files.synced == 0
    files.write(tmp_path / "b", b"what has to stay")
    assert files.synced == 2, "the file and its name"
