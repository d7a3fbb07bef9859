"""What is mounted on this machine, and file systems in its memory."""

import ctypes
import os
import re
from pathlib import Path
from typing import NamedTuple

_NOSUID, _NODEV, _DETACH = 2, 4, 2
_OURS = "allot-memory"
_MOUNTED = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")

_libc = ctypes.CDLL(None, use_errno=True)


def mount_memory(path: Path, mode: int, size: int | None) -> None:
    """A file system that forgets. At most so many bytes; None: as the machine has it. Raises OSError."""
    options = f"mode={mode:o}" + (f",size={size}" if size is not None else "")
    flags = ctypes.c_ulong(_NOSUID | _NODEV)
    _require(_libc.mount(_OURS.encode(), os.fsencode(path), b"tmpfs", flags, options.encode()), path)


def unmount(path: Path) -> None:
    """At once for everybody who looks, and for whoever has it open when he closes it. Raises OSError."""
    _require(_libc.umount2(os.fsencode(path), _DETACH), path)


class Mounted(NamedTuple):
    path: Path
    is_ours: bool  # made by `mount_memory`


def mounts_at(path: Path) -> list[Mounted]:
    """At the path and below it; those that were mounted last come first."""
    real, found = path.resolve(), list[Mounted]()
    for line in _MOUNTED.read_text(errors="surrogateescape").splitlines():
        about, _, source = line.partition(" - ")
        where = Path(_ESCAPED.sub(lambda code: chr(int(code[1], 8)), about.split(" ")[4]))
        if where.is_relative_to(real):
            found.append(Mounted(where, source.split(" ")[1] == _OURS))
    return found[::-1]


def _require(result: int, path: Path) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
