"""Keep a container to its CPUs: a CDI hook, run as a file.

    pinning.py NOTES CPUS        the state of a container on stdin

A container runtime runs it when a container's first process is there, in its cgroup, and its program is
not (createRuntime). The CPUs are written to the cpuset of that cgroup. Where it has none of its own, as for
a plain user, the process is told its affinity, which all that it begins inherits, and could change.

A container that has CPUs of several claims meets this once for each: what was said before is noted, by the
container's first process, and all of it is written. CDI has no field for CPUs, and those that a runtime is
told beside CDI are the kubelet's to say. Only the standard library: a container waits for this.
"""

import contextlib
import json
import os
import sys
from typing import Any

ROOT = "/sys/fs/cgroup"


def main(words: list[str]) -> int:
    notes, cpus = words
    state = json.load(sys.stdin)
    try:
        pin(notes, int(state["pid"]), _listed(cpus))
    except OSError as wrong:
        print(f"CPUs {cpus} cannot be given to container {state['id']}: {wrong}", file=sys.stderr)
        return 1
    return 0


def pin(notes: str, pid: int, cpus: set[int]) -> None:
    """Raises OSError."""
    began = ticks(pid)
    note = os.path.join(notes, f"{pid}-{began}.json")
    wanted = cpus | set(_read(note).get("cpus", ()))
    group = _own(pid)
    if group:
        _put(f"{group}/cpuset.cpus", ",".join(map(str, sorted(wanted))))
    else:
        os.sched_setaffinity(pid, wanted)
    temporary = f"{note}.{os.getpid()}"
    with open(temporary, "w") as file:
        json.dump({"cpus": sorted(wanted), "pid": pid, "ticks": began}, file)
    os.replace(temporary, note)


def sweep(notes: str) -> None:
    """Notes of containers that have ended."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(notes):
            known = _read(os.path.join(notes, name))
            if not known or ticks(known["pid"]) != known["ticks"]:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(notes, name))


def _own(pid: int) -> str:
    """The cgroup with a cpuset that the process is alone in: what others are in is not the container's."""
    with open(f"/proc/{pid}/cgroup") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for number, controllers, path in lines:
        hierarchy = f"{ROOT}/cpuset" if "cpuset" in controllers.split(",") else ROOT if number == "0" else ""
        group = f"{hierarchy}{path}"
        if hierarchy and os.path.exists(f"{group}/cpuset.cpus"):
            with open(f"{group}/cgroup.procs") as procs:
                if procs.read().split() == [str(pid)]:
                    return group
    return ""


def ticks(pid: int) -> int | None:
    """When the process began, by the kernel: a pid alone may be somebody else's by now."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except OSError:
        return None


def _listed(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _read(note: str) -> dict[str, Any]:
    try:
        with open(note) as file:
            return dict(json.load(file))
    except (FileNotFoundError, ValueError):
        return {}


def _put(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
