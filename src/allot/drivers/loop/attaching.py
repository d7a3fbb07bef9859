"""Loop devices of this machine: which file is behind which, and how one comes and goes.

LOOP1  A file has one loop device at most, however often it is attached: what is there is found by the
       file itself, not by a name that may have changed.
LOOP2  The room of a file is taken when it is made: a claim that is ready has what it asked for, also when the
       disk fills up later.
"""

import ctypes
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .making import Attached

CONTROL, SYSTEM = Path("/dev/loop-control"), Path("/sys/block")
_GET_FREE, _CONFIGURE, _CLEAR, _STATUS = 0x4C82, 0x4C0A, 0x4C01, 0x4C05
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
        path = self._directory / name
        try:
            known = os.stat(path)
        except FileNotFoundError:
            return
        for device in _behind(known):
            handle = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(handle, _CLEAR)
            except OSError as refused:
                if refused.errno != errno.ENXIO:  # it was cleared meanwhile
                    raise
            finally:
                os.close(handle)
        path.unlink(missing_ok=True)


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
    for system in sorted(SYSTEM.glob("loop*/loop/backing_file")):
        device = Path("/dev", system.parts[-3])
        try:
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
        if (info.device, info.inode) == (file.st_dev, file.st_ino):
            yield device


def _configure(file: int, path: Path) -> Path:
    control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            device = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
            config = _Config(file=file)
            config.info.file_name = bytes(path)[-63:]
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
