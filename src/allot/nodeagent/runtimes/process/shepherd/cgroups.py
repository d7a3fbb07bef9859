"""Limits and device rules of containers, as far as the machine delegates them: cgroup v1, v2, or both.

Below the group that the shepherd is in there is one of its own, ROOT, and in that one for each container.
Where ROOT is lies on disk before it is there, so that the next shepherd finds what this one left (HERD3).
Should its directory go too, whose next shepherd would have looked there, any other that begins beside it
removes what is empty: the name of ROOT says whose it was.

    v1   a hierarchy for each of cpu, cpuacct, cpuset, memory and devices
    v2   one for all of them; devices are a small program (`devicerules`)
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import devicerules, processes
from .devices import RULES

CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices")
PERIOD_US = 100_000
UNIFIED = ""
_LEAF = "allot-agents"  # where processes go that are in the way of a v2 group with children
_OWN_NAME = re.compile(r"allot-[0-9a-f]{12}-(\d+)-(\d+)-(\d+)")
_PATIENCE_S = 2.0

Writes = list[tuple[str, str, str]]
"""Controller, file, what to write."""


class Group:
    """Of one container."""

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self.directories = directories  # by controller; UNIFIED: v2

    @property
    def joining(self) -> tuple[str, ...]:
        """Files; whoever writes 0 there is in it."""
        return tuple(str(one / "cgroup.procs") for one in self.directories.values())

    @property
    def of_commands(self) -> tuple[str, ...]:
        """Those that the first process of a container is not in: what it takes is not the container's."""
        return tuple(
            str(one / "cgroup.procs")
            for controller, one in self.directories.items()
            if controller == "memory"
        )

    @property
    def was_short_of_memory(self) -> bool:
        """Somebody in it was killed for that."""
        for controller, name in (("memory", "memory.oom_control"), (UNIFIED, "memory.events")):
            if controller in self.directories:
                with contextlib.suppress(OSError, ValueError):
                    words = (self.directories[controller] / name).read_text().split()
                    if int(words[words.index("oom_kill") + 1]) > 0:
                        return True
        return False

    def remove(self) -> None:
        for directory in self.directories.values():
            _remove(directory)


class Cgroups:
    def __init__(self, root: Path) -> None:
        self._note = root / "cgroups.json"
        self._clean_up_after_another()
        self.lacks: dict[str, str] = {}
        bases = _bases()
        for base in bases.values():
            _remove_abandoned(base)
        places = {controller: base / own_name(root) for controller, base in bases.items()}
        self._note.write_text(json.dumps([str(one) for one in places.values()]))
        self._roots: dict[str, Path] = {}
        for controller, place in places.items():
            try:
                self._open(controller, place)
            except OSError as refused:
                for one in CONTROLLERS if controller == UNIFIED else (controller,):
                    self.lacks.setdefault(one, refused.strerror or str(refused))
        self.has = self._found()
        self.lacks = {
            one: self.lacks.get(one, "this machine has no such cgroup")
            for one in CONTROLLERS
            if one not in self.has
        }

    def make(self, name: str, limits: Mapping[str, Any], rules: Sequence[str] | None) -> Group:
        """`rules` for devices beside what everybody may open; None: all may be opened. Raises OSError."""
        made: dict[str, Path] = {}
        group = Group(made)
        try:
            for controller, root in self._roots.items():
                directory = root / name
                directory.mkdir(exist_ok=True)
                made[controller] = directory
                if controller == "cpuset":
                    _inherit_cpuset(directory)
            for controller, file, text in [*v1_writes(limits), *v2_writes(limits)]:
                if controller in made and (made[controller] / file).exists():
                    (made[controller] / file).write_text(text)
            if rules is not None:
                self._restrict(made, [*RULES, *rules])
        except OSError:
            group.remove()
            raise
        return group

    def close(self) -> None:
        for root in self._roots.values():
            _remove_all(root)

    def _restrict(self, made: Mapping[str, Path], rules: Sequence[str]) -> None:
        if "devices" in made:
            (made["devices"] / "devices.deny").write_text("a")
            for rule in rules:
                (made["devices"] / "devices.allow").write_text(rule)
        elif "devices" in self.has:
            devicerules.attach(made[UNIFIED], rules)

    def _open(self, controller: str, place: Path) -> None:
        if controller == UNIFIED:
            _enable(place.parent)
        place.mkdir(exist_ok=True)
        if controller == UNIFIED:
            with contextlib.suppress(OSError):
                _enable(place)
        elif controller == "cpuset":
            _inherit_cpuset(place)
        elif controller == "devices":
            _try_to_deny(place / "trial")
        elif controller == "cpu":  # as much as the machine has, against what runs beside
            (place / "cpu.shares").write_text(str(1024 * (os.cpu_count() or 1)))
        self._roots[controller] = place

    def _found(self) -> set[str]:
        found = {one for one in self._roots if one != UNIFIED}
        if UNIFIED in self._roots:
            given = (self._roots[UNIFIED] / "cgroup.subtree_control").read_text().split()
            found |= {one for one in CONTROLLERS if one in given}
            found |= {"cpuacct"} if "cpu" in given else set()
            if "devices" not in found and devicerules.works(self._roots[UNIFIED]):
                found.add("devices")
        return found

    def _clean_up_after_another(self) -> None:
        with contextlib.suppress(FileNotFoundError, ValueError):
            for root in map(Path, json.loads(self._note.read_text())):
                _remove_all(root)


