"""The one thread that writes: group commit.

Where it sits
    The engine, on the event loop, decides each transaction and puts it into the
    queue with its rows ready made. This thread takes all that are waiting, writes
    them at once and hands them back to the loop with the outcome. When it has
    nothing to write it sweeps up after compaction.

When writing fails
    Transactions behind a failed one were decided on the assumption that it would
    succeed, so they fail too, up to where the engine began anew: every transaction
    carries the `era` in which it was decided, and a failure ends an era.

    Most failures are certain: a full disk leaves nothing behind. A failed sync is
    not: the batch may or may not be there after a power cut. Then the file is opened
    again and says itself what it holds. If it cannot be opened the batch is in doubt:
    nothing is written until it can, and if the batch turns out to be there it is handed
    back a second time, which ends an era too.

When the disk is in trouble
    `trouble` says so from the first write that failed until there is room again for one as
    large; whether there is, is looked at every second. One line is logged at each end. Of a
    store that was just opened only if it lasts: who cannot even start says so otherwise.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, TypeVar

from ..contract import OutcomeUnknown, StoreError, Unavailable
from .file import LogFile, Row

log = logging.getLogger(__name__)

BATCH_ROWS_MAX = 1000
SWEEP_REVISIONS = 200
BATCHES_PER_SWEEP = 50  # even a busy writer sweeps now and then
IDLE_S = 0.005
CHECKPOINT_EVERY_S = 1.0
LOOK_FOR_ROOM_EVERY_S = 1.0
YOUNG_S = 5.0
ROOM_TO_SPARE = 1 << 20  # bytes beyond what did not fit, so that trouble does not come and go
WAL_BYTES_MAX = 64 << 20

LEAVES_NOTHING = {"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_READONLY", "SQLITE_BUSY"}
"""Errors before the last page of a batch is written, without which none of it counts."""


class Transaction:
    """What the writer needs of a transaction; the engine's subclass knows more."""

    __slots__ = ("era", "rows")

    def __init__(self, era: int, rows: Sequence[Row]) -> None:
        self.era = era
        self.rows = rows


class Compaction(NamedTuple):
    revision: int


class Scrub(NamedTuple):
    done: Callable[[StoreError | None], object]  # called in the writing thread


T = TypeVar("T", bound=Transaction)


