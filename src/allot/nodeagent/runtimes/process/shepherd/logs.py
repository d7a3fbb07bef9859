"""What a container prints: line by line in the form of the CRI, and as it comes to whoever is attached."""

import contextlib
import os
import time
from pathlib import Path

LOG = "output.log"
LINE_MAX = 16 * 1024
_READ = 64 * 1024
_LAST_READS = 16  # of one whose other end somebody still holds


class Log:
    def __init__(self, directory: Path, bytes_max: int, files_max: int) -> None:
        self._path = directory / LOG
        self._bytes_max, self._files_max = bytes_max, files_max
        self._file = self._open()
        self._size = 0
        self._rotated = 0

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)

    def write(self, stream: str, lines: list[tuple[bytes, bool]]) -> None:
        """Each line with whether it is complete."""
        now_ns = time.time_ns()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_ns // 10**9))
        head = f"{stamp}.{now_ns % 10**9:09d}Z {stream} "
        text = b"".join(
            head.encode() + (b"F " if is_whole else b"P ") + line + b"\n" for line, is_whole in lines
        )
        with contextlib.suppress(OSError):  # a full disk costs output, not the container
            self._size += os.write(self._file, text)
        if self._size >= self._bytes_max:
            self._rotate()

    def _rotate(self) -> None:
        """Where there is no room for another file, this one goes on (HERD4)."""
        self._size = 0
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._path}.{self._rotated + 1 - self._files_max + 1}")
        try:
            os.replace(self._path, f"{self._path}.{self._rotated + 1}")
            self._rotated += 1
            fresh = self._open()
        except OSError:
            return
        os.close(self._file)
        self._file = fresh

    def close(self) -> None:
        os.close(self._file)


class Pipe:
    """One of a container's streams, cut into lines. A terminal is one too."""

    def __init__(self, number: int, stream: str, log: Log) -> None:
        self.number, self.stream, self._log = number, stream, log
        self._rest = b""
        self._attached: list[int] = []  # open files, to which it goes as it comes
        os.set_blocking(number, False)

    def attach(self, other: int) -> None:
        os.set_blocking(other, False)
        self._attached.append(other)

    def detach(self, other: int) -> None:
        if other in self._attached:
            self._attached.remove(other)
            os.close(other)

    def read(self) -> bool:
        """False when it has come to its end."""
        data = self._arrived()
        if data:
            self._hand_on(data)
        elif data is not None:
            self._end_line()
        return data != b""

    def finish(self) -> None:
        """Read what is there, although somebody may hold the other end: its container has ended. Whoever does
        not stop printing is not heard out."""
        for _ in range(_LAST_READS):
            data = self._arrived()
            if not data:
                break
            self._hand_on(data)
        self._end_line()

    def _arrived(self) -> bytes | None:
        """Nothing at its end; None: nothing yet."""
        try:
            return os.read(self.number, _READ)
        except BlockingIOError:
            return None
        except OSError:  # a terminal that nobody holds any more
            return b""

    def _hand_on(self, data: bytes) -> None:
        for other in tuple(self._attached):
            try:
                os.write(other, data)
            except OSError:  # it has gone, or does not keep up
                self.detach(other)
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [piece for line in lines for piece in _pieces(line, True)]
        if len(self._rest) >= LINE_MAX:
            cut = len(self._rest) - len(self._rest) % LINE_MAX
            found += _pieces(self._rest[:cut], False)
            self._rest = self._rest[cut:]
        if found:
            self._log.write(self.stream, found)

    def _end_line(self) -> None:
        if self._rest:
            self._log.write(self.stream, [(self._rest, True)])
            self._rest = b""

    def close(self) -> None:
        for other in tuple(self._attached):
            self.detach(other)
        os.close(self.number)


def _pieces(line: bytes, is_whole: bool) -> list[tuple[bytes, bool]]:
    cuts = [line[at : at + LINE_MAX] for at in range(0, len(line), LINE_MAX)] or [b""]
    return [(cut, is_whole and cut is cuts[-1]) for cut in cuts]
