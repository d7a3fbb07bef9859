"""Network interfaces in and out of network namespaces: a CDI hook, and its way back. Run as a file.

    moving.py give INTERFACE --machine N --note FILE [--pair] [--address A/N]...  with a container's state
    moving.py back INTERFACE --machine N --note FILE [--pair]

`give` is run by a container runtime when a container's namespaces are there and its program is not
(createRuntime). It notes in a file which namespace that is before it moves the interface there, or makes
it there as one end of a pair, whose other end the machine has (--pair). `back` is run by the driver when
the claim is given back: it looks for that namespace, among those of processes, those that are mounted and
those that somebody has open (of a pod whose containers have ended that may be all that is left), and
fetches the interface, or removes the pair. A namespace that is gone has given hardware back by itself;
whatever else was in it, ends of pairs for one, is gone with it. Either may be repeated, also after a crash
in the middle. N is the network namespace of the machine, as the driver knows it: a runtime may run hooks in
the pod's.

Only the standard library: a container waits for this, and it is as old as the machine's Python.
Interfaces are spoken of to the kernel directly (rtnetlink), so that no further program is needed.
"""

import argparse
import ctypes
import errno
import ipaddress
import json
import os
import re
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OWN = "/proc/self/ns/net"
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_NEW_LINK, _DELETE_LINK, _NEW_ADDRESS = 16, 17, 20
_REQUEST, _ACKNOWLEDGE, _EXCLUSIVE, _CREATE, _REPLACE = 0x1, 0x4, 0x200, 0x400, 0x100
_NAME, _LINK_INFO, _NAMESPACE_FD = 3, 18, 28
_KIND, _KIND_DATA, _PEER = 1, 2, 1
_ADDRESS, _LOCAL = 1, 2
_UP = 0x1
_NOBODY = struct.pack("=BxHiII", 0, 0, 0, 0, 0)  # no interface that is there
_libc = ctypes.CDLL(None, use_errno=True)


class CannotMove(Exception):
    """The message names the interface, and what is in the way."""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("deed", choices=["give", "back"])
    parser.add_argument("interface")
    parser.add_argument("--machine", type=int, required=True)
    parser.add_argument("--note", required=True)
    parser.add_argument("--pair", action="store_true")
    parser.add_argument("--address", action="append", default=[])
    parser.add_argument("--host-address", action="append", default=[])
    options = parser.parse_args(words)
    try:
        with opened(_way(options.machine)) as machine:
            enter(machine)
            if options.deed == "back":
                back(options.interface, options.note, options.pair, machine)
                return 0
            pid = int(json.load(sys.stdin)["pid"])
            with opened(f"/proc/{pid}/ns/net") as target:
                _write(options.note, _other(target, machine))
                if not _has_there(options.interface, target, machine):
                    if options.pair:
                        give_pair(options.interface, target)
                    else:
                        give(options.interface, target)
                if options.pair:
                    configure(host_end(options.interface), options.host_address)
                enter(target)
                configure(options.interface, options.address)
    except (CannotMove, OSError) as wrong:
        print(f"{options.interface}: {wrong}", file=sys.stderr)
        return 1
    return 0


def give(interface: str, target: int) -> None:
    """Raises CannotMove, OSError."""
    if not has(interface):
        raise CannotMove("neither this machine nor the container has such an interface")
    move(interface, target)


def give_pair(interface: str, target: int) -> None:
    """An end for the machine that is left of a container before goes first. Raises OSError."""
    own = host_end(interface)
    if has(own):
        remove(own)
    make_pair(own, interface, target)


def back(interface: str, note: str, is_pair: bool, machine: int) -> None:
    """From where the note says it is. Raises OSError."""
    there = _read(note)
    if there is None:
        return
    path = _found(there)
    if is_pair:
        if has(host_end(interface)):
            remove(host_end(interface))
    elif path is not None:
        with opened(path) as target:
            enter(target)
            if has(interface):
                move(interface, machine)
    os.unlink(note)


def host_end(interface: str) -> str:
    return f"{interface}-host"


def configure(interface: str, addresses: list[str]) -> None:
    for address in addresses:
        add_address(interface, address)
    set_up(interface)


# -- namespaces -----------------------------------------------------------------------------------


@contextmanager
def opened(path: str) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _way(machine: int) -> str:
    """To the machine's namespace, which we are in, as a rule. Raises CannotMove."""
    path = OWN if os.stat(OWN).st_ino == machine else _found(machine)
    if path is None:
        raise CannotMove("no process is in the network namespace of the machine any more")
    return path


