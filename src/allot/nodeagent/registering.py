"""The Node that stands for this machine. Pure, but for `measured` and `burden`, which look at the machine."""

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import allot
from allot.node import Conditions
from allot.node import awake as node_awake

Fields = dict[str, Any]

PODS_MAX = 110
FEATURES = ("DRAOptionalNodeOperations",)
"""What the scheduler may count on here: a driver is not told what its devices do without (`told`)."""
CONDITIONS: Conditions = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID"),
    "Ready": ("True", "KubeletReady"),
}
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Measured:
    """A machine."""

    cpus: int
    memory_bytes: int
    disk_bytes: int
    architecture: str
    kernel: str
    image: str
    boot_id: str
    machine_id: str


def measured(root: Path) -> Measured:
    release = _read("/etc/os-release")
    names = dict(line.partition("=")[::2] for line in release.splitlines() if "=" in line)
    machine = platform.machine()
    return Measured(
        len(os.sched_getaffinity(0)),
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        shutil.disk_usage(root).total,
        _MACHINES.get(machine, machine),
        platform.release(),
        names.get("PRETTY_NAME", "Linux").strip('"'),
        _read("/proc/sys/kernel/random/boot_id"),
        _read("/etc/machine-id"),
    )


class Burden(NamedTuple):
    """What a machine has been used for."""

    cpu_ns: int  # since it began
    memory_bytes: int


def burden() -> Burden:
    """Of this machine, whoever uses it."""
    times = _read("/proc/stat").partition("\n")[0].split()[1:]
    user, nice, system, _, _, *others = (int(one) for one in times[:8])
    ticks = user + nice + system + sum(others)
    sizes = dict(line.partition(":")[::2] for line in _read("/proc/meminfo").splitlines())
    total, free = (int(sizes[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    return Burden(ticks * (10**9 // os.sysconf("SC_CLK_TCK")), (total - free) * 1024)


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def labels(name: str, machine: Measured) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": machine.architecture,
    }


def status(
    known: Mapping[str, Any],
    name: str,
    machine: Measured,
    address: str,
    port: int,
    now: str,
    devices: Mapping[str, Any],
) -> Fields:
    """What a node says of itself when it begins. `known` is the Node that is there; `devices` is what is
    said of those of device plugins."""
    own = {
        "cpu": str(machine.cpus),
        "memory": f"{machine.memory_bytes // 1024}Ki",
        "ephemeral-storage": f"{machine.disk_bytes // 1024}Ki",
        "pods": str(PODS_MAX),
    }
    return {
        **devices,
        "capacity": {**own, **devices.get("capacity", {})},
        "allocatable": {**own, **devices.get("allocatable", {})},
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "architecture": machine.architecture,
            "bootID": machine.boot_id,
            "containerRuntimeVersion": f"process://{allot.__version__}",
            "kernelVersion": machine.kernel,
            "kubeletVersion": f"v1.37.0-allot-{allot.__version__}",
            "kubeProxyVersion": "",
            "machineID": machine.machine_id,
            "operatingSystem": "linux",
            "osImage": machine.image,
            "systemUUID": "",
        },
        "conditions": awake(known, now),
        "declaredFeatures": [*FEATURES],
    }


def awake(node: Mapping[str, Any], now: str) -> list[Fields]:
    return node_awake(node, now, CONDITIONS, "the agent of the node says so")
