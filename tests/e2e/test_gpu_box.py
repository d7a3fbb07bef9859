"""One box with a GPU, by its recording: it is one pod's at a time, and nobody's while it is in trouble."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from allot.drivers import nvidia
from allot.drivers.nvidia.inventory import Node
from drivers.gpus import h200
from e2e.box import Box
from e2e.test_here import phase, until

CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  extendedResourceName: nvidia.com/gpu
  selectors: [{cel: {expression: 'device.driver == "gpu.nvidia.com"'}}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: none
    command: [sh, -c, 'echo $DEVICE_GPU_0 $NVIDIA_VISIBLE_DEVICES; head -c 4 /dev/full | wc -c; sleep 600']
    resources: {limits: {nvidia.com/gpu: 1}}
"""


class GpuBox(Box):
    def __init__(self, folder: Path) -> None:
        self.events = folder / "events"
        super().__init__(folder, "nvidia", "--replay", str(_recorded(folder)), "--events", str(self.events))
        self.apply(CLASS)

    def taints(self) -> list[tuple[str, str]]:
        found = [taint for one in self.devices() for taint in one.get("taints", ())]
        return [(taint["key"], taint["effect"]) for taint in found]

    def tell(self, line: str) -> None:
        with self.events.open("a") as file:
            file.write(f"{line}\n")


def _recorded(folder: Path) -> Path:
    """An H200 whose device node and files are such as any machine has."""
    one = os.stat("/dev/full")
    node = Node("/dev/full", os.major(one.st_rdev), os.minor(one.st_rdev))
    whole = h200()
    gpu = replace(whole.gpus[0], node=node)
    path = folder / "gpus.json"
    path.write_bytes(
        nvidia.encoded(replace(whole, gpus=(gpu,), control_nodes=(), libraries=("/bin/sh",), programs=()))
    )
    return path


@pytest.fixture
def box() -> Iterator[GpuBox]:
    folder = Path(tempfile.mkdtemp(prefix="up"))  # short: sockets lie below it
    made = GpuBox(folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


def test_the_gpu_is_one_pods_at_a_time_and_nobodys_while_it_is_in_trouble(box):
    box.apply(POD.replace("NAME", "first"))
    box.is_at("first", "Running")
    until(lambda: box.kubectl("logs", "first").count("\n") == 2, "it has printed")
    assert box.kubectl("logs", "first").split() == ["gpu.nvidia.com/agent-0/gpu-0", "void", "4"]
    box.apply(POD.replace("NAME", "second"))
    assert box.waits("second").endswith("wants 1, and of 1 device 1 in use.")
    box.tell("gpu-0 xid 79")
    until(lambda: box.taints() == [("gpu.nvidia.com/xid", "NoSchedule")], "it is tainted")
    assert phase(box.kubectl, "first") == "Running", "what runs goes on after an error"
    box.kubectl("delete", "pod", "first", "--grace-period=1")
    assert phase(box.kubectl, "second") == "Pending"
    box.tell("gpu-0 well")
    box.is_at("second", "Running")
    box.tell("gpu-0 lost")
    gone = "--ignore-not-found"
    until(lambda: not box.kubectl("get", "pod", "second", gone), "nothing stays on a GPU that is lost")
