"""Three real members, one of them killed under load; and two stores on one etcd."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from allot.store import (
    Committed,
    Compacted,
    Compare,
    Entry,
    Event,
    OutcomeUnknown,
    Put,
    Revise,
    Store,
    Unavailable,
    open_store,
)
from allot.store.etcd import engine
from allot.store.etcd import watch as etcd_watch
from components import Etcd, etcd

from ..places import run, take

WRITERS = 8
WRITES = 40


@pytest.fixture
def three() -> Iterator[Etcd]:
    with etcd(3) as cluster:
        yield cluster


@dataclass
class Writer:
    """Adds to a key of its own, one by one, and remembers what it was told."""

    store: Store
    key: str
    acknowledged: dict[int, int] = field(default_factory=dict)  # number -> revision
    unknown: set[int] = field(default_factory=set)

    async def run(self) -> None:
        revision, number = 0, 0
        while number < WRITES:
            try:
                answer = await self.store.transact(
                    [Compare(self.key, revision)], [Put(self.key, b"%d" % number)]
                )
            except Unavailable:
                continue
            except OutcomeUnknown:
                self.unknown.add(number)
                entry = await self.store.get(self.key)
                revision = entry.revision if entry else 0
                number += bool(entry and int(entry.value) == number)
                continue
            assert isinstance(answer, Committed), answer
            self.acknowledged[number] = revision = answer.revision
            number += 1
            await asyncio.sleep(0.02)


def test_killing_the_leader_under_load_loses_nothing_and_doubles_nothing(three: Etcd):
    """S1 and S2 through an election: writers go on, and a watcher sees each write once and in order."""
    leader = three.leader()
    # The store talks to the leader first, so that its own connection breaks too.
    url = three.url("/load", [leader, *(m for m in three.members if m is not leader)])

    async def story() -> None:
        store = open_store(url)
        start = await store.revision()
        watch = store.watch("/", start)
        writers = [Writer(store, f"/{n}") for n in range(WRITERS)]
        writing = asyncio.gather(*(writer.run() for writer in writers))
        await asyncio.sleep(0.3)
        leader.kill()
        await writing
        heard = await take(watch, WRITERS * WRITES, 20)

        assert [event.revision for event in heard] == sorted({event.revision for event in heard})
        for writer in writers:
            mine = [event for event in heard if event.key == writer.key]
            assert [int(event.value or b"-1") for event in mine] == list(range(WRITES))
            assert writer.acknowledged.items() <= {int(e.value or b"-1"): e.revision for e in mine}.items()
        await store.close()

    run(story(), 90)


def test_a_member_that_comes_back_is_used_again(three: Etcd):
    one = three.members[0]
    url = three.url("/back", [one])

    async def story() -> None:
        store = open_store(url)
        await store.transact([], [Put("/a", b"1")])
        watch = store.watch("/", await store.revision())
        reading = asyncio.ensure_future(take(watch, 1, 30))
        await asyncio.sleep(0.1)
        one.kill()
        await asyncio.sleep(0.2)
        one.start()
        answer = None
        while not isinstance(answer, Committed):
            with suppress(Unavailable, OutcomeUnknown):
                answer = await store.transact([], [Put("/a", b"2")])
        assert [event.value for event in await reading][-1] == b"2"
        await store.close()

    run(story(), 60)


def test_a_watch_alone_finds_another_member(three: Etcd):
    """Nobody else in this process calls etcd, so nobody else notices that the member is gone."""
    first, *others = three.members

    async def story() -> None:
        listener = open_store(three.url("/alone", [first, *others]))
        writer = open_store(three.url("/alone", others))
        watch = listener.watch("/", await writer.revision())
        reading = asyncio.ensure_future(take(watch, 2, 30))
        await writer.transact([], [Put("/a", b"")])
        await asyncio.sleep(0.3)
        first.kill()
        answer = None
        while not isinstance(answer, Committed):
            with suppress(Unavailable, OutcomeUnknown):
                answer = await writer.transact([Compare("/b", 0)], [Put("/b", b"")])
        assert [event.key for event in await reading] == ["/a", "/b"]
        await listener.close()
        await writer.close()

    run(story(), 60)


def test_two_stores_on_one_etcd_agree(one_etcd: Etcd):
    """Two API servers: each sees the other's writes at once, and their watchers hear one story."""
    url = one_etcd.url()

    async def story() -> None:
        left, right = open_store(url), open_store(url)
        start = await left.revision()
        watches = left.watch("", start), right.watch("", start)

        async def add(store: Store, times: int) -> None:
            while times:
                entry = await store.get("/n")
                wanted = Put("/n", b"%d" % (int(entry.value) + 1 if entry else 1))
                answer = await store.transact([Compare("/n", entry.revision if entry else 0)], [wanted])
                times -= isinstance(answer, Committed)

        await asyncio.gather(add(left, 30), add(right, 30), add(left, 30))
        entry = await right.get("/n")
        assert entry is not None and entry.value == b"90"
        stories = [await take(watch, 90) for watch in watches]
        assert stories[0] == stories[1]
        assert [event.value for event in stories[0]] == [b"%d" % n for n in range(1, 91)]
        await left.close()
        await right.close()

    run(story())


