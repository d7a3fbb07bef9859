"""What lies on disk of each attempt, and what a shepherd does with what a killed one left (HERD3)."""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import hooks, processes

STARTING, STARTED, ENDED = "starting.json", "started.json", "ended.json"
UNSEEN = 137
_RESERVED = 256  # bytes, for the record of an end


def begun(
    pid: int, wanted: Mapping[str, Any], cgroups: Mapping[str, Path], *, is_wrapped: bool
) -> dict[str, Any]:
    """What is known of an attempt from the moment in which its first process is there. `is_wrapped`: that is
    one of ours, which waits for the command, and not the command itself."""
    return {
        "pid": pid,
        "ticks": processes.ticks(pid),
        "boot": processes.boot(),
        "started_at": time.time(),
        "is_wrapped": is_wrapped,
        "crashes": wanted["crashes"],
        "poststop": wanted["hooks"].get("poststop", []),
        "annotations": wanted["annotations"],
        "cgroups": {controller: str(path) for controller, path in cgroups.items()},
    }


def ended(code: int, reason: str = "") -> dict[str, Any]:
    return {"exit_code": code, "finished_at": time.time(), "reason": reason}


def write(path: Path, content: dict[str, Any]) -> None:
    """Whole or not at all; durable enough: after a power failure nothing runs that it could tell of."""
    temporary = path.with_suffix(".new")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        os.write(file, json.dumps(content).encode().ljust(_RESERVED))  # over what was reserved, if it was
    finally:
        os.close(file)
    temporary.replace(path)


def reserve(path: Path) -> None:
    """Take the room that `write` will need. Raises OSError."""
    path.with_suffix(".new").write_bytes(b" " * _RESERVED)


def forget(directory: Path) -> None:
    """What never ran leaves no trace."""
    shutil.rmtree(directory, ignore_errors=True)
    for above in (directory.parent, directory.parent.parent):
        with contextlib.suppress(OSError):
            above.rmdir()


def end_what_is_left(root: Path) -> None:
    """HERD3."""
    for starting in root.glob(f"*/*/*/{STARTING}"):
        if (starting.parent / STARTED).exists():
            continue
        _end(json.loads(starting.read_text()), starting.parent)
        forget(starting.parent)  # its command did not run
    for started in root.glob(f"*/*/*/{STARTED}"):
        if (started.parent / ENDED).exists():
            continue
        _end(json.loads(started.read_text()), started.parent)
        with contextlib.suppress(OSError):  # HERD4: the next one tries again
            write(started.parent / ENDED, ended(UNSEEN))


def _end(known: dict[str, Any], directory: Path) -> None:
    """Where it has a namespace of processes the first one takes all others along."""
    if known["boot"] == processes.boot() and processes.ticks(known["pid"]) == known["ticks"]:
        for pid in [*processes.descendants(known["pid"]), known["pid"]]:
            processes.kill(pid)
    state = hooks.State(directory.parent.parent.name, directory, known["pid"], known.get("annotations") or {})
    hooks.run_all(known.get("poststop") or [], state.at("stopped"))
