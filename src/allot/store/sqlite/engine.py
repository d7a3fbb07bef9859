"""The embedded default: a key space in memory, a log on disk.

Where it sits
    This file is the half that lives on the event loop. It decides; `writer` writes;
    `file` knows how. Reads never leave memory.

What it promises
    S1  `transact` returns after its rows are synced, and reads show only what is synced.
    SQLITE2  What is acknowledged can be found again under the file's name. Once the files were removed
             or replaced it takes no more writes, until it is opened anew: looked at before a batch is
             acknowledged, and now and then before one takes off.
    SQLITE1  A compare, and a write that revises, see the transactions that are still on their way to
             the disk: they may build on what will be there, and fail with it if it fails.

How a transaction travels
    It is decided against the key space and, above that, what is `ahead` of it: keys that
    a transaction on its way to the disk will change. If the decision would refuse because
    of something that is not yet certain, it waits and decides again: a refusal shows
    others' writes, and a write that may still fail must not be shown. Decided, it gets the
    next revision. All that is decided in one turn of the loop takes off together: the writer
    gets few large batches and wakes when the turn is over, for a thread that wants the
    interpreter in the middle of a turn slows down both. When the writer hands it back, the key
    space commits it, the watchers hear of it and the caller wakes, all in one turn. Of a large
    batch only some arrive in one turn: every caller that wakes has work to do.
"""

import asyncio
import copy
import gc
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from allot.base import require

from ..contract import (
    Change,
    Committed,
    Compare,
    Delete,
    Entry,
    OutcomeUnknown,
    Page,
    Put,
    Refused,
    StoreError,
    Unavailable,
    Write,
)
from ..keyspace import HISTORY_BYTES_MAX, KeySpace, require_distinct, settled
from ..watch import LocalWatch, Watches, forever
from .file import PLACES, LogFile, Row, first_id
from .writer import Compaction, Scrub, Transaction, Writer

log = logging.getLogger(__name__)

REPLAYED_MAX = 50_000  # revisions whose history a store that opens brings back to memory
FORGOTTEN_PER_COMPACTION = 5_000  # revisions that history lets go of before the disk does
LOOKED_WITHIN_S = 0.1  # before a batch takes off; before it is acknowledged the files are looked at each time
ARRIVALS_PER_TURN = 64  # so that a turn of the loop, with what the callers do next, stays short
ARRIVING_BYTES_PER_TURN = 4 << 20  # so that watchers can take what is large before history forgets it


class Ahead(msgspec.Struct, frozen=True, gc=False):
    """A key as it will be once everything decided is written."""

    revision: int  # 0 when it will not exist
    created: int
    last: int  # the revision of the transaction that makes it so
    value: bytes | None


class Flight(Transaction):
    """A transaction on its way to the disk."""

    __slots__ = ("done", "revision", "writes")

    def __init__(
        self,
        era: int,
        rows: Sequence[Row],
        revision: int,
        writes: Sequence[Write],
        done: asyncio.Future[Committed],
    ) -> None:
        super().__init__(era, rows)
        self.revision = revision
        self.writes = writes
        self.done = done


