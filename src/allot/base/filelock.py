"""A lock on a file, held by one process at a time, that ends with the process however it ends.

The file says who holds it. It is never removed: a lock on a removed file would keep nobody out.
"""

import fcntl
import os
from pathlib import Path


class HeldByAnother(Exception):
    """`holder` is the process that has the lock, in digits, or "unknown"."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is held by process {holder}")
        self.holder = holder


class FileLock:
    """Taken when it is made, or `HeldByAnother` and nothing has changed."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._handle, 32).decode() or "unknown"
            os.close(self._handle)
            raise HeldByAnother(path, holder) from None
        try:
            os.ftruncate(self._handle, 0)
            os.write(self._handle, str(os.getpid()).encode())
        except OSError as refused:
            os.close(self._handle)
            raise OSError(refused.errno, refused.strerror, str(path)) from refused

    def release(self) -> None:
        os.close(self._handle)
