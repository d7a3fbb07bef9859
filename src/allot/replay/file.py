"""The file of a record: it grows by whole lines, and when it is too large or too old its beginning is folded.

What it promises
    RECORD2  A reader finds a record at every moment, whenever the writer is killed: lines are appended, and
             what is folded is written beside it and takes its place at once.
    RECORD3  The file stays within its bounds; what is older than they allow is there as the state that it
             came to.
    RECORD4  Trouble with the file, a full disk say, ends the record and nothing else. It is told, once.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec

from allot.base import Clock, os_reason

from .folding import Fold
from .keeping import Made, Scrubber
from .lines import HEAD, Decided, Term, decoded, encoded
from .reading import HEAD_MAX, BadRecord, check_head

log = logging.getLogger(__name__)

EVERY_S = 0.1
PENDING_MAX = 200_000
LOOK_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Bounds:
    size: int = 256 * 1024 * 1024  # in bytes
    age: timedelta = timedelta(days=1)


class TooLarge(Exception):
    """The state alone, without a single decision."""


class RecordFile:
    def __init__(self, path: Path, bounds: Bounds) -> None:
        """Opens it, or goes on with a record that is there. Raises BadRecord, or OSError."""
        self.path = path
        self._bounds = bounds
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._go_on()
        except BaseException:
            os.close(self._fd)
            raise

    def _go_on(self) -> None:
        size = os.fstat(self._fd).st_size
        if size == 0:
            _write(self._fd, HEAD)
        else:
            check_head(self.path, os.pread(self._fd, HEAD_MAX, 0).split(b"\n", 1)[0])
            os.ftruncate(self._fd, _whole(self._fd, size))
        self.size = os.fstat(self._fd).st_size

    def append(self, lines: bytes) -> None:
        """Raises OSError; of what was written then half a line may be there, which readers pass over."""
        _write(self._fd, lines)
        self.size += len(lines)

    def close(self) -> None:
        os.close(self._fd)

    def fold(self, clock: Clock) -> None:
        """Half of what the bounds allow is left of the stream. Raises OSError, TooLarge or BadRecord."""
        keep_from, youngest = self.size - self._bounds.size // 2, clock.now() - self._bounds.age
        fold, at = Fold(), len(HEAD)
        with self.path.open("rb") as old:
            old.readline()
            while at < self.size:
                line = old.readline()
                try:
                    told = decoded(line)
                    moment = told.at if isinstance(told, Term | Decided) else fold.at
                    if at >= keep_from and moment is not None and moment >= youngest:
                        break
                    fold.add(told, line)
                except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
                    raise BadRecord(f"{self.path} at byte {at}: the record is damaged: {wrong}") from None
                at += len(line)
            self._replace(fold, old.fileno(), at)

    def _replace(self, fold: Fold, old: int, kept_from: int) -> None:
        beside = self.path.with_name(self.path.name + ".new")
        new = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            _write(new, HEAD)
            for line in fold.lines():
                _write(new, line)
            state = os.fstat(new).st_size
            if state > self._bounds.size * 3 // 4:
                raise TooLarge(f"what is in the cluster takes {state} bytes of {self._bounds.size}")
            while kept_from < self.size:
                piece = os.pread(old, min(1 << 20, self.size - kept_from), kept_from)
                _write(new, piece)
                kept_from += len(piece)
            os.fsync(new)
            os.replace(beside, self.path)
        except BaseException:
            os.close(new)
            beside.unlink(missing_ok=True)
            raise
        os.close(self._fd)
        self._fd, self.size = new, os.fstat(new).st_size


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _whole(fd: int, size: int) -> int:
    """How many bytes are whole lines."""
    at = size
    while at > 0:
        begin = max(0, at - 65536)
        piece = os.pread(fd, at - begin, begin)
        end = piece.rfind(b"\n")
        if end >= 0:
            return begin + end + 1
        at = begin
    return 0


class Writing:
    """Writes lines in a thread of its own, so that a scheduler waits for no disk."""

    def __init__(
        self, file: RecordFile, bounds: Bounds, clock: Clock, trouble: Callable[[str], None]
    ) -> None:
        self._file = file
        self._bounds = bounds
        self._clock = clock
        self._trouble = trouble
        self._pending: deque[Made] = deque()
        self._scrubber = Scrubber()
        self.is_over = False
        self._looked_s = clock.monotonic_s()
        self._oldest = clock.now()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="record", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, made: Made) -> None:
        """Never waits."""
        if self.is_over:
            return
        self._pending.append(made)
        if len(self._pending) > PENDING_MAX:
            self._end("more is decided than can be written")

    def close(self) -> None:
        """What was put is written."""
        self._stop.set()
        self._thread.join()
        self._file.close()

    def _run(self) -> None:
        while not self.is_over:
            is_last = self._stop.wait(EVERY_S)
            try:
                self._write()
                self._bound()
            except OSError as refused:
                self._end(f"{self._file.path} cannot be written: {os_reason(refused)}")
            except (TooLarge, BadRecord) as wrong:
                self._end(str(wrong))
            except Exception as bug:  # an object that nobody foresaw: the scheduler goes on
                log.exception("recording failed in an unforeseen way")
                self._end(repr(bug))
            if is_last:
                return

    def _write(self) -> None:
        lines: list[bytes] = []
        for _ in range(len(self._pending)):
            line = self._pending.popleft()(self._scrubber)
            if line is not None:
                lines.append(encoded(line))
        if lines:
            self._file.append(b"".join(lines))

    def _bound(self) -> None:
        now_s = self._clock.monotonic_s()
        is_old = False
        if now_s - self._looked_s > LOOK_EVERY_S:
            self._looked_s = now_s
            is_old = self._clock.now() - self._oldest > self._bounds.age * 1.5
        if self._file.size > self._bounds.size or is_old:
            self._file.fold(self._clock)
            self._oldest = self._clock.now() - self._bounds.age

    def _end(self, why: str) -> None:
        if not self.is_over:
            self.is_over = True
            self._pending.clear()
            self._trouble(why)