class SqliteStore:
    def __init__(self, path: Path, history_bytes_max: int = HISTORY_BYTES_MAX) -> None:
        self._file = LogFile(path)
        try:
            self._space = _load(self._file, history_bytes_max)
        except sqlite3.Error as error:
            self._file.close()
            raise Unavailable(f"{path}: {error}") from error
        except BaseException:
            self._file.close()
            raise
        self._watches = Watches(self._space)
        self._head = self._space.revision  # of everything decided, written or not
        self._ahead: dict[str, Ahead] = {}
        self._era = 0  # see writer
        self._compacted = self._space.history.floor
        self._departing: list[Flight] = []  # decided in this turn of the loop
        self._arriving: deque[Flight] = deque()  # written, and not yet committed in memory
        self._landing: asyncio.Future[None] | None = None  # for those who wait for the next flight to end
        self._displaced = ""  # what became of the files
        self._looked_s = 0.0  # when that was looked at last
        self._closed = False
        self._writer = Writer(self._file, self._hand_over)

    async def lost(self) -> str:
        return await forever()

    def trouble(self) -> str:
        if self._closed:
            return "the store is closed"
        return self._displaced if self._is_displaced() else self._writer.trouble

    def _is_displaced(self, looked_within_s: float = 0.0) -> bool:
        """Asked on the loop and not where it is written: there, every call of the system makes the
        writer wait for the interpreter. One look is good for `looked_within_s`."""
        now_s = time.monotonic()
        if self._displaced or now_s - self._looked_s < looked_within_s:
            return bool(self._displaced)
        self._looked_s = now_s
        if what := self._file.displaced():
            self._displaced = f"{what}: nothing is written any more until the server is started again"
            log.error("%s", self._displaced)
        return bool(self._displaced)

    # -- reading -----------------------------------------------------------------------------------

    async def get(self, key: str) -> Entry | None:
        self._require_open()
        return self._space.get(key)

    def peek(self, key: str) -> Entry | None:
        return self._space.get(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0) -> Page:
        self._require_open()
        return self._space.page(prefix, after, limit, at)

    async def revision(self) -> int:
        self._require_open()
        return self._space.revision

    def watch(self, prefix: str, after: int) -> LocalWatch:
        self._require_open()
        return self._watches.open(prefix, after)

    # -- deciding ----------------------------------------------------------------------------------

    async def transact(self, compares: Sequence[Compare], changes: Sequence[Change]) -> Committed | Refused:
        self._require_open()
        require_distinct(changes)
        while True:
            decision = self._decide(compares, changes)
            if isinstance(decision, Flight):
                return await decision.done
            if decision is not None:
                return decision
            await self._next_landing()
            self._require_open()

    def _decide(
        self, compares: Sequence[Compare], changes: Sequence[Change]
    ) -> Flight | Committed | Refused | None:
        """Start the transaction or answer it; None while the answer hangs on a flight."""
        differing: dict[str, Entry | None] = {}
        uncertain = False
        for key, revision in ((compare.key, compare.revision) for compare in compares):
            if (ahead := self._ahead.get(key)) is not None:
                uncertain |= ahead.revision != revision
            else:
                entry = self._space.get(key)
                if (entry.revision if entry is not None else 0) != revision:
                    differing[key] = entry
        if uncertain:
            return None
        if differing:
            return Refused(differing)
        try:
            writes = settled(changes, self._decided_value)
        except Exception:
            if any(change.key in self._ahead for change in changes):
                # It says no to something that may still not come true. Does it to what is certain? Then
                # it is told so now: a key that is always on its way would keep it waiting for ever.
                settled(changes, self._space.value)
                return None
            raise
        return self._depart(compares, writes)

    def _depart(self, compares: Sequence[Compare], writes: Sequence[Write]) -> Flight | Committed | None:
        revision = self._head + 1
        rows = self._rows(revision, writes)
        if not rows:
            touched = any(c.key in self._ahead for c in compares) or any(w.key in self._ahead for w in writes)
            return None if touched else Committed(self._space.revision)
        for row in rows:
            exists = row.value is not None
            created = row.created if exists else 0
            self._ahead[row.key] = Ahead(revision if exists else 0, created, revision, row.value)
        self._head = revision
        loop = asyncio.get_running_loop()
        flight = Flight(self._era, rows, revision, writes, loop.create_future())
        if not self._departing:
            loop.call_soon(self._take_off)
        self._departing.append(flight)
        return flight

    def _take_off(self) -> None:
        departing, self._departing = self._departing, []
        if departing and self._is_displaced(LOOKED_WITHIN_S):
            self._land(departing, Unavailable(self._displaced, soon=False))
        elif departing:
            self._writer.put(departing)

    def _rows(self, revision: int, writes: Sequence[Write]) -> list[Row]:
        require(len(writes) < PLACES, f"a transaction has fewer than {PLACES} writes")
        rows: list[Row] = []
        for write in writes:
            write.key.encode()  # a key that is no text must fail here, not in somebody's batch
            previous, created = self._decided(write.key)
            row_id = first_id(revision) + len(rows)
            if isinstance(write, Put):
                rows.append(Row(row_id, previous, created or revision, write.key, write.value))
            elif previous:
                rows.append(Row(row_id, previous, created, write.key, None))
        return rows

    def _decided(self, key: str) -> tuple[int, int]:
        """The revision and creation of a key once everything decided is written."""
        if (ahead := self._ahead.get(key)) is not None:
            return ahead.revision, ahead.created
        entry = self._space.get(key)
        return (entry.revision, entry.created) if entry is not None else (0, 0)

    def _decided_value(self, key: str) -> bytes | None:
        ahead = self._ahead.get(key)
        return ahead.value if ahead is not None else self._space.value(key)

    async def _next_landing(self) -> None:
        if self._landing is None:
            self._landing = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._landing)

    # -- landing -----------------------------------------------------------------------------------

    def _hand_over(self, batch: list[Flight], error: StoreError | None) -> None:
        """From the writer's thread to the loop's."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits for an answer
            batch[0].done.get_loop().call_soon_threadsafe(self._land, batch, error)

    def _land(self, batch: list[Flight], error: StoreError | None) -> None:
        if error is None and self._is_displaced():
            error = OutcomeUnknown(self._displaced)
        is_first = not self._arriving
        failed, adopted = error is not None, batch[0].era < self._era
        if not failed:
            self._arriving.extend(batch)
        if not failed and not adopted:
            if is_first:  # else their turn comes after the others'
                self._arrive_some()
            return
        self._arrive_all()
        if error is not None:
            for flight in batch:
                if not flight.done.done():
                    flight.done.set_exception(copy.copy(error))
        if failed != adopted:  # a failure that follows another, or a batch in doubt that is there after all
            self._begin_era()
        self._tell_waiting()

    def _arrive_some(self) -> None:
        arrived, size = 0, 0
        while self._arriving and arrived < ARRIVALS_PER_TURN and size < ARRIVING_BYTES_PER_TURN:
            flight = self._arriving.popleft()
            self._arrive(flight)
            arrived += 1
            size += sum(len(row.value) for row in flight.rows if row.value is not None)
        if self._arriving:
            asyncio.get_running_loop().call_soon(self._arrive_some)
        self._tell_waiting()

    def _arrive_all(self) -> None:
        while self._arriving:
            self._arrive(self._arriving.popleft())

    def _tell_waiting(self) -> None:
        if self._landing is not None:
            self._landing.set_result(None)
            self._landing = None
        self._follow_history()

    def _arrive(self, flight: Flight) -> None:
        """Written: commit, tell the watchers, wake the caller."""
        self._watches.publish(self._space.commit(flight.writes))
        require(self._space.revision == flight.revision, "S1: what is written is what was decided")
        for row in flight.rows:
            ahead = self._ahead.get(row.key)
            if ahead is not None and ahead.last == flight.revision:
                del self._ahead[row.key]
        if not flight.done.done():
            flight.done.set_result(Committed(flight.revision))

    def _begin_era(self) -> None:
        """Forget what was decided and not written; see `writer`."""
        self._era += 1
        self._head = self._space.revision
        self._ahead.clear()

    # -- compaction and the end ----------------------------------------------------------------------

    async def compact(self, revision: int) -> None:
        self._require_open()
        self._space.compact(revision)
        self._compact_disk()

    async def scrub(self) -> None:
        self._require_open()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._writer.put(Scrub(lambda error: loop.call_soon_threadsafe(_end, done, error)))
        await done

    def _follow_history(self) -> None:
        """Let the disk forget what memory has forgotten by itself."""
        if self._space.history.floor - self._compacted > FORGOTTEN_PER_COMPACTION:
            self._compact_disk()

    def _compact_disk(self) -> None:
        if self._space.history.floor > self._compacted:
            self._compacted = self._space.history.floor
            self._writer.put(Compaction(self._compacted))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._take_off()
            await asyncio.to_thread(self._writer.stop)
            self._arrive_all()
            self._watches.close()
            self._file.close()

    def check(self) -> None:
        """Verify what no single method can see. Slow: for tests and `sim`."""
        self._space.check()
        require(bool(self._ahead) == (self._head > self._space.revision), "only flights are ahead")

    def _require_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")


def _end(waiting: asyncio.Future[None], error: StoreError | None) -> None:
    if waiting.done():
        return
    if error is None:
        waiting.set_result(None)
    else:
        waiting.set_exception(error)


def _load(file: LogFile, history_bytes_max: int) -> KeySpace:
    """Read the log from first to last: the state at some revision, then what happened since."""
    collecting = gc.isenabled()
    gc.disable()  # half a million new objects and not one of them garbage
    try:
        base = max(file.compacted, file.written_up_to() - REPLAYED_MAX)
        space = KeySpace.restored(_state_at(file, base), base, history_bytes_max)
        _replay(file, space)
        return space
    finally:
        if collecting:
            gc.enable()


def _state_at(file: LogFile, revision: int) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for row_id, _, created, key, value in file.rows(0, revision + 1):
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = Entry(key, value, created, row_id // PLACES)
    return entries


def _replay(file: LogFile, space: KeySpace) -> None:
    writes: list[Write] = []
    for row in file.rows(space.revision + 1):
        if row.revision > space.revision + 1:
            space.commit(writes)
            writes = []
            if row.revision != space.revision + 1:
                raise Unavailable(
                    f"{file.path} is damaged: revision {space.revision + 1} is missing between those before "
                    f"and revision {row.revision}"
                )
        writes.append(Put(row.key, row.value) if row.value is not None else Delete(row.key))
    space.commit(writes)
