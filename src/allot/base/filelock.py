"""A lock on a file, held by one process at a time, that ends with the process however it ends.

The file says who holds it, and goes with the lock; after a crash it stays, and keeps nobody out. A lock on a
file that another holder has removed would not either, so that whoever takes one looks whether its file
is still the one of that name.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class HeldByAnother(Exception):
    """`holder` is the process that has the lock, in digits, or "unknown"."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is held by process {holder}")
        self.holder = holder


class FileLock:
    """Taken when it is made, or `HeldByAnother` and nothing has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = _locked(path)
        while not _is_at(path, self._handle):
            os.close(self._handle)
            self._handle = _locked(path)
        try:
            os.ftruncate(self._handle, 0)
            os.write(self._handle, str(os.getpid()).encode())
        except OSError as refused:
            os.close(self._handle)
            raise OSError(refused.errno, refused.strerror, str(path)) from refused

    def release(self) -> None:
        with suppress(OSError):  # a folder that is read-only by now, say: it stays, and hinders nobody
            os.unlink(self._path)
        os.close(self._handle)


def _locked(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 32).decode() or "unknown"
        os.close(handle)
        raise HeldByAnother(path, holder) from None
    return handle


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
