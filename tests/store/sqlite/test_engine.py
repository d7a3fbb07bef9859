"""What only the embedded engine does: deciding ahead of the disk, and failing well."""

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from allot.store import Committed, Compare, Delete, Entry, OutcomeUnknown, Put, Refused, Revise, Unavailable
from allot.store.sqlite import SqliteStore, engine
from allot.store.sqlite.file import LogFile, Row

from ..places import run, take


class Stubborn(LogFile):
    """A log whose disk can be stopped, and made to fail as disks do."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go = threading.Event()
        self.go.set()
        self.failure = ""
        self.fails_after_writing = False
        self.cannot_open = False
        self.batches: list[int] = []

    def append(self, rows: Sequence[Row]) -> None:
        self.go.wait(10)
        self.batches.append(len(rows))
        if self.failure and not self.fails_after_writing:
            raise failed(self.failure)
        super().append(rows)
        if self.failure:
            raise failed(self.failure)

    def reopen(self) -> int:
        if self.cannot_open:
            raise failed("SQLITE_CANTOPEN")
        return super().reopen()


def failed(name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(f"disk trouble ({name})")
    error.sqlite_errorname = name
    return error


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[Stubborn]:
    """Every file that a store opens, in order."""
    opened: list[Stubborn] = []

    def opening(path: Path) -> Stubborn:
        opened.append(Stubborn(path))
        return opened[-1]

    monkeypatch.setattr(engine, "LogFile", opening)
    return opened


async def soon() -> None:
    for _ in range(10):
        await asyncio.sleep(0.005)


def test_what_waits_for_the_disk_is_written_at_once(files: list[Stubborn], tmp_path: Path):
    """Group commit: one sync for all that came while the last one was under way."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        files[0].go.clear()
        waiting = [asyncio.ensure_future(store.transact([], [Put(f"/{i}", b"")])) for i in range(20)]
        await soon()
        files[0].go.set()
        answers = await asyncio.gather(*waiting)

        assert answers == [Committed(revision) for revision in range(2, 22)]
        assert len(files[0].batches) <= 2
        await store.close()

    run(story())


def test_nothing_is_shown_before_it_is_durable(files: list[Stubborn], tmp_path: Path):
    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        watch = store.watch("", 1)
        hearing = asyncio.ensure_future(take(watch, 1))
        files[0].go.clear()
        writing = asyncio.ensure_future(store.transact([], [Put("/a", b"")]))
        await soon()

        assert not writing.done() and not hearing.done()
        assert await store.get("/a") is None
        assert await store.revision() == 1
        assert store.peek("/a") is None

        files[0].go.set()
        assert await writing == Committed(2)
        assert hearing.done() or await hearing
        await store.close()

    run(story())


def test_a_compare_sees_what_is_on_its_way_to_the_disk(files: list[Stubborn], tmp_path: Path):
    """Two creators in one batch: the second is refused, and only when the first is durable."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        files[0].go.clear()
        first = asyncio.ensure_future(store.transact([Compare("/a", 0)], [Put("/a", b"1")]))
        second = asyncio.ensure_future(store.transact([Compare("/a", 0)], [Put("/a", b"2")]))
        await soon()
        assert not second.done()

        files[0].go.set()
        assert await first == Committed(2)
        assert await second == Refused({"/a": Entry("/a", b"1", 2, 2)})
        await store.close()

    run(story())


def test_a_batch_may_change_a_key_several_times(files: list[Stubborn], tmp_path: Path):
    """Each row must name the one it replaces, though none of them is written yet."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        files[0].go.clear()
        chain = [
            store.transact([Compare("/a", 0)], [Put("/a", b"1")]),
            store.transact([Compare("/a", 2)], [Put("/a", b"2")]),
            store.transact([Compare("/a", 3)], [Delete("/a")]),
            store.transact([Compare("/a", 0)], [Put("/a", b"3")]),
        ]
        waiting = [asyncio.ensure_future(one) for one in chain]
        await soon()
        files[0].go.set()
        assert await asyncio.gather(*waiting) == [Committed(revision) for revision in (2, 3, 4, 5)]
        await store.close()

        again = SqliteStore(tmp_path / "db")
        assert await again.get("/a") == Entry("/a", b"3", 5, 5)
        rows = [(row.revision, row.previous, row.created) for row in files[-1].rows(2)]
        assert rows == [(2, 0, 2), (3, 2, 2), (4, 3, 2), (5, 0, 5)]
        await again.close()

    run(story())


