"""The cores of this machine, and how containers are kept to theirs (`pinning`, as a CDI hook)."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from allot.driver import Hook

from . import pinning
from .topology import Core, listed, written

SYSTEM: Final = Path("/sys/devices/system")


def cores(system: Path = SYSTEM) -> tuple[Core, ...]:
    """Those that this process may run on."""
    ours, nodes = os.sched_getaffinity(0), _nodes(system / "node")
    found: dict[tuple[int, ...], Core] = {}
    for cpu in sorted(ours):
        own = system / "cpu" / f"cpu{cpu}"
        threads = listed(_text(own / "topology/thread_siblings_list")) or (cpu,)
        if ours.issuperset(threads):
            socket = int(_text(own / "topology/physical_package_id") or 0)
            found[threads] = Core(threads, max(0, socket), nodes.get(cpu, 0), _cache(own / "cache"))
    return tuple(found.values())


class Pins:
    """What keeps containers to their CPUs."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes

    def hook(self, cpus: Sequence[int]) -> Hook:
        self._notes.mkdir(parents=True, exist_ok=True, mode=0o700)
        words = (sys.executable, "-I", "-S", str(pinning.__file__), str(self._notes), written(cpus))
        return Hook("createRuntime", sys.executable, words, timeout=30)

    def sweep(self) -> None:
        """What ended containers have left."""
        pinning.sweep(str(self._notes))


def _nodes(system: Path) -> dict[int, int]:
    """The NUMA node of each CPU."""
    return {
        cpu: int(path.parent.name.removeprefix("node"))
        for path in system.glob("node[0-9]*/cpulist")
        for cpu in listed(_text(path))
    }


def _cache(system: Path) -> int | None:
    """The number of the third level: its own, or that of the first CPU that shares it."""
    for index in sorted(system.glob("index*")):
        if _text(index / "level") == "3":
            number = _text(index / "id") or str(listed(_text(index / "shared_cpu_list"))[0])
            return int(number)
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
