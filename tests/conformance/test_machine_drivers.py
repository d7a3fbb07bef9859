"""Drivers of what machines have conform too: GPUs of a recording, real loop devices, interfaces, cores."""

import pytest

import rights
from allot.base import MachineFiles
from allot.drivers import cpu, loop, net, nvidia
from driver.world import NODE
from drivers.gpus import h200, in_mig_mode

from .conforming import not_tried

CORES = [cpu.Core((at,), 0, 0, None) for at in range(8)]
ONE_DEVICE, NO_HEALTH = {"order does not matter"}, {"health reports can be read"}
"""What takes a second device that is certain to fit beside the first, and a driver that tells of health."""


def _gpu(folder):
    return nvidia.driver(nvidia.Recorded(h200()), NODE)


def _mig(folder):
    return nvidia.driver(nvidia.Recorded(in_mig_mode()), NODE)


def _loop(folder):
    return loop.driver(loop.LoopDevices(folder / "files"), 8 * 2**30)


def _net(folder):
    return net.driver(net.MachineInterfaces(folder / "given"), net.Offered(pairs=4))


def _cpu(folder):
    return cpu.driver(CORES, cpu.Pins(folder / "containers"), folder / "claims", MachineFiles())


needs_root = rights.needs_root("only root may make loop devices")


@pytest.mark.parametrize(
    ("make", "left"),
    [
        pytest.param(_gpu, ONE_DEVICE, id="gpu"),
        pytest.param(_mig, ONE_DEVICE, id="mig"),
        pytest.param(_loop, NO_HEALTH, id="loop", marks=needs_root),
        pytest.param(_net, NO_HEALTH, id="net"),
        pytest.param(_cpu, NO_HEALTH, id="cpu"),
    ],
)
def test_a_driver_of_a_machine_conforms(make, left, tmp_path):
    assert not_tried(lambda: make(tmp_path)) == left
