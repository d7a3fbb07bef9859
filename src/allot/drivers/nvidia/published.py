"""What the API is told of GPUs: attributes and capacities under the names of NVIDIA's own DRA driver. Pure.

A GPU is one device. In MIG mode it is many: each profile at each place where it fits is a device, which takes
counters of its GPU (memory slices, multiprocessors, engines), so that the scheduler hands out only what
fits together. The GPU as a whole cannot be had then.

Whatever is wrong with a GPU is a taint of all its devices: nothing new is put there after a critical error
(XID), and nothing stays on a GPU that is lost.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from allot.driver import Device, Pool, Taint, Version

from .inventory import Gpu, Inventory, Placement, Profile, semantic

DRIVER: Final = "gpu.nvidia.com"
PCI_BUS, PCIE_ROOT, NUMA = (f"resource.kubernetes.io/{name}" for name in ("pciBusID", "pcieRoot", "numaNode"))
_AMOUNTS: Final = {
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy_engines",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "jpeg_engines",
    "ofaEngines": "ofa_engines",
}
"""Capacity -> field of a profile."""


class Partition(NamedTuple):
    """A profile at a place of a GPU."""

    gpu: Gpu
    profile: Profile
    placement: Placement

    @property
    def name(self) -> str:
        return f"{self.gpu.name}-mig-{_label(self.profile.name)}-{self.profile.id}-{self.placement.start}"


def pool(inventory: Inventory, node: str, taints: Mapping[str, Taint]) -> Pool:
    """`taints` are those of GPUs, by uuid."""
    devices = [
        device
        for gpu in inventory.gpus
        for device in _devices(inventory, gpu, (taints[gpu.uuid],) if gpu.uuid in taints else ())
    ]
    return Pool(
        node, devices, {_counter_set(gpu): _total(gpu) for gpu in inventory.gpus if gpu.mig and gpu.profiles}
    )


def partitions(gpu: Gpu) -> Iterator[Partition]:
    for profile in gpu.profiles:
        for placement in profile.placements:
            yield Partition(gpu, profile, placement)


def _devices(inventory: Inventory, gpu: Gpu, taints: tuple[Taint, ...]) -> Iterator[Device]:
    if not gpu.mig:
        yield Device(
            gpu.name,
            {"type": "gpu", "uuid": gpu.uuid, **_about(inventory, gpu)},
            {"memory": str(gpu.memory_bytes)},
            taints=taints,
        )
        return
    for one in partitions(gpu):
        yield Device(
            one.name,
            {"type": "mig", "profile": one.profile.name, "parentUUID": gpu.uuid, **_about(inventory, gpu)},
            _capacity(one.profile),
            {_counter_set(gpu): {**_counters(one.profile), **_slices(one.placement)}},
            taints=taints,
        )


def _about(inventory: Inventory, gpu: Gpu) -> dict[str, bool | int | str]:
    return {
        "index": gpu.index,
        "minor": gpu.minor,
        "productName": gpu.product_name,
        "brand": gpu.brand,
        "architecture": gpu.architecture,
        "cudaComputeCapability": Version(semantic(gpu.compute_capability)),
        "driverVersion": Version(semantic(inventory.driver_version)),
        "cudaDriverVersion": Version(semantic(inventory.cuda_version)),
        PCI_BUS: gpu.pci_bus_id,
        **({PCIE_ROOT: gpu.pcie_root} if gpu.pcie_root else {}),
        **({NUMA: gpu.numa_node} if gpu.numa_node is not None else {}),
    }


def _capacity(profile: Profile) -> dict[str, str]:
    amounts = {name: str(getattr(profile, field)) for name, field in _AMOUNTS.items()}
    return {"memory": f"{profile.memory_mib}Mi", **amounts}


def _counters(profile: Profile) -> dict[str, str]:
    """Counters are named with dashes, capacities are not."""
    return {_dashed(name): amount for name, amount in _capacity(profile).items()}


def _total(gpu: Gpu) -> dict[str, str]:
    """All that can be taken together: of each kind what the largest partition has, or many small ones."""
    counters = {
        _dashed(name): str(max(getattr(one, field) * one.instances for one in gpu.profiles))
        for name, field in _AMOUNTS.items()
    }
    memory = max(one.memory_mib * one.instances for one in gpu.profiles)
    ends = [place.start + place.size for one in gpu.profiles for place in one.placements]
    return {"memory": f"{memory}Mi", **counters, **_slices(Placement(0, max(ends, default=0)))}


def _slices(placement: Placement) -> dict[str, str]:
    return {f"memory-slice-{at}": "1" for at in range(placement.start, placement.start + placement.size)}


def _counter_set(gpu: Gpu) -> str:
    return f"{gpu.name}-counter-set"


def _dashed(name: str) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


def _label(profile: str) -> str:
    """1g.18gb+me as part of a device's name."""
    return profile.replace(".", "").replace("+", "-").replace("_", "-").lower()