def test_a_compare_waits_for_a_write_that_then_fails(files: list[Stubborn], tmp_path: Path):
    """Refusing at once would have shown a write that never was."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        files[0].go.clear()
        files[0].failure = "SQLITE_FULL"
        first = asyncio.ensure_future(store.transact([Compare("/a", 0)], [Put("/a", b"1")]))
        await soon()
        second = asyncio.ensure_future(store.transact([Compare("/a", 0)], [Put("/a", b"2")]))
        await soon()
        files[0].go.set()
        with pytest.raises(Unavailable):
            await first
        files[0].failure = ""

        assert isinstance(await asyncio.wait_for(settled(store, second), 5), Committed)
        assert (await store.get("/a")) == Entry("/a", b"2", 2, 2)
        await store.close()

    async def settled(
        store: SqliteStore, second: "asyncio.Future[Committed | Refused]"
    ) -> Committed | Refused:
        try:
            return await second
        except Unavailable:  # it may have been tried while the disk was still full
            return await store.transact([Compare("/a", 0)], [Put("/a", b"2")])

    run(story())


def test_revisions_of_one_key_are_written_in_one_batch(files: list[Stubborn], tmp_path: Path):
    """Each builds on what the one before will have written; none waits for the disk to say so."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        files[0].go.clear()
        away = asyncio.ensure_future(store.transact([], [Put("/away", b"")]))
        await soon()
        waiting = [
            asyncio.ensure_future(store.transact([], [Revise("/a", lambda value: (value or b"") + b"x")]))
            for _ in range(20)
        ]
        await soon()
        files[0].go.set()
        assert await away == Committed(2)
        assert await asyncio.gather(*waiting) == [Committed(revision) for revision in range(3, 23)]
        assert files[0].batches == [1, 20]
        assert await store.get("/a") == Entry("/a", b"x" * 20, 3, 22)
        await store.close()

    run(story())


def test_a_revision_says_no_only_to_what_has_come_true(files: list[Stubborn], tmp_path: Path):
    """The write that stood in its way fails: nobody must have been told of it."""

    def alone(value: bytes | None) -> bytes:
        if value is not None:
            raise LookupError(value)
        return b"mine"

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        files[0].go.clear()
        files[0].failure = "SQLITE_FULL"
        first = asyncio.ensure_future(store.transact([], [Put("/a", b"theirs")]))
        await soon()
        second = asyncio.ensure_future(store.transact([], [Revise("/a", alone)]))
        await soon()
        assert not second.done()
        files[0].go.set()
        with pytest.raises(Unavailable):
            await first
        files[0].failure = ""
        with suppress(Unavailable):  # it may have been tried while the disk was still full
            await second
        await store.transact([], [Revise("/a", lambda value: value or alone(value))])
        entry = await store.get("/a")
        assert entry is not None and entry.value == b"mine"

        files[0].go.clear()
        third = asyncio.ensure_future(store.transact([], [Put("/b", b"theirs")]))
        fourth = asyncio.ensure_future(store.transact([], [Revise("/b", alone)]))
        await soon()
        assert not fourth.done(), "not before it is certain"
        files[0].go.set()
        assert isinstance(await third, Committed)
        with pytest.raises(LookupError):
            await fourth

        files[0].go.clear()
        busy = asyncio.ensure_future(store.transact([], [Put("/b", b"theirs still")]))
        await soon()
        with pytest.raises(LookupError):  # what is there already is certain enough
            await asyncio.wait_for(store.transact([], [Revise("/b", alone)]), 2)
        files[0].go.set()
        await busy
        await store.close()

    run(story())


