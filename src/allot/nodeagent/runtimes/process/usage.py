"""What a container uses of its machine: by its cgroups, or else by its processes."""

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .shepherd import processes
from .shepherd.cgroups import UNIFIED

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def used(started: Mapping[str, Any], parents: Mapping[int, int]) -> tuple[int, int]:
    """Nanoseconds of processor time, and bytes of memory that could not be had back at once."""
    groups = {name: Path(path) for name, path in (started.get("cgroups") or {}).items()}
    inside = processes.descendants(started["pid"], parents)
    found = _of_processes(inside if started.get("is_wrapped") else [started["pid"], *inside])
    with contextlib.suppress(OSError, KeyError):
        found = _cpu_ns(groups), found[1]
    with contextlib.suppress(OSError, KeyError):
        found = found[0], _memory(groups)
    return found


def _cpu_ns(groups: Mapping[str, Path]) -> int:
    if "cpuacct" in groups:
        return int((groups["cpuacct"] / "cpuacct.usage").read_text())
    return 1000 * _table(groups[UNIFIED] / "cpu.stat")["usage_usec"]


def _memory(groups: Mapping[str, Path]) -> int:
    if "memory" in groups:
        group, whole, idle = groups["memory"], "memory.usage_in_bytes", "total_inactive_file"
    else:
        group, whole, idle = groups[UNIFIED], "memory.current", "inactive_file"
    return max(0, int((group / whole).read_text()) - _table(group / "memory.stat")[idle])


def _table(path: Path) -> dict[str, int]:
    return {name: int(value) for name, value in map(str.split, path.read_text().splitlines())}


def _of_processes(inside: Iterable[int]) -> tuple[int, int]:
    """Of these, and of what has ended below them."""
    cpu_ns = memory = 0
    for one in inside:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            cpu_ns += sum(map(int, words[11:15])) * _TICK_NS
            memory += int(words[21]) * _PAGE
    return cpu_ns, memory
