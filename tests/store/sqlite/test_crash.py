"""S1 against kill -9, a torn last write and a full disk."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.store import Committed, Compare, Delete, Put, Unavailable, open_store
from allot.store.sqlite import SqliteStore

from ..places import run, take

ROOT = Path(__file__).parents[3]
WRITES = 60


def test_no_acknowledged_write_is_lost_to_kill_9_and_none_is_doubled():
    """A few rounds of what bench/crash_rounds.py does a hundred times."""
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "crash_rounds.py", "--rounds", "4"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["acknowledged"] > 0


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store's files as a power cut would leave them, all of it still in the write-ahead log."""
    folder = tmp_path_factory.mktemp("cut_off")

    async def story() -> None:
        store = open_store("sqlite", folder / "living")
        for number in range(WRITES):
            write = Delete("/k/3") if number == 40 else Put(f"/k/{number % 10}", b"%d" % number * 50)
            await store.transact([], [write, Put("/last", b"%d" % number)])
        shutil.copytree(folder / "living", folder / "copy")
        await store.close()

    run(story())
    return folder / "copy"


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_torn_last_write_costs_that_write_and_nothing_else(
    cut_off: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
):
    """Cut the log anywhere, or garble its end: what is left is the history up to some revision, whole."""
    folder = tmp_path_factory.mktemp("torn") / "store"
    shutil.copytree(cut_off, folder)
    log = folder / "allot.db-wal"
    content = log.read_bytes()
    cut = data.draw(st.integers(len(content) // 3, len(content)), label="cut")
    garbage = data.draw(st.binary(max_size=40), label="garbage")
    log.write_bytes(content[:cut] + garbage + b"\0" * data.draw(st.integers(0, 5000), label="zeros"))

    async def story() -> None:
        store = open_store("sqlite", folder)
        revision = await store.revision()
        survived = revision - 1
        assert 0 < survived <= WRITES
        if cut == len(content):
            assert survived == WRITES
        history = await take(store.watch("/last", 1), survived)
        assert [event.value for event in history] == [b"%d" % number for number in range(survived)]
        page = await store.range("/k/")
        assert {e.key: e.value for e in page.entries} == expected_after(survived)
        assert await store.transact([Compare("/new", 0)], [Put("/new", b"")]) == Committed(revision + 1)
        await store.close()

    run(story())


def expected_after(writes: int) -> dict[str, bytes]:
    entries: dict[str, bytes] = {}
    for number in range(writes):
        if number == 40:
            entries.pop("/k/3", None)
        else:
            entries[f"/k/{number % 10}"] = b"%d" % number * 50
    return entries


def test_a_second_process_is_told_who_has_the_file(tmp_path: Path):
    async def story() -> None:
        store = open_store("sqlite", tmp_path)
        program = f"from allot.store import open_store; open_store('sqlite:{tmp_path}/allot.db')"
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True
        )
        assert done.returncode != 0
        assert f"allot.db is in use by process {os.getpid()}" in done.stderr
        await store.close()
        again = open_store("sqlite", tmp_path)
        await again.close()

    run(story())


def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path: Path):
    theirs = tmp_path / "allot.db"
    with sqlite3.connect(theirs) as db:
        db.execute("CREATE TABLE photos (name)")
    db.close()
    with pytest.raises(Unavailable, match="not a store of this version"):
        open_store("sqlite", tmp_path)
    (tmp_path / "notes").write_text("no database at all, but long enough to look like one" * 100)
    with pytest.raises(Unavailable, match="not a database"):
        open_store(f"sqlite:{tmp_path}/notes")


def test_only_the_owner_can_read_the_file(tmp_path: Path):
    """It holds secrets and the keys that sign tokens."""

    modes: dict[str, int] = {}

    async def story() -> None:
        store = open_store("sqlite", tmp_path)
        await store.transact([], [Put("/secret", b"")])
        modes.update((entry.name, entry.stat().st_mode & 0o777) for entry in os.scandir(tmp_path))
        await store.close()

    run(story())
    assert len(modes) == 4 and set(modes.values()) == {0o600}, modes


def test_every_commit_is_synced(tmp_path: Path):
    """Power loss cannot be staged here; that SQLite is told to sync can be seen."""

    async def story() -> None:
        store = SqliteStore(tmp_path / "allot.db")
        (level,) = store._file._db.execute("PRAGMA synchronous").fetchone()
        (mode,) = store._file._db.execute("PRAGMA journal_mode").fetchone()
        assert (level, mode) == (2, "wal")
        await store.close()

    run(story())


FULL_DISK = """
    import asyncio, sys
    from pathlib import Path
    from resource import RLIM_INFINITY, RLIMIT_FSIZE, setrlimit
    from allot.store import Put, Unavailable, open_store

    async def story():
        store = open_store("sqlite", Path(sys.argv[1]))
        setrlimit(RLIMIT_FSIZE, (1 << 20, RLIM_INFINITY))
        written, refused = [], 0
        for number in range(600):
            try:
                answer = await store.transact([], [Put(f"/{number}", b"." * 4000)])
            except Unavailable:
                refused += 1
                assert await store.get(f"/{number}") is None
                if refused == 20:
                    setrlimit(RLIMIT_FSIZE, (RLIM_INFINITY, RLIM_INFINITY))
            else:
                written.append((f"/{number}", answer.revision))
        assert refused >= 20, refused
        await store.close()
        again = open_store("sqlite", Path(sys.argv[1]))
        page = await again.range("")
        assert sorted((e.key, e.revision) for e in page.entries) == sorted(written)
        assert [r for _, r in written] == list(range(2, len(written) + 2))
        await again.close()
        print("refused", refused, "written", len(written))

    asyncio.run(story())
"""


def test_a_full_disk_refuses_writes_and_the_store_goes_on_when_there_is_room(tmp_path: Path):
    """A limit on the size of files stands in for the disk: SQLite sees a write that fails."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL_DISK), tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_damaged_file_is_refused_in_words(tmp_path: Path):
    """Not a traceback of SQLite's, and the lock is given back for whoever repairs it."""

    async def write() -> None:
        store = open_store("sqlite", tmp_path)
        for number in range(50):
            await store.transact([], [Put(f"/{number}", b"." * 5000)])
        await store.close()

    run(write())
    file = tmp_path / "allot.db"
    content = bytearray(file.read_bytes())
    content[8192 * 3 : 8192 * 9] = b"\xee" * (8192 * 6)
    file.write_bytes(content)
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"allot\.db: .*malformed"):
            open_store("sqlite", tmp_path)
