"""What every engine promises, told in stories. The same promises at random: test_random_histories."""

import asyncio

import pytest

from allot.base import InvariantBroken
from allot.store import Committed, Compacted, Compare, Delete, Entry, Event, Put, Refused, Revise, Unavailable
from allot.store.etcd.watch import PROGRESS_EVERY_S

from .places import Place, keys, run, take


def test_a_key_is_created_once(place: Place):
    """Two creators of one key: the second is refused and shown what is there."""

    async def story() -> None:
        store = place.open()
        first = await store.transact([Compare("/a", 0)], [Put("/a", b"mine")])
        second = await store.transact([Compare("/a", 0)], [Put("/a", b"yours")])

        assert isinstance(first, Committed)
        assert second == Refused({"/a": Entry("/a", b"mine", first.revision, first.revision)})
        await store.close()

    run(story())


def test_a_stale_compare_changes_nothing(place: Place):
    async def story() -> None:
        store = place.open()
        old = await store.transact([], [Put("/a", b"1")])
        new = await store.transact([], [Put("/a", b"2")])
        assert isinstance(old, Committed) and isinstance(new, Committed)

        answer = await store.transact([Compare("/a", old.revision)], [Put("/a", b"3"), Put("/b", b"3")])

        assert isinstance(answer, Refused)
        assert await store.get("/a") == Entry("/a", b"2", old.revision, new.revision)
        assert await store.get("/b") is None
        assert await store.revision() == new.revision
        await store.close()

    run(story())


def test_a_transaction_writes_several_keys_at_one_revision(place: Place):
    """A namespace that must exist, a quota that must not have moved, and two objects: all or nothing."""

    async def story() -> None:
        store = place.open()
        before = await store.transact([], [Put("/namespace", b""), Put("/quota", b"5")])
        assert isinstance(before, Committed)
        watch = store.watch("", before.revision)

        guards = [Compare("/namespace", before.revision), Compare("/quota", before.revision)]
        done = await store.transact(guards, [Put("/quota", b"4"), Put("/pod", b"p"), Delete("/namespace")])

        assert done == Committed(before.revision + 1)
        assert {event.key for event in await take(watch, 3)} == {"/quota", "/pod", "/namespace"}
        assert watch.progress == before.revision + 1
        await store.close()

    run(story())


def test_a_watch_below_which_nothing_happens_is_soon_up_to_date_where_it_is_hurried(place: Place):
    """On etcd it otherwise hears of it after five seconds, and whoever waits for that has given up."""

    async def story() -> None:
        store = place.open()
        watch = store.watch("/mine", await store.revision())
        reading = asyncio.ensure_future(anext(watch))
        for round in range(3):
            done = await store.transact([], [Put("/theirs", f"{round}".encode())])
            assert isinstance(done, Committed)
            async with asyncio.timeout(PROGRESS_EVERY_S - 1):
                while watch.progress < done.revision:
                    watch.hurry()
                    await asyncio.sleep(0.01)
        assert not reading.done()
        await store.close()
        await asyncio.wait([reading])

    run(story())


def test_a_transaction_without_effect_makes_no_revision(place: Place):
    async def story() -> None:
        store = place.open()
        before = await store.revision()
        assert await store.transact([Compare("/a", 0)], [Delete("/a")]) == Committed(before)
        assert await store.transact([], []) == Committed(before)
        assert await store.revision() == before
        await store.close()

    run(story())


def test_a_key_is_named_once_in_a_transaction(place: Place):
    """A transaction has no inner order, so the last of two writes would be a guess."""

    async def story() -> None:
        store = place.open()
        with pytest.raises(InvariantBroken):
            await store.transact([], [Put("/a", b"1"), Put("/a", b"2")])
        await store.close()

    run(story())


def test_pages_join_to_one_consistent_list_while_others_write(place: Place):
    """The continue token of the API: the next page is read at the revision of the first."""

    async def story() -> None:
        store = place.open()
        await store.transact([], [Put(f"/pods/{name}", b"old") for name in "abcdef"])
        first = await store.range("/pods/", limit=2)

        await store.transact([], [Put("/pods/bb", b"new"), Put("/pods/d", b"new"), Delete("/pods/e")])
        second = await store.range("/pods/", after=first.entries[-1].key, limit=2, at=first.revision)
        third = await store.range("/pods/", after=second.entries[-1].key, limit=2, at=first.revision)

        assert keys([*first.entries, *second.entries, *third.entries]) == [
            f"/pods/{name}" for name in "abcdef"
        ]
        assert {entry.value for page in (first, second, third) for entry in page.entries} == {b"old"}
        assert [(p.more, p.remaining) for p in (first, second, third)] == [(True, 4), (True, 2), (False, 0)]
        await store.close()

    run(story())


