"""The log on disk: what compaction leaves, and that the log does not grow for ever."""

import asyncio
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.store import Delete, Entry, Put, Write
from allot.store.sqlite import SqliteStore, engine, writer
from allot.store.sqlite.file import SWEEP, LogFile, Row, first_id

from ..model import Model
from ..places import run

histories = st.lists(
    st.lists(
        st.one_of(
            st.builds(Put, st.sampled_from("abcd"), st.binary(max_size=2)),
            st.builds(Delete, st.sampled_from("abcd")),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda write: write.key,
    ),
    max_size=25,
)


def rows_of(model: Model, writes: list[Write]) -> list[Row]:
    before = model.maps[model.revision]
    events = model.commit(writes)
    return [
        Row(
            first_id(event.revision) + place,
            before[event.key].revision if event.key in before else 0,
            event.created,
            event.key,
            event.value,
        )
        for place, event in enumerate(events)
    ]


def replayed(file: LogFile) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for row in file.rows(0):
        entries.pop(row.key, None)
        if row.value is not None:
            entries[row.key] = Entry(row.key, row.value, row.created, row.revision)
    return entries


@settings(max_examples=30, deadline=None)
@given(history=histories, share=st.floats(0, 1), step=st.integers(1, 7), crash=st.booleans())
def test_sweeping_leaves_the_state_at_the_compacted_revision_and_all_that_came_later(
    tmp_path_factory: pytest.TempPathFactory, history: list[list[Write]], share: float, step: int, crash: bool
):
    """Every row that is left is needed; every revision from the compacted one on can still be told."""
    path = tmp_path_factory.mktemp("sweep") / "db"
    file, model = LogFile(path), Model(1)
    for writes in history:
        if rows := rows_of(model, writes):
            file.append(rows)
    compacted = 1 + round(share * (model.revision - 1))

    file.compact(compacted)
    while file.sweep(step):
        if crash:
            file.close()
            file = LogFile(path)

    later = [event for event in model.events if event.revision > compacted]
    kept = list(file.rows(0))
    assert replayed(file) == model.maps[model.revision]
    assert [row.revision for row in kept if row.revision > compacted] == [event.revision for event in later]
    assert {row.key: row.revision for row in kept if row.revision <= compacted} == {
        key: entry.revision for key, entry in model.maps[compacted].items()
    }
    assert file.written_up_to() == model.revision
    file.close()


def test_the_disk_forgets_what_memory_has_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ten keys written over and over: history outgrows its budget, and disk follows memory."""
    monkeypatch.setattr(engine, "FORGOTTEN_PER_COMPACTION", 50)

    async def story() -> None:
        store = SqliteStore(tmp_path / "db", history_bytes_max=100_000)
        for number in range(800):
            await store.transact([], [Put(f"/{number % 10}", random.Random(number).randbytes(1000))])
        await store.close()
        again = SqliteStore(tmp_path / "db", history_bytes_max=100_000)
        assert len((await again.range("")).entries) == 10
        assert await again.revision() == 801
        await again.close()

    run(story())
    file = LogFile(tmp_path / "db")
    assert sum(1 for _ in file.rows(0)) < 400
    file.close()


def test_the_write_ahead_log_is_used_again_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Under a load that never pauses a passive checkpoint never catches up; the writer then helps."""
    monkeypatch.setattr(writer, "CHECKPOINT_EVERY_S", 0.02)
    monkeypatch.setattr(writer, "WAL_BYTES_MAX", 1 << 20)
    grown: list[tuple[int, int]] = []  # bytes written so far, and the size of the log

    async def story() -> None:
        store = SqliteStore(tmp_path / "db")

        async def write(task: int, round: int) -> None:
            for number in range(40):
                await store.transact([], [Put(f"/{task}/{round}/{number}", b"." * 4000)])

        for round in range(100):
            await asyncio.gather(*(write(task, round) for task in range(8)))
            grown.append(((round + 1) * 8 * 40 * 4000, os.stat(tmp_path / "db-wal").st_size))
            if grown[-1][0] > 4 * grown[-1][1]:
                break
        await store.close()

    run(story())
    written, size = grown[-1]
    assert written > 4 * size, "everything that was written went through it"


def test_a_sweep_looks_at_the_rows_it_is_about_and_no_others(tmp_path: Path):
    """Left to itself SQLite reads the whole log for each sweep, and compaction never catches up."""
    file = LogFile(tmp_path / "db")
    plan = file._db.execute(f"EXPLAIN QUERY PLAN {SWEEP}", {"first": 1, "end": 2}).fetchall()
    steps = [step for *_, step in plan if step.startswith(("SCAN", "SEARCH"))]
    assert steps
    assert all("USING INTEGER PRIMARY KEY" in step for step in steps), steps
    file.close()