def own_name(root: Path) -> str:
    """Of what this process makes: for which directory, and who it is."""
    digest = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]
    return f"allot-{digest}-{_numbering()}-{os.getpid()}-{processes.ticks(os.getpid())}"


def _is_abandoned(name: str) -> bool:
    """Made by a process that is no more. Of those that are numbered elsewhere nothing is known here."""
    match = _OWN_NAME.fullmatch(name)
    if match is None:
        return False
    numbering, pid, ticks = map(int, match.groups())
    return numbering == _numbering() and not processes.lives(pid, ticks)


def _numbering() -> int:
    """The namespace that gives processes their numbers."""
    return os.stat("/proc/self/ns/pid").st_ino


def _remove_abandoned(base: Path) -> None:
    for root in base.glob("allot-*/"):
        with contextlib.suppress(OSError):  # another one was quicker
            if _is_abandoned(root.name) and not any(map(_has_processes, (root, *root.glob("*/")))):
                _remove_all(root)


def _has_processes(group: Path) -> bool:
    return bool((group / "cgroup.procs").read_text())


def v1_writes(limits: Mapping[str, Any]) -> Writes:
    found: Writes = []
    if limits["cpu_shares"] is not None:
        found.append(("cpu", "cpu.shares", str(max(2, limits["cpu_shares"]))))
    if limits["cpu_quota_us"] is not None:
        found.append(("cpu", "cpu.cfs_period_us", str(PERIOD_US)))
        found.append(("cpu", "cpu.cfs_quota_us", str(max(1000, limits["cpu_quota_us"]))))
    if limits["memory_bytes"] is not None:
        found.append(("memory", "memory.limit_in_bytes", str(limits["memory_bytes"])))
        found.append(("memory", "memory.memsw.limit_in_bytes", str(limits["memory_bytes"])))
    if limits["cpus"]:
        found.append(("cpuset", "cpuset.cpus", limits["cpus"]))
    return found


def v2_writes(limits: Mapping[str, Any]) -> Writes:
    found: Writes = []
    if limits["cpu_shares"] is not None:
        weight = 1 + (max(2, min(262144, limits["cpu_shares"])) - 2) * 9999 // 262142
        found.append((UNIFIED, "cpu.weight", str(weight)))
    if limits["cpu_quota_us"] is not None:
        found.append((UNIFIED, "cpu.max", f"{max(1000, limits['cpu_quota_us'])} {PERIOD_US}"))
    if limits["memory_bytes"] is not None:
        found.append((UNIFIED, "memory.max", str(limits["memory_bytes"])))
        found.append((UNIFIED, "memory.swap.max", "0"))
    if limits["cpus"]:
        found.append((UNIFIED, "cpuset.cpus", limits["cpus"]))
    return found


def _bases() -> dict[str, Path]:
    """Where this process is, by controller."""
    mounted: dict[str, Path] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            mounted.setdefault(UNIFIED, Path(before.split()[4]))
        elif kind == "cgroup":
            for one in {*options.split(",")} & {*CONTROLLERS}:
                mounted.setdefault(one, Path(before.split()[4]))
    found: dict[str, Path] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            if name in mounted:
                found[name] = mounted[name] / path.lstrip("/")
    return {name: path for name, path in found.items() if path.is_dir()}


def _enable(group: Path) -> None:
    """All controllers of ours that it has, for its children. Raises OSError."""
    wanted = [one for one in (group / "cgroup.controllers").read_text().split() if one in CONTROLLERS]
    for one in wanted:
        try:
            (group / "cgroup.subtree_control").write_text(f"+{one}")
        except OSError as refused:
            if refused.errno != errno.EBUSY:
                raise
            _clear(group)
            (group / "cgroup.subtree_control").write_text(f"+{one}")


def _clear(group: Path) -> None:
    """v2: a group whose children have controllers has no processes itself."""
    leaf = group / _LEAF
    leaf.mkdir(exist_ok=True)
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            (leaf / "cgroup.procs").write_text(pid)


def _inherit_cpuset(directory: Path) -> None:
    """v1: a new one is empty, and takes no process."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not (directory / name).read_text().strip():
            (directory / name).write_text((directory.parent / name).read_text())


def _try_to_deny(trial: Path) -> None:
    """Whoever may make the group may still not be let to do this. Raises OSError."""
    trial.mkdir(exist_ok=True)
    try:
        (trial / "devices.deny").write_text("a")
    finally:
        trial.rmdir()


def _remove_all(root: Path) -> None:
    for below in root.glob("*/"):
        _remove(below)
    _remove(root)


def _remove(directory: Path) -> None:
    """Those in it have been killed, and may take a moment."""
    end_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            directory.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as refused:
            if refused.errno != errno.EBUSY or time.monotonic() > end_s:
                return
        time.sleep(0.005)
