"""The thread between the server and the disk.

The event loop puts lines into a queue and goes on. The thread takes what is waiting, writes it in
one piece, and tries again as long as the disk will not have it.

    AUDITQ1  Putting a line never waits, and what waits in memory is at most QUEUE_BYTES_MAX.
    AUDITQ2  What finds no room is lost, counted, and said: in the server's log once, in the metrics,
             and in a line of the audit log as soon as it can be written again.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from allot.base import os_reason

from .logfile import LogFile

log = logging.getLogger(__name__)

QUEUE_BYTES_MAX = 8 * 1024 * 1024
_BATCH_BYTES = 256 * 1024
_GATHER_S = 0.02
"""A busy server's lines are written together: each time the thread wakes it takes the interpreter."""
_RETRY_S = 1.0
_LAST_WORDS_S = 2.0


class Writer:
    def __init__(self, file: LogFile, lost_line: Callable[[int, str], bytes]) -> None:
        """`lost_line` says that so many lines were lost, and why."""
        self.written = 0  # lines
        self.failures = 0  # attempts to write that the disk refused
        self.lost = 0
        self._file = file
        self._lost_line = lost_line
        self._lost_told = 0
        self._why = ""  # lines are waiting, as long as that is so
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._bytes_put = 0  # counted by those who put alone,
        self._bytes_taken = 0  # and this one by the thread alone
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit-writer", daemon=True)
        self._thread.start()

    @property
    def waiting_bytes(self) -> int:
        return self._bytes_put - self._bytes_taken

    def put(self, line: bytes) -> None:
        """From the event loop's thread only."""
        if self.waiting_bytes + len(line) > QUEUE_BYTES_MAX:
            self.lost += 1
            return
        self._bytes_put += len(line)
        self._queue.put(line)

    def close(self) -> None:
        """Write what is waiting, unless the disk does not take it for a while."""
        self._queue.put(None)
        self._stopping.set()
        self._thread.join(_LAST_WORDS_S)
        left = self.waiting_bytes
        if left:
            log.error("the audit log ends with %d bytes that could not be written: %s", left, self._why)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            lines, is_last = self._next()
            if lines:
                self._write(lines)
        self._file.close()

    def _next(self) -> tuple[list[bytes], bool]:
        """What is waiting, once something is; and whether that was the last."""
        line = self._queue.get()
        lines: list[bytes] = []
        self._stopping.wait(_GATHER_S)
        size = 0
        with suppress(Empty):
            while line is not None:
                lines.append(line)
                size += len(line)
                if size >= _BATCH_BYTES:
                    return lines, False
                line = self._queue.get_nowait()
            return lines, True
        return lines, False

    def _write(self, lines: list[bytes]) -> None:
        """Until it is written, or the server ends and the disk still will not have it."""
        whole = b"".join(lines)
        while True:
            lost = self.lost - self._lost_told
            try:
                self._file.append(whole + self._lost_line(lost, self._why) if lost else whole)
            except OSError as refused:
                self._failed(refused)
                if self._stopping.wait(_RETRY_S):
                    return
                continue
            if self._why:
                log.warning("the audit log is written again; %d lines were lost", lost)
            self._why = ""
            self._lost_told += lost
            self.written += len(lines)
            self._bytes_taken += len(whole)
            return

    def _failed(self, refused: OSError) -> None:
        self.failures += 1
        if not self._why:
            self._why = f"{self._file.path}: {os_reason(refused)}"
            log.error("the audit log cannot be written, what does not fit in memory is lost: %s", self._why)
