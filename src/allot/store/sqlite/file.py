"""The log on disk.

One table. Every change of a key is a row, appended in order; the present is what
is left when the rows are read from first to last. There is no index: reads are
answered from memory, so an index would only make writes touch more pages.

    id        the revision, and the place in its transaction
    previous  the revision of the row this one replaces, 0 if the key is new
    created   the revision that created the key
    key
    value     NULL when the key was deleted

`previous` is what makes compaction possible without an index: sweeping over the
rows up to the compacted revision, each names the row that it made superfluous,
and a deletion is superfluous itself.

What it promises
    S1  When `append` returns, all of it is on the disk; when it raises, all or
        nothing of it is, and `written_up_to` tells which.
    One process at a time: a second one is refused with a message that names the first.
    What is written under its name can be found there: `displaced` tells when files were
    removed or replaced under a running store, which would go on writing where nobody looks.

Why one statement for a batch
    Python gives up its global lock around every step of SQLite and waits to have
    it back, for milliseconds when the event loop is busy. A batch as one INSERT
    is its own transaction: the lock changes hands once for write, sync and all.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from allot.base import FileLock, HeldByAnother, os_reason

from ..contract import InUse, Unavailable

PLACES = 1 << 16  # writes one transaction can hold
ROWS_PER_STATEMENT = 250
PAGE_BYTES = 8192
TRIED_BYTES_MAX = 4 << 20
APPLICATION_ID = 0x416C6C74  # "Allt"
FORMAT = 1

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE log (
    id INTEGER PRIMARY KEY, previous INTEGER NOT NULL, created INTEGER NOT NULL, key TEXT NOT NULL, value BLOB
);
CREATE TABLE mark (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO mark VALUES ('compacted', 1), ('swept', 1);
"""

# For each new row the one old row that it names. CROSS and + leave SQLite no other way: by itself it
# makes an index of the whole log, for every sweep.
SWEEP = f"""
DELETE FROM log WHERE id IN (
    SELECT old.id FROM log AS new CROSS JOIN log AS old
        ON old.id >= new.previous * {PLACES} AND old.id < (new.previous + 1) * {PLACES}
            AND +old.key = +new.key
        WHERE new.id >= :first AND new.id < :end AND new.previous > 0
    UNION ALL
    SELECT id FROM log WHERE id >= :first AND id < :end AND value IS NULL
)
"""

INSERTS = [
    "INSERT INTO log VALUES " + ",".join(["(?,?,?,?,?)"] * count) for count in range(ROWS_PER_STATEMENT + 1)
]


class Row(NamedTuple):
    id: int
    previous: int
    created: int
    key: str
    value: bytes | None

    @property
    def revision(self) -> int:
        return self.id // PLACES


def first_id(revision: int) -> int:
    return revision * PLACES