def test_a_full_disk_fails_what_was_decided_upon_it_and_no_more(files: list[Stubborn], tmp_path: Path):
    """The second transaction builds on the first, so it cannot outlive it."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        await store.transact([], [Put("/kept", b"")])
        files[0].go.clear()
        files[0].failure = "SQLITE_FULL"
        doomed = [asyncio.ensure_future(store.transact([], [Put(f"/{i}", b"")])) for i in range(5)]
        await soon()
        files[0].go.set()
        outcomes = await asyncio.gather(*doomed, return_exceptions=True)
        files[0].failure = ""

        assert {type(outcome) for outcome in outcomes} == {Unavailable}
        assert await store.transact([], [Put("/after", b"")]) == Committed(3)
        store.check()
        await store.close()
        again = SqliteStore(tmp_path / "db")
        assert [e.key for e in (await again.range("")).entries] == ["/after", "/kept"]
        await again.close()

    run(story())


@pytest.mark.parametrize("written", [True, False])
def test_after_a_failed_sync_the_file_itself_says_what_it_holds(
    files: list[Stubborn], tmp_path: Path, written: bool
):
    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        files[0].failure, files[0].fails_after_writing = "SQLITE_IOERR_FSYNC", written
        if written:
            assert await store.transact([], [Put("/a", b"")]) == Committed(2)
        else:
            with pytest.raises(Unavailable):
                await store.transact([], [Put("/a", b"")])
        files[0].failure = ""
        assert (await store.get("/a") is not None) == written
        assert isinstance(await store.transact([], [Put("/b", b"")]), Committed)
        store.check()
        await store.close()

    run(story())


@pytest.mark.parametrize("written", [True, False])
def test_an_outcome_in_doubt_is_settled_before_anything_else_is_written(
    files: list[Stubborn], tmp_path: Path, written: bool
):
    """The sync failed and the file cannot be opened either: the caller hears that nobody knows.

    Once the disk is back the write turns out to be there, or not; either way watchers, readers and
    the file agree, and revisions have no gap.
    """

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        watch = store.watch("", 1)
        files[0].failure, files[0].fails_after_writing = "SQLITE_IOERR_FSYNC", written
        files[0].cannot_open = True
        with pytest.raises(OutcomeUnknown):
            await store.transact([], [Put("/a", b"")])
        with pytest.raises(Unavailable):
            await store.transact([], [Put("/b", b"")])
        files[0].failure, files[0].cannot_open = "", False
        answer = None
        while answer is None:
            with suppress(Unavailable):  # if it was decided before the doubt was settled
                answer = await store.transact([], [Put("/c", b"")])

        found = [event.key for event in await take(watch, 2 if written else 1)]
        assert found == (["/a", "/c"] if written else ["/c"])
        assert answer == Committed(1 + len(found))
        store.check()
        await store.close()
        again = SqliteStore(tmp_path / "db")
        assert [e.key for e in (await again.range("")).entries] == found
        await again.close()

    run(story())


def test_a_caller_that_gives_up_does_not_stop_its_write(files: list[Stubborn], tmp_path: Path):
    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        files[0].go.clear()
        writing = asyncio.ensure_future(store.transact([], [Put("/a", b"")]))
        await soon()
        writing.cancel()
        await soon()
        files[0].go.set()
        assert await store.transact([], [Put("/b", b"")]) == Committed(3)
        assert await store.get("/a") is not None
        await store.close()

    run(story())


def test_a_key_that_is_no_text_harms_only_its_own_transaction(tmp_path: Path):
    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        with pytest.raises(UnicodeEncodeError):
            await store.transact([], [Put("/\ud800", b"")])
        assert await store.transact([], [Put("/a", b"")]) == Committed(2)
        await store.close()

    run(story())


def test_a_transaction_may_be_larger_than_a_statement(tmp_path: Path):
    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        await store.transact([], [Put(f"/{i:04}", b"%d" % i) for i in range(1500)])
        await store.close()
        again = SqliteStore(tmp_path / "db")
        assert {e.revision for e in (await again.range("")).entries} == {2}
        assert len((await again.range("")).entries) == 1500
        await again.close()

    run(story())


class ByHand:
    """A writer that waits to be told what became of each transaction."""

    def __init__(self, file: LogFile, settle: object) -> None:
        self.flights: list[engine.Flight] = []
        self.batches: list[int] = []  # how many took off together

    def put(self, item: object) -> None:
        if isinstance(item, list):
            self.flights += item
            self.batches.append(len(item))

    def stop(self) -> None:
        pass


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "Writer", ByHand)


async def departed(store: SqliteStore, *transactions: tuple[Sequence[Compare], Sequence[Put]]):
    waiting = [asyncio.ensure_future(store.transact(*one)) for one in transactions]
    for _ in range(2):  # one turn decides, and what it decided takes off in the next
        await asyncio.sleep(0)
    return waiting


@pytest.mark.usefixtures("by_hand")
def test_a_key_stays_ahead_until_the_last_flight_that_changes_it_has_landed(tmp_path: Path):
    """Two writes of a key in two batches: when the first has landed, the second still counts."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        flights = store._writer.flights  # type: ignore[attr-defined]
        first, second = await departed(store, ([], [Put("/a", b"1")]), ([], [Put("/a", b"2")]))
        store._land(flights[:1], None)
        assert await first == Committed(2)

        (third,) = await departed(store, ([Compare("/a", 2)], [Put("/a", b"3")]))
        assert not third.done() and len(flights) == 2, "it would overwrite what it has not seen"
        store._land(flights[1:], None)
        assert await second == Committed(3)
        assert await third == Refused({"/a": Entry("/a", b"2", 2, 3)})
        await store.close()

    run(story())


