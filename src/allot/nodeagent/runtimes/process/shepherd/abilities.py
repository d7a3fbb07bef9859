"""What of a container's surroundings this machine lets us make. Tried once, in processes of their own.

user    namespaces are made as a user of their own, because we may not make them as we are
mount   files, and with them /dev; pid, net, uts, ipc likewise
cgroup controllers by their names
"""

import os
import socket
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from . import devices, kernel, processes, sandbox

WORDS = {
    "mount": "/dev of their own",
    "pid": "processes of their own",
    "net": "networks of their own",
    "uts": "hostnames",
    "ipc": "memory segments of their own",
    "cpu": "limits of processor time",
    "cpuset": "cpus of their own",
    "memory": "limits of memory",
    "devices": "rules for devices",
}


def tried(cgroups_lack: dict[str, str]) -> dict[str, Any]:
    """As it is written to disk."""
    lacks: dict[str, str] = {}
    isolates: list[str] = []
    is_user = _why_not(_mounts) is not None
    if is_user and (why := _why_not(partial(_as_user, _mounts))) is not None:
        lacks["mount"] = why
    else:
        isolates += ["user", "mount"] if is_user else ["mount"]
    for name, trial in _TRIALS.items():
        why = lacks.get("mount") or _why_not(partial(_as_user, trial) if is_user else trial)
        if why is None:
            isolates.append(name)
        else:
            lacks[name] = why
    return {
        "uid": os.geteuid(),
        "gid": os.getegid(),
        "groups": os.getgroups(),
        "isolates": isolates,
        "lacks": {**lacks, **{name: why for name, why in cgroups_lack.items() if name in WORDS}},
        "words": WORDS,
    }


def _as_user(trial: Callable[[], None]) -> None:
    sandbox.new_user(os.geteuid(), os.getegid())
    trial()


def _mounts() -> None:
    kernel.unshare(kernel.NEWNS)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_SLAVE)
    place = tempfile.gettempdir()
    kernel.mount("tmpfs", place, "tmpfs")
    os.mkdir(f"{place}/dev")
    os.mkdir(f"{place}/root")
    kernel.bind("/", f"{place}/root")
    devices.fill(f"{place}/dev", makes_nodes=False)
    kernel.change_root(f"{place}/root")


def _processes() -> None:
    kernel.unshare(kernel.NEWPID)
    pid = os.fork()
    if pid == 0:
        kernel.unshare(kernel.NEWNS)
        kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_SLAVE)
        kernel.mount("proc", "/proc", "proc")
        os._exit(0)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError("a /proc of its own cannot be mounted")


def _network() -> None:
    kernel.unshare(kernel.NEWNET)
    sandbox.bring_up_loopback()


_TRIALS: dict[str, Callable[[], None]] = {
    "pid": _processes,
    "net": _network,
    "uts": lambda: kernel.unshare(kernel.NEWUTS),
    "ipc": lambda: kernel.unshare(kernel.NEWIPC),
}


def _why_not(trial: Callable[[], None]) -> str | None:
    """None: it works."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            processes.heed_signals_as_usual()
            trial()
            os._exit(0)
        except OSError as refused:
            theirs.sendall((refused.strerror or str(refused)).encode() or b"refused")
        except BaseException:
            theirs.sendall(traceback.format_exc().encode())
        os._exit(1)
    theirs.close()
    with ours:
        why = ours.recv(64 * 1024).decode(errors="replace")
    status = os.waitpid(pid, 0)[1]
    return None if status == 0 else why or "refused"
