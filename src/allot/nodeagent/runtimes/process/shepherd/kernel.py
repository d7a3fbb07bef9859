"""System calls that Python does not have: mounts, namespaces, capabilities."""

import ctypes
import os
from pathlib import Path

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC = 32, 4096, 16384
MS_PRIVATE, MS_SLAVE = 1 << 18, 1 << 19

NEWNS, NEWUTS, NEWIPC = 0x00020000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000

_DETACH = 2
_DEATH_SIGNAL, _SET_DUMPABLE, _CAPBSET_READ, _CAPBSET_DROP, _ADOPT = 1, 4, 23, 24, 36
_NO_NEW_PRIVILEGES = 38
_AMBIENT, _AMBIENT_RAISE, _CAPABILITY_VERSION = 47, 2, 0x20080522
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_SETATTR = -100, 0x8000, 442

CAPABILITIES = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
]
"""In the order of their numbers."""
EVERY = "ALL"

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    words = (source.encode(), target.encode(), kind.encode() or None)
    result = _libc.mount(*words, ctypes.c_ulong(flags), data.encode() or None)
    _checked(result, f"mount of {source or kind} at {target}")


def bind(source: str, target: str) -> None:
    """With what is mounted below."""
    mount(source, target, flags=MS_BIND | MS_REC)


def remount(target: str, flags: int) -> None:
    """A bind mount, with these flags and those that it has: whoever did not set them may not take them."""
    has = os.statvfs(target).f_flag & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("none", target, flags=MS_REMOUNT | MS_BIND | has | flags)


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "namespace")]


def make_read_only(target: str) -> None:
    """With everything that is mounted below it."""
    attributes = _Attributes(set=MS_RDONLY)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    result = _libc.syscall(
        _MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, ctypes.byref(attributes), size
    )
    _checked(result, f"{target} read-only")


def change_root(new: str) -> None:
    """The old one is nowhere any more."""
    os.chdir(new)
    _checked(_libc.pivot_root(b".", b"."), f"{new} as root")
    _checked(_libc.umount2(b".", _DETACH), "the old root")
    os.chdir("/")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "new namespaces")


def enter(namespace: int, kind: int = 0) -> None:
    """A namespace that is an open file."""
    _checked(_libc.setns(namespace, kind), "a namespace")


def fork_inside() -> int:
    """The first process of a new namespace of processes. Those that we fork later are where we are.
    Raises OSError."""
    own, pid = os.open("/proc/self/ns/pid", os.O_RDONLY), -1
    try:
        unshare(NEWPID)
        pid = os.fork()
    finally:
        if pid:
            enter(own, NEWPID)
        os.close(own)
    return pid


def set_hostname(name: str) -> None:
    raw = name.encode()
    _checked(_libc.sethostname(raw, ctypes.c_size_t(len(raw))), f"hostname {name}")


def become(user: int) -> None:
    """A plain user, who may look at itself."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    _libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)


def die_with_parent(number: int) -> None:
    """By this signal."""
    _libc.prctl(_DEATH_SIGNAL, number, 0, 0, 0)


def adopt() -> None:
    """Processes below this one whose parents end become its children, and not those of the machine's first.
    That stays so when it becomes another program."""
    _libc.prctl(_ADOPT, 1, 0, 0, 0)


def keep_capabilities(names: set[str]) -> None:
    """Those that the next program may have at most; ALL: every one."""
    if EVERY in names:
        return
    for number, name in enumerate(CAPABILITIES):
        if name not in names and _libc.prctl(_CAPBSET_READ, number, 0, 0, 0) == 1:
            _checked(_libc.prctl(_CAPBSET_DROP, number, 0, 0, 0), f"capability {name}")


def gain_nothing() -> None:
    """No program that this one becomes has more rights than it, whatever its file says."""
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")


def hand_on_capabilities() -> None:
    """Those that we have, to the next program, though we are not root: in a user namespace we have all."""
    status = Path("/proc/self/status").read_text()
    own = int(status.partition("CapPrm:")[2].split()[0], 16)
    words = [own & 0xFFFFFFFF] * 3 + [own >> 32] * 3  # effective, permitted and inheritable, twice 32 of them
    header, data = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)(*words)
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(data)), "capabilities")
    for number in range(len(CAPABILITIES)):
        if own >> number & 1:
            _libc.prctl(_AMBIENT, _AMBIENT_RAISE, number, 0, 0)


def bpf(command: int, attributes: ctypes.Structure) -> int:
    number = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    return _checked(int(_libc.syscall(number, command, ctypes.byref(attributes), size)), "a device filter")
