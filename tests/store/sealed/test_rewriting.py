"""From plain to encrypted, and from one key to the next."""

import base64
import logging
from pathlib import Path

import pytest

from allot.store import BadKeys, Compare, Delete, MemoryStore, Put, Store, open_store, sealed_store
from allot.store.sealed import rewriting
from allot.store.sealed.mark import key_id_of
from allot.store.sqlite.file import LogFile

from ..places import run, take

PREFIXES = ("/secrets/", "/authority")
MARKER = b"a-marker-that-nobody-else-writes"


def key_file(folder: Path, *letters: bytes) -> Path:
    path = folder / f"keys-{b''.join(letters).decode()}"
    path.write_bytes(b"\n".join(base64.b64encode(letter * 32) for letter in letters))
    path.chmod(0o600)
    return path


async def values(store: Store) -> dict[str, bytes]:
    return {entry.key: entry.value for entry in (await store.range("")).entries}


def test_plain_records_are_read_and_encrypted_with_their_next_write(tmp_path):
    async def story() -> None:
        behind = MemoryStore()
        await behind.transact(
            [], [Put("/secrets/a", b"{1}"), Put("/secrets/b", b"{2}"), Put("/pods/a", b"{3}")]
        )
        store = await sealed_store(behind, key_file(tmp_path, b"k"), PREFIXES)
        assert await values(store) == {"/secrets/a": b"{1}", "/secrets/b": b"{2}", "/pods/a": b"{3}"}
        await store.transact([], [Put("/secrets/a", b"{4}"), Put("/pods/a", b"{5}")])
        assert await values(store) == {"/secrets/a": b"{4}", "/secrets/b": b"{2}", "/pods/a": b"{5}"}
        lying = await values(behind)
        assert [bool(key_id_of(lying[key])) for key in ("/secrets/a", "/secrets/b", "/pods/a")] == [1, 0, 0]

    run(story())


def test_a_rewrite_encrypts_everything_with_the_first_key(tmp_path, monkeypatch):
    monkeypatch.setattr(rewriting, "_PAGE", 2)

    async def story() -> None:
        behind = MemoryStore()
        await behind.transact([], [Put(f"/secrets/{n}", b"{%d}" % n) for n in range(5)])
        await behind.transact([], [Put("/authority", b"{keys}"), Put("/pods/a", b"{}")])
        first = await sealed_store(behind, key_file(tmp_path, b"1"), PREFIXES, rewrite_all=True)
        before = await values(first)
        second = await sealed_store(behind, key_file(tmp_path, b"2", b"1"), PREFIXES, rewrite_all=True)
        assert await values(second) == before
        alone = await sealed_store(behind, key_file(tmp_path, b"2"), PREFIXES)
        assert await values(alone) == before
        sealed = [key for key, value in (await values(behind)).items() if key_id_of(value)]
        assert sealed == ["/authority", *(f"/secrets/{n}" for n in range(5))]
        revision = await behind.revision()
        await sealed_store(behind, key_file(tmp_path, b"2"), PREFIXES, rewrite_all=True)
        assert await behind.revision() == revision  # what is right is left alone

    run(story())


@pytest.mark.parametrize("given", ["none", "another"])
def test_without_the_right_key_nothing_starts_and_nothing_is_written(tmp_path, given):
    async def story() -> None:
        behind = MemoryStore()
        store = await sealed_store(behind, key_file(tmp_path, b"1"), PREFIXES)
        await store.transact([], [Put("/secrets/a", b"{}")])
        revision, lying = await behind.revision(), await values(behind)
        wrong = None if given == "none" else key_file(tmp_path, b"2")
        has = "no --encryption-key was given" if given == "none" else "the key file has [0-9a-f]{16}$"
        with pytest.raises(BadKeys, match=f"^/secrets/a is encrypted with key [0-9a-f]{{16}}, and {has}"):
            await sealed_store(behind, wrong, PREFIXES, rewrite_all=given == "another")
        assert (await behind.revision(), await values(behind)) == (revision, lying)

    run(story())


