"""GPUs that are given away whole, and where they are plugged in.

Devices of one model differ in their place only: two share a PCIe root, four a NUMA node,
as in common servers with eight. There is no serial number among the attributes, so that
whoever allocates sees at once which devices are alike.
"""

from dataclasses import dataclass
from typing import Any

from allot.api import resource

Fields = dict[str, Any]

DRIVER = "gpu.example.com"
DRIVER_VERSION = "570.86.15"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
NUMA_NODE = "resource.kubernetes.io/numaNode"


@dataclass(frozen=True, slots=True)
class GpuModel:
    product: str
    architecture: str
    compute_capability: str
    memory: str


H100 = GpuModel("H100-SXM5-80GB", "Hopper", "9.0.0", "80Gi")
L4 = GpuModel("L4-24GB", "Ada", "8.9.0", "24Gi")


def whole_gpus(node: str, model: GpuModel, count: int) -> resource.pools.Pool:
    devices = [gpu(f"gpu-{at}", model, at, count) for at in range(count)]
    return resource.pools.Pool(DRIVER, node, devices, node=node)


def gpu(name: str, model: GpuModel, at: int, count: int) -> Fields:
    return {
        "name": name,
        "attributes": {"type": {"string": "gpu"}, **described(model), **place(at, count)},
        "capacity": {"memory": {"value": model.memory}},
    }


def described(model: GpuModel) -> Fields:
    return {
        "productName": {"string": model.product},
        "architecture": {"string": model.architecture},
        "cudaComputeCapability": {"version": model.compute_capability},
        "driverVersion": {"version": DRIVER_VERSION},
    }


def place(at: int, count: int) -> Fields:
    """Where the `at`-th of `count` devices is: standard attributes, alike for every driver."""
    root = at * 4 // count if count >= 4 else at
    return {PCIE_ROOT: {"string": f"pci0000:{root * 0x20:02x}"}, NUMA_NODE: {"int": at * 2 // count}}