@pytest.mark.usefixtures("by_hand")
def test_what_is_decided_in_one_turn_of_the_loop_takes_off_together(tmp_path: Path):
    """The writing thread is woken once for all of it, not once for each."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        waiting = await departed(store, *(([], [Put(f"/{n}", b"")]) for n in range(5)))
        waiting += await departed(store, ([], [Put("/later", b"")]))
        assert store._writer.batches == [5, 1]  # type: ignore[attr-defined]
        store._land(store._writer.flights, None)  # type: ignore[attr-defined]
        assert [one.revision for one in await asyncio.gather(*waiting)] == [2, 3, 4, 5, 6, 7]
        await store.close()

    run(story())


@pytest.mark.usefixtures("by_hand")
def test_a_large_batch_arrives_over_several_turns_in_order_and_before_a_later_failure(tmp_path: Path):
    """Each caller that wakes has work to do; others on the loop get their turn in between."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        flights = store._writer.flights  # type: ignore[attr-defined]
        many = 2 * engine.ARRIVALS_PER_TURN + 10
        waiting = await departed(store, *(([], [Put(f"/{n:03}", b"")]) for n in range(many)))
        store._land(flights[: many - 1], None)
        assert await store.revision() == 1 + engine.ARRIVALS_PER_TURN
        await asyncio.sleep(0)
        assert await store.revision() == 1 + 2 * engine.ARRIVALS_PER_TURN
        store._land(flights[many - 1 :], Unavailable("full"))
        assert await store.revision() == many, "what is written arrives before what failed is told"
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert answers[:-1] == [Committed(2 + n) for n in range(many - 1)]
        assert isinstance(answers[-1], Unavailable)
        store.check()
        await store.close()

    run(story())


@pytest.mark.usefixtures("by_hand")
def test_a_late_failure_of_an_old_era_does_not_disturb_the_new_one(tmp_path: Path):
    """Two batches fail one after the other, and something new is decided in between."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")
        flights = store._writer.flights  # type: ignore[attr-defined]
        old = await departed(store, ([], [Put("/a", b"")]), ([], [Put("/b", b"")]))
        store._land(flights[:1], Unavailable("full"))
        new = await departed(store, ([], [Put("/c", b"")]))
        store._land(flights[1:2], Unavailable("an earlier write failed"))
        new += await departed(store, ([], [Put("/d", b"")]))

        assert [flight.revision for flight in flights] == [2, 3, 2, 3]
        store._land(flights[2:], None)
        assert await asyncio.gather(*new) == [Committed(2), Committed(3)]
        assert {type(one) for one in await asyncio.gather(*old, return_exceptions=True)} == {Unavailable}
        store.check()
        await store.close()

    run(story())
