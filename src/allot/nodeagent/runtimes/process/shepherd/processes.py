"""What the system knows of processes."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_HARMLESS = {signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT}
_STOPPING = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_DEAD = ("Z", "X")
_UNAVOIDABLE = {signal.SIGKILL, signal.SIGSTOP}


def ticks(pid: int) -> int | None:
    """When the process began, by the kernel: a pid alone may be somebody else's by now."""
    words = _words(pid)
    return int(words[19]) if words else None


def lives(pid: int, began: int) -> bool:
    """The process that began then. One that nobody has waited for yet does not."""
    words = _words(pid)
    return bool(words) and int(words[19]) == began and words[0] not in _DEAD


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


@cache
def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def children() -> set[int]:
    own = os.getpid()
    try:
        return set(map(int, Path(f"/proc/{own}/task/{own}/children").read_text().split()))
    except FileNotFoundError:  # a kernel that does not tell
        return {pid for pid, parent in parents().items() if parent == own}


def descendants(pid: int, known: Mapping[int, int] | None = None) -> list[int]:
    below = known if known is not None else parents()
    found = [pid]
    for one in found:
        found += [child for child, parent in below.items() if parent == one]
    return found[1:]


def parents() -> dict[int, int]:
    """Of every process of the machine."""
    found: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry.name}/stat", "rb") as stat:
                found[int(entry.name)] = int(stat.read().rpartition(b")")[2].split()[1])
    return found


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def is_shielded(pid: int, number: int) -> bool:
    """From a signal that would end any other process: the first one of a namespace gets only those that it
    has something to do about. Whether that is so if it is such a one."""
    if number in _HARMLESS | _STOPPING | _UNAVOIDABLE:
        return False
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    masks = (int(text.partition(f"{name}:")[2].split()[0], 16) for name in ("SigBlk", "SigIgn", "SigCgt"))
    return not any(mask >> (number - 1) & 1 for mask in masks)


def close_all_but(kept: set[int]) -> None:
    """Open files that came with a fork: a lock, or somebody's socket, must not outlive its owner here."""
    low = 3
    for number in sorted(one for one in kept if one >= low):
        os.closerange(low, number)
        low = number + 1
    os.closerange(low, _room_for_files())


def _room_for_files() -> int:
    """No number of an open file is higher."""
    return int(Path("/proc/self/status").read_text().partition("FDSize:")[2].split()[0])


def heed_signals_as_usual() -> None:
    """After a fork: what the shepherd hears with is not ours."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def call(title: str) -> None:
    """What lists of processes show for this one: a fork has the words of the program that it was."""
    words = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(words[45]), int(words[46])
    if end > start:
        ctypes.memmove(start, title.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)


def exit_code(status: int) -> int:
    """Of what `wait` says, as shells do."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code