def test_a_record_that_was_tampered_with_is_left_alone_and_said(tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.WARNING, logger="allot")
    monkeypatch.setattr(logging.getLogger("allot"), "propagate", True)  # other tests may have said otherwise

    async def story() -> None:
        behind = MemoryStore()
        store = await sealed_store(behind, key_file(tmp_path, b"1"), PREFIXES)
        await store.transact([], [Put("/secrets/a", b"{a}"), Put("/secrets/b", b"{b}")])
        stolen = (await values(behind))["/secrets/a"]
        await behind.transact([], [Put("/secrets/b", stolen)])
        watch = store.watch("/secrets/", await behind.revision() - 1)
        assert (await take(watch, 1))[0].value == stolen  # no JSON: nobody takes it for an object
        assert [entry.value for entry in (await store.range("/secrets/")).entries] == [b"{a}", stolen]
        await sealed_store(behind, key_file(tmp_path, b"2", b"1"), PREFIXES, rewrite_all=True)
        assert (await values(behind))["/secrets/b"] == stolen

    run(story())
    said = [record.getMessage() for record in caplog.records if "was changed or moved" in record.getMessage()]
    assert len(said) == 2  # once by the store, however often it is read, and once by the rewrite


def test_who_is_refused_sees_what_is_there(tmp_path):
    async def story() -> None:
        store = await sealed_store(MemoryStore(), key_file(tmp_path, b"1"), PREFIXES)
        await store.transact([], [Put("/secrets/a", b"{1}")])
        refused = await store.transact([Compare("/secrets/a", 0)], [Put("/secrets/a", b"{2}")])
        assert refused.current["/secrets/a"].value == b"{1}"

    run(story())


@pytest.fixture
def traces(tmp_path, monkeypatch):
    """The files of a store in which the marker can be read.

    Some builds of SQLite overwrite what they free. This one is told not to.
    """
    plain = LogFile._connect

    def careless(self):
        db = plain(self)
        db.execute("PRAGMA secure_delete = OFF")
        return db

    monkeypatch.setattr(LogFile, "_connect", careless)
    return lambda: [file.name for file in tmp_path.glob("allot.db*") if MARKER in file.read_bytes()]


def test_nothing_of_what_was_plain_stays_on_the_disk(tmp_path, traces):
    """Not in pages that SQLite freed, nor in its write-ahead log, nor in our own history."""

    async def story() -> None:
        store = open_store("sqlite", tmp_path)
        for n in range(300):
            await store.transact([], [Put(f"/secrets/{n % 7}", b"{%b %d}" % (MARKER, n))])
        assert traces()
        sealed = await sealed_store(store, key_file(tmp_path, b"1"), PREFIXES, rewrite_all=True)
        assert not traces()
        await sealed.transact([], [Put("/secrets/0", MARKER * 20)])
        assert not traces()
        await sealed.close()
        again = await sealed_store(open_store("sqlite", tmp_path), key_file(tmp_path, b"1"), PREFIXES)
        assert (await again.get("/secrets/0")).value == MARKER * 20
        await again.close()
        assert not traces()

    run(story())


def test_nothing_stays_of_what_was_replaced_or_deleted_before_the_rewrite(tmp_path, traces):
    """With the key the plain secrets were written anew, or deleted, so that the rewrite finds none to
    encrypt. What they were still lies in our own history."""

    async def story() -> None:
        store = open_store("sqlite", tmp_path)
        await store.transact([], [Put("/secrets/a", MARKER), Put("/secrets/b", MARKER)])
        sealed = await sealed_store(store, key_file(tmp_path, b"1"), PREFIXES)
        await sealed.transact([], [Put("/secrets/a", b"{}"), Delete("/secrets/b")])
        assert traces()
        await sealed_store(store, key_file(tmp_path, b"1"), PREFIXES, rewrite_all=True)
        assert not traces()
        await store.close()

    run(story())