class LogFile:
    """Blocking. Its methods belong to one thread, except for `checkpoint`, which belongs to another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _lock(path)
        try:
            _create(path)
            self._db = self._connect()
            self._prepare()
            self._checkpointing = self._connect()
            self._places = self._found_places()
        except sqlite3.Error as error:
            self._lock.release()
            raise Unavailable(f"{path}: {error}") from error
        except BaseException:
            self._lock.release()
            raise

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.path,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=ROWS_PER_STATEMENT + 20,
        )
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("PRAGMA busy_timeout = 5000")
        return db

    def _prepare(self) -> None:
        """Make the file ours if it is new; refuse it if it is somebody else's."""
        (mode,) = self._db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise Unavailable(f"{self.path}: the file system offers no write-ahead log (journal mode {mode})")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA wal_autocheckpoint = 0")
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            self._db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (form,) = self._db.execute("PRAGMA user_version").fetchone()
        if (application, form) != (APPLICATION_ID, FORMAT):
            raise Unavailable(
                f"{self.path} is not a store of this version (format {form}, expected {FORMAT})"
            )

    def _found_places(self) -> dict[str, tuple[int, int]]:
        return {name: _place(name) for name in (f"{self.path}", f"{self.path}-wal")}

    def displaced(self) -> str:
        """What became of the files, if they are not the ones that were opened; else nothing."""
        for name, (device, inode) in self._places.items():
            try:
                found = os.stat(name)
                if found.st_ino != inode or found.st_dev != device:
                    return f"{name} was replaced while it was in use"
            except OSError as gone:
                return f"{name} was removed while it was in use ({os_reason(gone)})"
        return ""

    def has_room(self, size: int) -> bool:
        """Whether the file system says that so many bytes could be written, and takes some of them.

        They are no part of the log: revisions are above 0.
        """
        try:
            disk = os.statvfs(self.path.parent)
            if disk.f_bavail * disk.f_frsize < size:
                return False
            tried = min(size, TRIED_BYTES_MAX)
            self._db.execute("INSERT OR REPLACE INTO log VALUES (-1, 0, 0, '', zeroblob(?))", (tried,))
            self._db.execute("DELETE FROM log WHERE id = -1")
        except (OSError, sqlite3.Error):
            return False
        return True

    # -- reading, once, when the store opens ---------------------------------------------------

    @property
    def compacted(self) -> int:
        return self._mark("compacted")

    def rows(self, first: int, end: int | None = None) -> Iterator[Row]:
        """Every row whose revision is at least `first` and less than `end`, in order."""
        until = 1 << 63 if end is None else first_id(end)
        asked = (first_id(first), until - 1)
        for row in self._db.execute("SELECT * FROM log WHERE id >= ? AND id <= ? ORDER BY id", asked):
            key, value = row[3], row[4]
            if type(key) is not str:
                raise Unavailable(f"{self.path} is damaged: the key of row {row[0]} is not text: {key!r}")
            if value is not None and type(value) is not bytes:  # not written by us: it is what it is
                row = (*row[:4], str(value).encode())
            yield Row._make(row)

    def written_up_to(self) -> int:
        """The revision of the file."""
        (last,) = self._db.execute("SELECT max(id) FROM log").fetchone()
        return max((last or 0) // PLACES, self.compacted)

    # -- writing --------------------------------------------------------------------------------

    def append(self, rows: Sequence[Row]) -> None:
        """Write all rows in one transaction, durably."""
        if len(rows) <= ROWS_PER_STATEMENT:
            self._db.execute(INSERTS[len(rows)], list(chain.from_iterable(rows)))
            return
        with self._transaction():
            for first in range(0, len(rows), ROWS_PER_STATEMENT):
                some = rows[first : first + ROWS_PER_STATEMENT]
                self._db.execute(INSERTS[len(some)], list(chain.from_iterable(some)))

    def compact(self, revision: int) -> None:
        """Promise that nothing before `revision` is needed any more. `sweep` frees the space."""
        self._db.execute("UPDATE mark SET revision = max(revision, ?) WHERE name = 'compacted'", (revision,))

    def sweep(self, revisions: int) -> bool:
        """Remove what compaction made superfluous, some revisions at a time. True if more is left."""
        swept, compacted = self._mark("swept"), self.compacted
        upto = min(swept + revisions, compacted)
        if upto > swept:
            with self._transaction():
                self._db.execute(SWEEP, {"first": first_id(swept + 1), "end": first_id(upto + 1)})
                self._db.execute("UPDATE mark SET revision = ? WHERE name = 'swept'", (upto,))
        return upto < compacted

    def scrub(self) -> None:
        """Write the file anew, without what is no row of it any more, and empty the write-ahead log."""
        self._db.execute("VACUUM")
        (busy, _, _) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("the write-ahead log is busy")

    def reopen(self) -> int:
        """After an error that leaves the truth open: read it from the disk, and make it durable.

        The write-ahead log is copied into the file and synced there, for a sync
        that failed once may report success later without having written.
        """
        self._db.close()
        self._db = self._connect()
        self._prepare()
        (busy, _, _) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("the write-ahead log is busy")
        self._places = (
            self._found_places()
        )  # with its last connection SQLite removes the log, and makes another
        return self.written_up_to()

    def finish_checkpoint(self) -> None:
        """Copy what `checkpoint` left, while nobody writes, so that the log starts from its beginning."""
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def checkpoint(self) -> int:
        """Copy the write-ahead log into the file beside the writer; the log's size in bytes."""
        (_, frames, _) = self._checkpointing.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return int(frames) * PAGE_BYTES

    def close(self) -> None:
        self._checkpointing.close()
        self._db.close()
        self._lock.release()

    def _mark(self, name: str) -> int:
        (revision,) = self._db.execute("SELECT revision FROM mark WHERE name = ?", (name,)).fetchone()
        return int(revision)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise


def _lock(path: Path) -> FileLock:
    """On a file of its own: closing any descriptor of the database would drop SQLite's own locks on it."""
    try:
        return FileLock(Path(f"{path}.lock"))
    except HeldByAnother as taken:
        raise InUse(f"{path} is in use by process {taken.holder}") from None


def _place(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _create(path: Path) -> None:
    """The file holds secrets: only its owner may read it. SQLite gives its side files the same mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)  # the name must survive a power cut as well as the content
    finally:
        os.close(directory)
