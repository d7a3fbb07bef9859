"""The file of the audit log, for one thread.

    PATH          what is being written
    PATH.1 …      full files, the latest first; as many as are wanted

What it promises
    AUDITF1  Only its owner may read it, whatever its mode was before.
    AUDITF2  It consists of whole lines: what could not be written whole is taken back.
    AUDITF3  One server writes it: a second one is refused.
    AUDITF4  A file that somebody moved, removed or cut is noticed, and the next lines go to PATH.
"""

import fcntl
import os
import stat
from contextlib import suppress
from itertools import pairwise
from pathlib import Path


class LogFile:
    def __init__(self, path: Path, bytes_max: int, backups: int) -> None:
        """Raises OSError when there cannot be a log at `path`."""
        self.path = path
        self._bytes_max = bytes_max
        self._backups = backups
        self._file = _opened(path)

    def append(self, lines: bytes) -> None:
        """All of them or none. Raises OSError; then nothing is lost and the caller may try again."""
        if self._has_moved():
            self._begin()
        size = os.fstat(self._file).st_size
        if size and size + len(lines) > self._bytes_max:
            self._rotate()
            size = 0
        left = memoryview(lines)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, size)
            raise

    def close(self) -> None:
        os.close(self._file)

    def _has_moved(self) -> bool:
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return True
        ours = os.fstat(self._file)
        return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino)

    def _rotate(self) -> None:
        """Each file takes the number after its own; the one that has the last number goes."""
        names = [self.path, *(Path(f"{self.path}.{number}") for number in range(1, self._backups + 1))]
        for old, new in reversed(list(pairwise(names))):
            with suppress(FileNotFoundError):
                os.replace(old, new)
        if not self._backups:
            os.unlink(self.path)
        self._begin()

    def _begin(self) -> None:
        before, self._file = self._file, _opened(self.path)
        os.close(before)


def _opened(path: Path) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    file = os.open(path, flags, 0o600)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "is not a regular file", str(path))
        if found.st_mode & 0o077:
            os.fchmod(file, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise OSError(0, "another server writes its audit log there", str(path)) from None
    except BaseException:
        os.close(file)
        raise
    return file
