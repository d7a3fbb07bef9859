"""The nodes under a container's own /dev: what everybody has, and what was granted.

As root nodes are made. A plain user may not do that: the machine's own node is mounted in its place.
"""

import os
import stat
from collections.abc import Mapping
from typing import Any

from . import kernel

BASIC = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
RULES = (
    "c *:* m",
    "b *:* m",
    *(f"c 1:{minor} rwm" for minor in (3, 5, 7, 8, 9)),
    "c 5:0 rwm",
    "c 5:2 rwm",
    "c 136:* rwm",
)
"""Of cgroups: what everybody may open. To make a node opens nothing."""

_KINDS = {"c": stat.S_IFCHR, "u": stat.S_IFCHR, "b": stat.S_IFBLK, "p": stat.S_IFIFO}


def fill(directory: str, *, makes_nodes: bool) -> None:
    """An empty directory becomes a /dev."""
    for name in BASIC:
        place({"path": f"/dev/{name}"}, f"{directory}/{name}", makes_nodes=makes_nodes)
    for name, target in LINKS.items():
        os.symlink(target, f"{directory}/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"{directory}/{name}")
    kernel.mount("devpts", f"{directory}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, _PTS)
    kernel.mount("shm", f"{directory}/shm", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")


_PTS = "newinstance,ptmxmode=0666,mode=0620"


def place(node: Mapping[str, Any], target: str, *, makes_nodes: bool) -> None:
    """Raises OSError."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    source = node.get("host_path") or node["path"]
    if os.path.lexists(target):
        os.unlink(target)
    if not makes_nodes:
        with open(target, "wb"):
            pass
        kernel.mount(source, target, flags=kernel.MS_BIND)
        return
    kind, number, mode, uid, gid = described(node)
    os.mknod(target, kind | mode, number)
    os.chmod(target, mode)
    os.chown(target, uid, gid)


def described(node: Mapping[str, Any]) -> tuple[int, int, int, int, int]:
    """Kind, number, mode, user and group: as the edit says, else as the machine's own. Raises OSError."""
    if node.get("type") and (node.get("major") or node["type"] == "p"):
        kind, number = _KINDS[node["type"]], os.makedev(node.get("major") or 0, node.get("minor") or 0)
        mode, uid, gid = 0o666, 0, 0
    else:
        found = os.stat(node.get("host_path") or node["path"])
        kind, number = stat.S_IFMT(found.st_mode), found.st_rdev
        mode, uid, gid = stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid
    return (
        kind,
        number,
        mode if node.get("file_mode") is None else node["file_mode"] & 0o7777,
        uid if node.get("uid") is None else node["uid"],
        gid if node.get("gid") is None else node["gid"],
    )


def rule(node: Mapping[str, Any]) -> str | None:
    """For cgroups. Raises OSError."""
    kind, number, *_ = described(node)
    letter = {stat.S_IFCHR: "c", stat.S_IFBLK: "b"}.get(kind)
    if letter is None:
        return None
    return f"{letter} {os.major(number)}:{os.minor(number)} {node.get('permissions') or 'rwm'}"