def test_a_prefix_ends_where_its_keys_end(place: Place):
    """/pods is no prefix of interest to somebody who asks for /pod/; other scripts sort by code point."""

    async def story() -> None:
        store = place.open()
        names = ["/pod", "/pod/a", "/pod/z\U0010ffff", "/pod/é", "/pod/\ue000", "/pod0", "/pods/a"]
        await store.transact([], [Put(name, b"") for name in names])

        found = keys((await store.range("/pod/")).entries)

        assert found == sorted(name for name in names if name.startswith("/pod/"))
        assert keys((await store.range("")).entries) == sorted(names)
        await store.close()

    run(story())


def test_the_future_cannot_be_read(place: Place):
    async def story() -> None:
        store = place.open()
        with pytest.raises(ValueError, match="future"):
            await store.range("", at=await store.revision() + 1)
        with pytest.raises(ValueError, match="future"):
            await store.compact(await store.revision() + 1)
        await store.close()

    run(story())


def test_a_watcher_sees_creation_change_and_deletion_with_what_was_before(place: Place):
    async def story() -> None:
        store = place.open()
        start = await store.revision()
        watch = store.watch("/a", start)
        await store.transact([], [Put("/a", b"1")])
        await store.transact([], [Put("/b", b"1")])
        await store.transact([], [Put("/a", b"2")])
        await store.transact([], [Delete("/a")])

        assert await take(watch, 3) == [
            Event("/a", b"1", start + 1, start + 1, None),
            Event("/a", b"2", start + 3, start + 1, b"1"),
            Event("/a", None, start + 4, start + 1, b"2"),
        ]
        await store.close()

    run(story())


def test_a_watch_may_begin_in_the_future(place: Place):
    """A client that read from one server and watches at another, which is behind."""

    async def story() -> None:
        store = place.open()
        now = await store.revision()
        watch = store.watch("", now + 2)
        reading = asyncio.ensure_future(take(watch, 1))
        for value in (b"1", b"2", b"3"):
            await asyncio.sleep(0.01)
            await store.transact([], [Put("/a", value)])

        assert [event.revision for event in await reading] == [now + 3]
        await store.close()

    run(story())


def test_compaction_ends_the_past_and_nothing_else(place: Place):
    async def story() -> None:
        store = place.open()
        for value in (b"1", b"2", b"3"):
            await store.transact([], [Put("/a", value)])
        now = await store.revision()

        await store.compact(now - 1)
        await store.compact(now - 2)  # somebody else was slower: no harm

        assert [e.value for e in (await store.range("", at=now - 1)).entries] == [b"2"]
        assert [e.value for e in (await store.range("")).entries] == [b"3"]
        with pytest.raises(Compacted):
            await store.range("", at=now - 2)
        with pytest.raises(Compacted):
            await take(store.watch("", now - 2), 1)
        assert [e.value for e in await take(store.watch("", now - 1), 1)] == [b"3"]
        await store.close()

    run(story())


def test_a_deletion_at_the_compacted_revision_is_not_passed_over_in_silence(place: Place):
    """Compaction drops the deletion itself, so whoever has not seen it must be told to start over."""

    async def story() -> None:
        store = place.open()
        await store.transact([], [Put("/a", b"1")])
        await store.transact([], [Delete("/a")])
        gone = await store.revision()
        await store.transact([], [Put("/b", b"1")])
        await store.compact(gone)

        with pytest.raises(Compacted):
            await take(store.watch("", gone - 1), 1)
        assert keys(await take(store.watch("", gone), 1)) == ["/b"]
        await store.close()

    run(story())


def test_a_watch_ends_when_it_is_closed_and_when_its_store_is(place: Place):
    async def story() -> None:
        store = place.open()
        now = await store.revision()
        ours, theirs = store.watch("", now), store.watch("", now)
        reading = [asyncio.ensure_future(anext(w, "ended")) for w in (ours, theirs)]  # type: ignore[call-overload]
        await asyncio.sleep(0.05)

        ours.close()
        assert await reading[0] == "ended"
        await store.close()
        assert await reading[1] == "ended"

    run(story())


def test_a_closed_store_says_so(place: Place):
    async def story() -> None:
        store = place.open()
        await store.close()
        with pytest.raises(Unavailable):
            await store.get("/a")
        with pytest.raises(Unavailable):
            await store.transact([], [Put("/a", b"")])
        await store.close()

    run(story())


