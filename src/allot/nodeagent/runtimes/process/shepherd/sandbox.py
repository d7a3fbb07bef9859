"""The namespaces that the containers of a pod share: user, network, hostname, memory segments.

They are open files of the shepherd. The thread that makes them, or the process where they need a user of
their own, is gone at once, and when the shepherd and the containers have gone too, so have they: nothing is
left to be cleaned up.
"""

import fcntl
import os
import signal
import socket
import struct
import traceback
from collections.abc import Mapping
from threading import Thread
from typing import Any

from . import kernel, processes

_KINDS = {"user": kernel.NEWUSER, "ipc": kernel.NEWIPC, "uts": kernel.NEWUTS, "net": kernel.NEWNET}
_SET_FLAGS, _UP = 0x8914, 0x1


class Sandbox:
    def __init__(self, namespaces: dict[str, int], user: int) -> None:
        self.namespaces = namespaces  # open files, in the order in which they are entered
        self.user = user

    @property
    def has_network(self) -> bool:
        return "net" in self.namespaces

    def enter(self) -> None:
        for name, namespace in self.namespaces.items():
            kernel.enter(namespace, _KINDS[name])

    def close(self) -> None:
        for namespace in self.namespaces.values():
            os.close(namespace)


def made(wanted: Mapping[str, Any], abilities: Mapping[str, Any]) -> Sandbox:
    """Raises OSError."""
    isolates = set(abilities["isolates"])
    names = [
        name
        for name, is_wanted in (
            ("user", "user" in isolates),
            ("ipc", "ipc" in isolates and not wanted["host_ipc"]),
            ("uts", "uts" in isolates and bool(wanted["hostname"])),
            ("net", "net" in isolates and not wanted["host_network"]),
        )
        if is_wanted
    ]
    user = abilities["uid"] if wanted["user"] is None else wanted["user"]
    if not names:
        return Sandbox({}, user)
    try:
        files = _made_as_user(names, user, wanted) if "user" in names else _made(names, wanted)
    except OSError as failed:
        raise OSError(f"the namespaces of the pod: {failed}") from None
    return Sandbox(dict(zip(names, files, strict=True)), user)


def _made(names: list[str], wanted: Mapping[str, Any]) -> list[int]:
    """By a thread, which is in them alone. Raises OSError."""
    made: list[int] = []
    refused: list[OSError] = []

    def make() -> None:
        try:
            made.extend(_unshared(names, wanted))
        except OSError as failed:
            refused.append(failed)

    thread = Thread(target=make)
    thread.start()
    thread.join()
    if refused:
        raise refused[0]
    return made


def _made_as_user(names: list[str], user: int, wanted: Mapping[str, Any]) -> list[int]:
    """By a process: a thread cannot have a user of its own. Raises OSError."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _make_as_user(theirs, names, user, wanted)
    theirs.close()
    with ours:
        said, files, _, _ = socket.recv_fds(ours, 4096, len(names))
    os.waitpid(pid, 0)
    if len(files) != len(names):
        raise OSError(said.decode(errors="replace") or "the process that makes them was killed")
    for file in files:
        os.set_inheritable(file, False)
    return list(files)


def _make_as_user(out: socket.socket, names: list[str], user: int, wanted: Mapping[str, Any]) -> None:
    try:
        processes.heed_signals_as_usual()
        kernel.die_with_parent(signal.SIGKILL)
        own_group = os.getegid()
        new_user(user, own_group if wanted["group"] is None else wanted["group"])
        socket.send_fds(out, [b"."], _unshared(names, wanted))
    except OSError as failed:
        out.sendall(str(failed).encode())
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def _unshared(names: list[str], wanted: Mapping[str, Any]) -> list[int]:
    """Raises OSError."""
    kernel.unshare(sum(_KINDS[name] for name in names if name != "user"))
    if "net" in names:
        bring_up_loopback()
    if "uts" in names:
        kernel.set_hostname(wanted["hostname"])
    return [os.open(f"/proc/thread-self/ns/{name}", os.O_RDONLY) for name in names]


def new_user(user: int, group: int) -> None:
    """A namespace in which we are this user, who has nothing outside that we did not have."""
    own_user, own_group = os.geteuid(), os.getegid()
    kernel.unshare(kernel.NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {own_user} 1"),
        ("gid_map", f"{group} {own_group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