class Writer(Generic[T]):
    def __init__(self, file: LogFile, settle: Callable[[list[T], StoreError | None], None]) -> None:
        """`settle` is called in the writing thread with each batch and what went wrong with it."""
        self._file = file
        self._settle = settle
        self._queue: SimpleQueue[list[T] | Compaction | Scrub | None] = SimpleQueue()
        self._scrubs: list[Scrub] = []
        self._failed_era = -1
        self._in_doubt: list[T] = []
        self.trouble = ""  # in words, while there is one; read by other threads
        self._opened_s = time.monotonic()
        self._is_told = False
        self._room_wanted = 0  # bytes that did not fit
        self._looked_at_s = 0.0
        self._sweeping = True
        self._log_is_long = threading.Event()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, name="store-writer", daemon=True),
            threading.Thread(target=self._checkpoint, name="store-checkpoint", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def put(self, item: list[T] | Compaction | Scrub) -> None:
        """Transactions are written in the order in which they are put."""
        self._queue.put(item)

    def stop(self) -> None:
        """Write what is waiting, then end. Blocks until it is done."""
        self._queue.put(None)
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    # -- the writing thread ----------------------------------------------------------------------

    def _write(self) -> None:
        batches = 0
        running = True
        while running:
            batch, compact_to, running = self._take()
            if batch:
                self._commit(batch)
                batches += 1
            if compact_to:
                self._compact(compact_to)
            while self._scrubs:
                self._scrub(self._scrubs.pop())
            if self.trouble:
                self._look_for_room()
            if self._sweeping and (not batch or batches % BATCHES_PER_SWEEP == 0):
                self._sweep()
            if self._log_is_long.is_set():
                self._log_is_long.clear()
                with suppress(sqlite3.Error):
                    self._file.finish_checkpoint()

    def _take(self) -> tuple[list[T], int, bool]:
        """Wait for work; then all transactions that wait, the newest compaction, and whether to go on."""
        batch: list[T] = []
        compact_to, rows = 0, 0
        wait_s = IDLE_S if self._sweeping else LOOK_FOR_ROOM_EVERY_S if self.trouble else None
        with suppress(Empty):
            item = self._queue.get(timeout=wait_s)
            while item is not None:
                if isinstance(item, Compaction):
                    compact_to = max(compact_to, item.revision)
                elif isinstance(item, Scrub):
                    self._scrubs.append(item)
                else:
                    batch += item
                    rows += sum(len(transaction.rows) for transaction in item)
                if rows >= BATCH_ROWS_MAX:
                    return batch, compact_to, True
                item = self._queue.get_nowait()
            return batch, compact_to, False
        return batch, compact_to, True

    def _commit(self, batch: list[T]) -> None:
        self._settle_doubt()
        doomed = [transaction for transaction in batch if transaction.era <= self._failed_era]
        sound = batch[len(doomed) :]
        if doomed:
            self._settle(doomed, Unavailable("an earlier write failed"))
        if sound and self._in_doubt:
            self._fail(sound, Unavailable(f"{self._file.path} cannot be read", soon=False))
        elif sound:
            self._append(sound)

    def _append(self, batch: list[T]) -> None:
        try:
            self._file.append([row for transaction in batch for row in transaction.rows])
        except Exception as error:  # whatever it is, somebody waits for an answer
            problem = f"{self._file.path}: {error}"
            written = False if _nothing_was_written(error) else self._is_written(batch)
            self._began(problem, sum(len(row.value or b"") for one in batch for row in one.rows))
            if written:
                self._settle(batch, None)
            elif written is False:
                self._fail(batch, Unavailable(problem, soon=False))
            else:
                self._in_doubt = batch
                self._fail(batch, OutcomeUnknown(problem))
        else:
            self._settle(batch, None)

    def _fail(self, batch: list[T], error: StoreError) -> None:
        self._failed_era = batch[-1].era
        self._settle(batch, error)

    def _is_written(self, batch: list[T]) -> bool | None:
        """What the file itself says; None if it cannot be asked."""
        if self._file.displaced():  # what lies there now is not what was written to
            return None
        try:
            return self._file.reopen() >= batch[-1].rows[-1].revision
        except (sqlite3.Error, StoreError):
            return None

    def _settle_doubt(self) -> None:
        written = self._is_written(self._in_doubt) if self._in_doubt else None
        if written is not None:
            batch, self._in_doubt = self._in_doubt, []
            if written:
                self._failed_era += 1
                self._settle(batch, None)

    # -- trouble -----------------------------------------------------------------------------------

    def _began(self, problem: str, size: int) -> None:
        self._room_wanted = max(self._room_wanted, size)
        if not self.trouble:
            self.trouble, self._looked_at_s = problem, time.monotonic()
            if self._looked_at_s > self._opened_s + YOUNG_S:
                self._tell()

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            log.error("writes are refused until it has ended: %s", self.trouble)

    def _look_for_room(self) -> None:
        now_s = time.monotonic()
        if now_s < self._looked_at_s + LOOK_FOR_ROOM_EVERY_S:
            return
        self._looked_at_s = now_s
        self._settle_doubt()
        if not self._in_doubt and self._file.has_room(self._room_wanted + ROOM_TO_SPARE):
            if self._is_told:
                log.warning("writes are taken again: %s", self._file.path)
            self.trouble, self._room_wanted, self._is_told = "", 0, False
        else:
            self._tell()

    def _compact(self, revision: int) -> None:
        with suppress(sqlite3.Error):
            self._file.compact(revision)
            self._sweeping = True

    def _sweep(self) -> None:
        try:
            self._sweeping = self._file.sweep(SWEEP_REVISIONS)
        except sqlite3.Error:
            self._sweeping = False  # the disk is full or ailing: the next compaction tries again

    def _scrub(self, scrub: Scrub) -> None:
        try:
            while self._file.sweep(SWEEP_REVISIONS):
                pass
            self._file.scrub()
        except sqlite3.Error as error:
            scrub.done(Unavailable(f"{self._file.path}: what was deleted may still lie there: {error}"))
        else:
            scrub.done(None)

    # -- the checkpointing thread ------------------------------------------------------------------

    def _checkpoint(self) -> None:
        while not self._stopping.wait(CHECKPOINT_EVERY_S):
            with suppress(sqlite3.Error):
                if self._file.checkpoint() > WAL_BYTES_MAX:
                    self._log_is_long.set()


def _nothing_was_written(error: Exception) -> bool:
    return getattr(error, "sqlite_errorname", "") in LEAVES_NOTHING
