"""Which drivers find something on a machine, and what they say who do not."""

import os

import pytest

from allot.driver import NotUsable
from allot.drivers import cpu, finding, loop, net, nvidia
from drivers.gpus import h200


@pytest.fixture
def bare(monkeypatch):
    """A machine without anything, and a plain user on it."""

    def nothing(*arguments):
        raise nvidia.NotThere("no library")

    monkeypatch.setattr(nvidia, "Nvml", nothing)
    monkeypatch.setattr(loop, "LoopDevices", nothing)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(cpu, "cores", lambda: (cpu.Core((0,), 0, 0, None),))


def test_what_is_not_there_is_named_with_the_reason(bare, tmp_path):
    here = finding.found("n", tmp_path)
    assert [one.driver.name for one in here.found] == ["cpu.allot.dev"]
    assert here.sentence == (
        "1 core; without GPUs (no library); without loop devices (no library); "
        "without network interfaces (only root may move network interfaces)"
    )


def test_a_machine_with_nothing_at_all_says_so(bare, tmp_path, monkeypatch):
    def none(*arguments):
        raise NotUsable("none")

    monkeypatch.setitem(finding._LOOKS, "cores", none)
    assert finding.found("n", tmp_path).sentence.startswith("no devices; without GPUs (no library)")


def test_gpus_are_found_and_have_a_class_that_answers_to_the_plugins_name(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(nvidia, "Nvml", lambda: nvidia.Recorded(h200()))
    here = finding.found("n", tmp_path)
    assert here.sentence.startswith("1 GPU (NVIDIA H200), 1 core; without ")
    classes = {one["metadata"]["name"]: one["spec"] for one in finding.classes(here)}
    assert [*classes] == ["gpu.nvidia.com", "mig.nvidia.com", "cpu.allot.dev"]
    assert classes["gpu.nvidia.com"]["extendedResourceName"] == "nvidia.com/gpu"


def test_interfaces_that_are_switched_off_are_found(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(net, "spare", lambda: ("eth1", "eth2"))
    assert "network interfaces eth1, eth2" in finding.found("n", tmp_path).sentence


def test_only_hardware_that_is_switched_off_is_spare(tmp_path, monkeypatch):
    monkeypatch.setattr("allot.drivers.net.interfaces.SYSTEM", tmp_path)
    for name, (flags, state, is_hardware) in {
        "eth0": ("0x1003", "up", True),
        "eth1": ("0x1002", "down", True),
        "eth2": ("0x1003", "down", True),  # switched on, without a cable
        "dummy0": ("0x82", "down", False),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "flags").write_text(flags)
        (tmp_path / name / "operstate").write_text(f"{state}\n")
        if is_hardware:
            (tmp_path / name / "device").mkdir()
    assert net.spare() == ("eth1",)