def _other(target: int, machine: int) -> int:
    """The number of a namespace that is not the machine's. Raises CannotMove."""
    there = os.fstat(target).st_ino
    if there == os.fstat(machine).st_ino:
        raise CannotMove("the container has no network namespace of its own to move it to")
    return there


def _has_there(interface: str, target: int, machine: int) -> bool:
    enter(target)
    try:
        return has(interface)
    finally:
        enter(machine)


def enter(namespace: int) -> None:
    if _libc.setns(namespace, _NEW_NETWORK) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the network namespace cannot be entered: {os.strerror(number)}")


def _found(inode: int) -> str | None:
    """A way to the namespace: of a process in it, where it is mounted, or of a process that has it open."""
    processes = [f"/proc/{name}" for name in os.listdir("/proc") if name.isdigit()]
    for process in processes:
        path = f"{process}/ns/net"
        try:
            if os.stat(path).st_ino == inode:
                return path
        except OSError:
            continue
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            parts = line.split()
            if parts[3] == f"net:[{inode}]":
                return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), parts[4])
    return next((path for process in processes for path in _open_files(process, f"net:[{inode}]")), None)


def _open_files(process: str, name: str) -> Iterator[str]:
    """Those of that name. A process that has ended meanwhile has none."""
    try:
        for file in os.listdir(f"{process}/fd"):
            if os.readlink(f"{process}/fd/{file}") == name:
                yield f"{process}/fd/{file}"
    except OSError:
        return


def _write(note: str, inode: int) -> None:
    """Whole or not at all."""
    temporary = f"{note}.{os.getpid()}"
    with open(temporary, "w") as file:
        json.dump({"namespace": inode}, file)
    os.replace(temporary, note)


def _read(note: str) -> int | None:
    try:
        with open(note) as file:
            return int(json.load(file)["namespace"])
    except FileNotFoundError:
        return None


# -- interfaces -----------------------------------------------------------------------------------


def has(interface: str) -> bool:
    """In the namespace that we are in."""
    return _index(interface) is not None


def move(interface: str, namespace: int) -> None:
    _ask(_NEW_LINK, 0, _link(interface) + _attribute(_NAMESPACE_FD, struct.pack("=I", namespace)))


def make_pair(own: str, interface: str, namespace: int) -> None:
    """Two interfaces that are joined: one here, and one in a namespace."""
    end = _NOBODY + _named(interface) + _attribute(_NAMESPACE_FD, struct.pack("=I", namespace))
    info = _attribute(_KIND, b"veth") + _attribute(_KIND_DATA, _attribute(_PEER, end))
    _ask(_NEW_LINK, _CREATE | _EXCLUSIVE, _NOBODY + _named(own) + _attribute(_LINK_INFO, info))


def remove(interface: str) -> None:
    _ask(_DELETE_LINK, 0, _link(interface))


def set_up(interface: str) -> None:
    _ask(_NEW_LINK, 0, _link(interface, _UP))


def add_address(interface: str, text: str) -> None:
    address = ipaddress.ip_interface(text)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    body = struct.pack("=BBBBi", family, address.network.prefixlen, 0, 0, _index(interface) or 0)
    body += _attribute(_LOCAL, address.ip.packed) + _attribute(_ADDRESS, address.ip.packed)
    _ask(_NEW_ADDRESS, _CREATE | _REPLACE, body)


def _index(interface: str) -> int | None:
    try:
        return socket.if_nametoindex(interface)
    except OSError:
        return None


def _link(interface: str, flags: int = 0) -> bytes:
    index = _index(interface)
    if index is None:
        raise OSError(errno.ENODEV, f"there is no interface {interface}")
    return struct.pack("=BxHiII", 0, 0, index, flags, flags)


def _named(interface: str) -> bytes:
    return _attribute(_NAME, interface.encode() + b"\0")


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def _ask(kind: int, flags: int, body: bytes) -> None:
    """Raises OSError with what the kernel answers."""
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
    ) as kernel:
        head = struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | _ACKNOWLEDGE | flags, 1, 0)
        kernel.send(head + body)
        answer = kernel.recv(65536)
    number = -struct.unpack_from("=i", answer, 16)[0]
    if number:
        raise OSError(number, f"the kernel refuses: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
