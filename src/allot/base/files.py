"""The port: the files of a machine, as one of its processes sees them.

Whoever keeps something in files is handed a `Files`: those of the machine (`MachineFiles`), or those of a
made-up machine, which loses what was not synced when its power is cut. How a file is written whole is
decided here, once for both, out of the few steps that an operating system offers.
"""

import fcntl
import logging
import os
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Protocol

from . import mounts
from .filelock import HeldByAnother

log = logging.getLogger(__name__)

_BLOCK = 512
"""Bytes: what file systems count in."""


class FileKind(Enum):
    FILE = "file"
    DIRECTORY = "directory"
    SOCKET = "socket"
    CHARACTER_DEVICE = "character device"
    BLOCK_DEVICE = "block device"
    OTHER = "something else"


class Lock(Protocol):
    def release(self) -> None: ...


class Files(ABC):
    def write(self, path: Path, content: bytes, *, durable: bool = True) -> None:
        """Whole or not at all, 0600 from the first moment, durable when this returns. Raises OSError.

        What is not durable, nobody looks for after a power cut: then it may be there, torn, or not."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self.remove(temporary)
            try:
                self._put(temporary, content)
                if durable:
                    self._sync(temporary)
                self._rename(temporary, path)
            except BaseException:
                self.remove(temporary)
                raise
            if durable:
                self._sync(path.parent)
        except OSError as refused:  # of whichever file: this is the one that was asked for
            raise OSError(refused.errno, refused.strerror, str(path)) from refused

    def settle(self, path: Path) -> None:
        """What is at the path stays there, also if whoever wrote it died before that was certain."""
        for one in (path, path.parent):
            self._sync(one)

    @abstractmethod
    def read(self, path: Path, at_most: int = -1) -> bytes | None:
        """The content, or its first so many bytes; None: there is no such file. Raises OSError."""

    @abstractmethod
    def remove(self, path: Path) -> None:
        """What is not there need not be removed."""

    @abstractmethod
    def names(self, directory: Path) -> tuple[str, ...]:
        """Of what lies in a directory, in order; none of one that is not there."""

    @abstractmethod
    def stamp(self, path: Path) -> Hashable | None:
        """Tells a file from what lay at its path before; None: there is none."""

    @abstractmethod
    def make_directory(self, path: Path, mode: int = 0o777) -> None:
        """And those above it. One that is there stays as it is."""

    @abstractmethod
    def lock(self, path: Path) -> Lock:
        """For one holder at a time, until released or until the process ends. Raises HeldByAnother."""

    # -- trees that others look at --------------------------------------------------------------

    def link(self, path: Path, target: str) -> None:
        """A symbolic link, at one moment in place of what is there."""
        temporary = path.with_name(f"{path.name}_tmp")
        self.remove(temporary)
        self._link(temporary, target)
        self._rename(temporary, path)

    @abstractmethod
    def place(self, path: Path, content: bytes, mode: int) -> None:
        """A new file with exactly that mode, which nobody looks for after a power cut. Raises OSError."""

    @abstractmethod
    def place_directory(self, path: Path, mode: int) -> None:
        """With exactly that mode, and those above it with the usual one. One that is there stays as it is."""

    @abstractmethod
    def place_memory(self, path: Path, mode: int, size: int | None) -> bool:
        """The same in memory, of at most so many bytes. False: this process may not, and it is on disk."""

    @abstractmethod
    def used(self, path: Path) -> int:
        """How much of the disk a directory takes, with all below it. What goes meanwhile takes nothing."""

    @abstractmethod
    def target(self, path: Path) -> str | None:
        """Where a symbolic link points; None: there is none."""

    @abstractmethod
    def kind(self, path: Path) -> FileKind | None:
        """What is at the path, links followed; None: nothing."""

    @abstractmethod
    def real(self, path: Path) -> Path:
        """The path with all links followed, as far as there is something."""

    @abstractmethod
    def give(self, path: Path, group: int) -> None:
        """The path and all below it belong to the group, which may read it, and write where the owner may."""

    @abstractmethod
    def remove_tree(self, path: Path) -> None:
        """A directory with all that is in it. What is not there need not be removed; what is mounted there is
        unmounted, and where that cannot be done nothing is removed."""

    @abstractmethod
    def _link(self, path: Path, target: str) -> None:
        """A new one. Raises FileExistsError."""

    # -- the steps of a write -------------------------------------------------------------------

    @abstractmethod
    def _put(self, path: Path, content: bytes) -> None:
        """A new file. Raises FileExistsError."""

    @abstractmethod
    def _sync(self, path: Path) -> None:
        """What a file holds, or which names a directory has, is kept whenever the power goes."""

    @abstractmethod
    def _rename(self, path: Path, to: Path) -> None:
        """At one moment, in place of what is there."""


class MachineFiles(Files):
    """Of the machine that this process runs on."""

    def read(self, path: Path, at_most: int = -1) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read(at_most)
        except FileNotFoundError:
            return None

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def names(self, directory: Path) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(directory)))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def stamp(self, path: Path) -> Hashable | None:
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def make_directory(self, path: Path, mode: int = 0o777) -> None:
        path.mkdir(parents=True, exist_ok=True, mode=mode)

    def lock(self, path: Path) -> Lock:
        """The file stays: to make and remove it each time would change the directory each time."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise HeldByAnother(path, "unknown") from None
        return _Held(handle)

    def place(self, path: Path, content: bytes, mode: int) -> None:
        self._put(path, content)
        path.chmod(mode)

    def place_directory(self, path: Path, mode: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir()
        except FileExistsError:
            return
        path.chmod(mode)

    def place_memory(self, path: Path, mode: int, size: int | None) -> bool:
        self.place_directory(path, mode)
        if mounts.mounts_at(path):
            return True
        try:
            mounts.mount_memory(path, mode, size)
        except PermissionError:
            return False
        return True

    def used(self, path: Path) -> int:
        found = 0
        for directory, _, files in os.walk(path):
            for one in (directory, *(os.path.join(directory, name) for name in files)):
                with suppress(OSError):
                    found += os.lstat(one).st_blocks * _BLOCK
        return found

    def target(self, path: Path) -> str | None:
        try:
            return os.readlink(path)
        except OSError:
            return None

    def kind(self, path: Path) -> FileKind | None:
        try:
            return _KINDS.get(stat.S_IFMT(path.stat().st_mode), FileKind.OTHER)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def real(self, path: Path) -> Path:
        return path.resolve()

    def give(self, path: Path, group: int) -> None:
        for one in (path, *path.rglob("*")):
            os.chown(one, -1, group, follow_symlinks=False)
            if not one.is_symlink():
                mode = one.stat().st_mode
                shared = 0o2070 if one.is_dir() else 0o060 if mode & stat.S_IWUSR else 0o040
                one.chmod(stat.S_IMODE(mode) | shared)

    def remove_tree(self, path: Path) -> None:
        try:
            for one in mounts.mounts_at(path):
                if one.is_ours:  # containers of others may have a look at it still: nothing is left there
                    shutil.rmtree(one.path, ignore_errors=True)
                mounts.unmount(one.path)
        except OSError as refused:  # below a mount lies what is not ours
            log.warning("%s stays: what is mounted there cannot be unmounted: %s", path, refused)
            return
        shutil.rmtree(path, ignore_errors=True)

    def _link(self, path: Path, target: str) -> None:
        os.symlink(target, path)

    def _put(self, path: Path, content: bytes) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)

    def _sync(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _rename(self, path: Path, to: Path) -> None:
        os.replace(path, to)


_KINDS = {
    stat.S_IFREG: FileKind.FILE,
    stat.S_IFDIR: FileKind.DIRECTORY,
    stat.S_IFSOCK: FileKind.SOCKET,
    stat.S_IFCHR: FileKind.CHARACTER_DEVICE,
    stat.S_IFBLK: FileKind.BLOCK_DEVICE,
}


class _Held:
    def __init__(self, handle: int) -> None:
        self._handle = handle

    def release(self) -> None:
        os.close(self._handle)


def write_file(path: Path, content: bytes) -> None:
    """On this machine: whole or not at all, 0600 from the first moment, durable when this returns."""
    MachineFiles().write(path, content)
