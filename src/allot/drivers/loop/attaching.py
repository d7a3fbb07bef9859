"""Loop devices of this machine: which file is behind which, and how one comes and goes.

LOOP1  A file has one loop device at most, however often it is attached: what is there is found by the
       file itself, not by a name that may have changed.
LOOP2  The room of a file is taken when it is made: a claim that is ready has what it asked for, also when the
       disk fills up later.
LOOP3  A device that was attached here and whose file is gone is nobody's, whoever removed the file: it is let
       go, and that is told.
"""

import ctypes
import errno
import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .making import DRIVER, Attached

log = logging.getLogger(__name__)

CONTROL, SYSTEM = Path("/dev/loop-control"), Path("/sys/block")
_GET_FREE, _CONFIGURE, _CLEAR, _STATUS = 0x4C82, 0x4C0A, 0x4C01, 0x4C05
_OURS: Final = f"{DRIVER}:".encode()  # how the names begin that devices have from here
_GONE: Final = " (deleted)"
_TRIES: Final = 20  # somebody else may take the device that is free
GIB: Final = 2**30


class CannotAttach(OSError):
    """The message says why, and what would help."""


class _Info(ctypes.Structure):
    """As the kernel has it (`struct loop_info64`)."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("device", "inode", "own_device", "offset", "size_limit")),
        *((name, ctypes.c_uint32) for name in ("number", "encrypt_type", "encrypt_key_size", "flags")),
        ("file_name", ctypes.c_char * 64),
        ("crypt_name", ctypes.c_char * 64),
        ("encrypt_key", ctypes.c_char * 32),
        ("init", ctypes.c_uint64 * 2),
    )


class _Config(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_uint32),
        ("block_size", ctypes.c_uint32),
        ("info", _Info),
        ("reserved", ctypes.c_uint64 * 8),
    )


class LoopDevices:
    """Files of one directory as block devices."""

    def __init__(self, directory: Path) -> None:
        """Raises CannotAttach."""
        if not os.access(CONTROL, os.R_OK | os.W_OK):
            why = "only root may open it" if CONTROL.exists() else "this machine has none"
            raise CannotAttach(f"loop devices take {CONTROL}: {why}")
        self._directory = directory

    def attach(self, name: str, size: int) -> Attached:
        """LOOP1, LOOP2. Raises OSError."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._directory / name
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _reserve(file, path, size)
            found = next(_behind(os.fstat(file)), None) or _configure(file, path)
        finally:
            os.close(file)
        known = os.stat(found)
        return Attached(str(found), os.major(known.st_rdev), os.minor(known.st_rdev))

    def detach(self, name: str) -> None:
        """The device first: a file that is gone could not be found behind it any more. Raises OSError."""
        self.let_go(name)
        (self._directory / name).unlink(missing_ok=True)

    def let_go(self, name: str) -> None:
        """Raises OSError."""
        try:
            known = os.stat(self._directory / name)
        except FileNotFoundError:
            return
        for device in _behind(known):
            _clear(device)

    def sweep(self) -> None:
        """LOOP3. Of any directory: a data directory that was removed has no driver any more."""
        for device, file, info in _attached():
            if file.endswith(_GONE) and info.file_name.startswith(_OURS):
                log.warning("%s is let go: its file %s was removed", device, file.removesuffix(_GONE))
                try:
                    _clear(device)
                except OSError as refused:
                    log.warning("%s stays: %s", device, refused.strerror)


def room(directory: Path) -> int:
    """Bytes for files there: half of what is free, and what such files take already."""
    above = next(one for one in (directory, *directory.parents) if one.exists())
    space = os.statvfs(above)
    taken = sum(one.stat().st_blocks * 512 for one in directory.glob("*") if one.is_file())
    return (space.f_bavail * space.f_frsize + taken) // 2 // GIB * GIB


def _reserve(file: int, path: Path, size: int) -> None:
    """LOOP2. One that has its size is left alone: what a claim wrote outlives a reboot."""
    if os.fstat(file).st_size == size:
        return
    try:
        os.posix_fallocate(file, 0, size)
        os.ftruncate(file, size)
    except OSError as refused:
        path.unlink(missing_ok=True)
        raise CannotAttach(f"{path}: {size} bytes cannot be had: {refused.strerror}") from None


def _behind(file: os.stat_result) -> Iterator[Path]:
    """The devices whose file this is."""
    for device, _, info in _attached():
        if (info.device, info.inode) == (file.st_dev, file.st_ino):
            yield device


def _attached() -> Iterator[tuple[Path, str, _Info]]:
    """All devices that have a file, with its path as the kernel says it."""
    for system in sorted(SYSTEM.glob("loop*/loop/backing_file")):
        device = Path("/dev", system.parts[-3])
        try:
            file = system.read_text().removesuffix("\n")
            handle = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        info = _Info()
        try:
            fcntl.ioctl(handle, _STATUS, info)
        except OSError:  # it has no file any more
            continue
        finally:
            os.close(handle)
        yield device, file, info


def _clear(device: Path) -> None:
    """At once, or when the last one who has it open closes it."""
    handle = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(handle, _CLEAR)
    except OSError as refused:
        if refused.errno != errno.ENXIO:  # it was cleared meanwhile
            raise
    finally:
        os.close(handle)


def _configure(file: int, path: Path) -> Path:
    control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            device = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
            config = _Config(file=file)
            config.info.file_name = (_OURS + path.name.encode())[:63]
            if _is_block(device) and _configured(device, config):
                return device
    finally:
        os.close(control)
    raise CannotAttach(f"{path}: every loop device that was free was taken by somebody else, {_TRIES} times")


def _configured(device: Path, config: _Config) -> bool:
    handle = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(handle, _CONFIGURE, config)
    except OSError as refused:
        if refused.errno == errno.EBUSY:
            return False
        raise
    finally:
        os.close(handle)
    return True


def _is_block(device: Path) -> bool:
    """Raises CannotAttach: a machine whose /dev does not follow its devices has too few nodes."""
    try:
        return stat.S_ISBLK(os.stat(device).st_mode)
    except FileNotFoundError:
        raise CannotAttach(f"{device} is free, and there is no such device node on this machine") from None