def plus_one(value: bytes | None) -> bytes:
    return b"%d" % (int(value or b"0") + 1)


def test_many_revisions_of_one_counter_all_count(place: Place):
    """Nobody has to read, compare and try again: the store is told how, not what."""

    async def story() -> None:
        store = place.open()

        async def count(number: int) -> None:
            changes = [Put(f"/own/{number}", b""), Revise("/counter", plus_one)]
            while isinstance(answer := await store.transact([], changes), Refused):
                assert answer.current.keys() == {"/counter"}, "others were faster, many times over"

        await asyncio.gather(*(count(number) for number in range(40)))
        entry = await store.get("/counter")
        assert entry is not None and entry.value == b"40"
        assert len((await store.range("/own/")).entries) == 40
        await store.close()

    run(story())


def test_a_revision_may_delete_and_may_refuse(place: Place):
    class Enough(Exception):
        pass

    def once(value: bytes | None) -> bytes:
        if value is not None:
            raise Enough
        return b"1"

    async def story() -> None:
        store = place.open()
        assert isinstance(await store.transact([], [Revise("/a", once)]), Committed)
        with pytest.raises(Enough):
            await store.transact([], [Put("/b", b""), Revise("/a", once)])
        assert await store.get("/b") is None, "nothing of it is written"
        stale = await store.transact([Compare("/b", 99)], [Revise("/a", plus_one)])
        assert stale == Refused({"/b": None})
        assert isinstance(await store.transact([], [Revise("/a", lambda value: None)]), Committed)
        assert await store.get("/a") is None
        await store.close()

    run(story())


def test_a_revision_that_refuses_is_heard_only_where_every_compare_holds(place: Place):
    """What it says no to may follow from something that was read before and has moved since."""

    class No(Exception):
        pass

    def never(value: bytes | None) -> bytes:
        raise No

    async def story() -> None:
        store = place.open()
        await store.transact([], [Put("/read", b"1")])
        first = await store.get("/read")
        assert first is not None
        with pytest.raises(No):
            await store.transact([Compare("/read", first.revision)], [Revise("/a", never)])
        await store.transact([], [Put("/read", b"2")])
        second = await store.get("/read")
        refused = await store.transact([Compare("/read", first.revision)], [Revise("/a", never)])
        assert refused == Refused({"/read": second})
        await store.close()

    run(story())


def test_many_increments_of_one_counter_all_count(place: Place):
    """Compare-and-swap under contention: 16 tasks, each adds 5 by reading, comparing and trying again."""

    async def story() -> None:
        store = place.open()
        await store.transact([], [Put("/counter", b"0")])

        async def add_five() -> None:
            left = 5
            entry = await store.get("/counter")
            while left:
                assert entry is not None
                wanted = Put("/counter", str(int(entry.value) + 1).encode())
                answer = await store.transact([Compare("/counter", entry.revision)], [wanted])
                if isinstance(answer, Committed):
                    left -= 1
                    entry = await store.get("/counter")
                else:
                    entry = answer.current["/counter"]

        await asyncio.gather(*(add_five() for _ in range(16)))
        entry = await store.get("/counter")
        assert entry is not None and entry.value == b"80"
        await store.close()

    run(story())


def test_what_was_acknowledged_is_there_when_the_store_opens_again(place: Place):
    async def story() -> None:
        if not place.lasting:
            return
        store = place.open()
        await store.transact([], [Put("/a", b"1"), Put("/b", b"1")])
        await store.transact([], [Put("/a", b"2")])
        await store.transact([], [Delete("/b")])
        revision, entry = await store.revision(), await store.get("/a")
        await store.close()

        again = place.open()
        assert await again.revision() == revision
        assert (await again.range("")).entries == [entry]
        assert keys((await again.range("", at=revision - 2)).entries) == ["/a", "/b"]
        assert len(await take(again.watch("", revision - 2), 2)) == 2
        await again.close()

    run(story())


def test_revisions_do_not_go_back_when_everything_was_deleted_and_compacted(place: Place):
    """An empty file must not forget how far it had come: watchers would wait for ever."""

    async def story() -> None:
        if not place.lasting:
            return
        store = place.open()
        await store.transact([], [Put("/a", b"1")])
        await store.transact([], [Delete("/a")])
        revision = await store.revision()
        await store.compact(revision)
        await store.close()

        again = place.open()
        assert await again.revision() == revision
        assert await again.transact([Compare("/a", 0)], [Put("/a", b"2")]) == Committed(revision + 1)
        await again.close()

    run(story())