def test_a_revision_does_not_refuse_because_of_what_another_store_has_changed(
    one_etcd: Etcd, monkeypatch: pytest.MonkeyPatch
):
    """It says no to what it read, and by then that is no longer so."""

    class Full(Exception):
        pass

    def take_a_place(value: bytes | None) -> bytes:
        if value == b"full":
            raise Full
        return b"taken"

    async def story() -> None:
        url = one_etcd.url()
        ours, theirs = open_store(url), open_store(url)
        await theirs.transact([], [Put("/places", b"full")])
        with pytest.raises(Full):
            await ours.transact([], [Revise("/places", take_a_place)])
        get, leaving = ours.get, [Put("/places", b"free")]

        async def get_before_they_leave(key: str) -> Entry | None:
            entry = await get(key)
            while leaving:
                await theirs.transact([], [leaving.pop()])
            return entry

        monkeypatch.setattr(ours, "get", get_before_they_leave)
        assert isinstance(await ours.transact([], [Revise("/places", take_a_place)]), Committed)
        entry = await theirs.get("/places")
        assert entry is not None and entry.value == b"taken"
        await ours.close()
        await theirs.close()

    run(story())


def test_stores_with_different_prefixes_do_not_see_each_other(one_etcd: Etcd):
    """/team does not begin /team2."""

    async def story() -> None:
        ours, theirs = open_store(one_etcd.url("/team")), open_store(one_etcd.url("/team2"))
        await theirs.transact([], [Put("/a", b"")])
        assert await ours.get("/a") is None
        assert not (await ours.range("")).entries
        assert [e.key for e in (await theirs.range("")).entries] == ["/a"]
        await ours.close()
        await theirs.close()

    run(story())


def test_a_watch_hears_everything_once_while_history_is_compacted_behind_it(one_etcd: Etcd):
    """A watcher that keeps up is not disturbed; one that starts too late is told so."""

    async def story() -> None:
        store = open_store(one_etcd.url())
        start = await store.revision()
        watch, heard = store.watch("", start), list[Event]()
        for number in range(100):
            await store.transact([], [Put(f"/{number % 3}", b"%d" % number)])
            if number % 10 == 9:
                heard += await take(watch, 10)
                await store.compact(await store.revision())
        assert [event.value for event in heard] == [b"%d" % number for number in range(100)]
        with pytest.raises(Compacted):
            await take(store.watch("", start), 1)
        await store.close()

    run(story())


def test_a_transaction_too_large_for_one_answer_arrives_in_one_piece(one_etcd: Etcd):
    """etcd cuts answers above its limit into fragments; a revision is not to be cut."""

    async def story() -> None:
        store = open_store(one_etcd.url())
        start = await store.revision()
        for value in (b"1", b"2"):
            await store.transact([], [Put(f"/{n}", value * 15_000) for n in range(90)])
        first = await anext(store.watch("", start))
        assert [event.revision for event in first][:90] == [start + 1] * 90
        assert len(first) in (90, 180)
        await store.close()

    run(story())


def test_a_list_read_in_pieces_is_one_list(one_etcd: Etcd, monkeypatch: pytest.MonkeyPatch):
    """However many calls it takes, the count of what is left is that of the first."""
    monkeypatch.setattr(engine, "PAGE", 3)

    async def story() -> None:
        store = open_store(one_etcd.url())
        await store.transact([], [Put(f"/{n}", b"") for n in range(10)])
        page = await store.range("", limit=7)
        assert ([e.key for e in page.entries], page.more, page.remaining) == (
            [f"/{n}" for n in range(7)],
            True,
            3,
        )
        rest = await store.range("", after="/6", at=page.revision)
        assert ([e.key for e in rest.entries], rest.more, rest.remaining) == (["/7", "/8", "/9"], False, 0)
        assert len((await store.range("")).entries) == 10
        await store.close()

    run(story())


def test_a_list_larger_than_four_megabytes_is_read(one_etcd: Etcd):
    """gRPC's own limit on a message, which breaks other clients."""

    async def story() -> None:
        store = open_store(one_etcd.url())
        for part in range(6):
            await store.transact([], [Put(f"/{part}/{n:02}", b"." * 10_000) for n in range(100)])
        page = await store.range("")
        assert sum(len(entry.value) for entry in page.entries) == 6_000_000
        await store.close()

    run(story())


def test_progress_is_known_without_events(one_etcd: Etcd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(etcd_watch, "PROGRESS_EVERY_S", 0.05)

    async def story() -> None:
        store = open_store(one_etcd.url())
        start = await store.revision()
        watch = store.watch("/mine", start)
        reading = asyncio.ensure_future(anext(watch))
        for _ in range(5):
            await store.transact([], [Put("/theirs", b"")])
        for _ in range(200):
            if watch.progress >= start + 5:
                break
            await asyncio.sleep(0.05)
        assert watch.progress >= start + 5
        assert not reading.done()
        await store.close()
        with pytest.raises(StopAsyncIteration):
            await reading

    run(story(), 20)
