"""Watches in this process: order, slow readers, and what they cost the others."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.store import Compacted, Delete, MemoryStore, Put, watch

from .places import run, take


def test_every_watcher_hears_the_same_story_and_a_silent_one_disturbs_nobody(monkeypatch: pytest.MonkeyPatch):
    """Two hundred watchers, one of which never reads. It keeps no more than its basket."""
    monkeypatch.setattr(watch, "BASKET_MAX", 50)

    async def story() -> None:
        store = MemoryStore()
        silent = store.watch("/", 1)
        await take_first(store, silent)
        readers = [asyncio.ensure_future(take(store.watch("/", 2), 1_000)) for _ in range(200)]
        for number in range(1_000):
            await store.transact([], [Put(f"/{number % 37}", b"%d" % number)])
            if number % 20 == 0:
                await asyncio.sleep(0)

        heard = await asyncio.gather(*readers)
        assert [event.revision for event in heard[0]] == list(range(3, 1_003))
        assert all(one == heard[0] for one in heard)
        assert silent._basket is None, "it fell behind and was relieved of its basket"
        assert await take(silent, 1_000) == heard[0], "and still finds everything in the history"
        await store.close()

    async def take_first(store: MemoryStore, silent: watch.LocalWatch) -> None:
        await store.transact([], [Put("/first", b"")])
        await take(silent, 1)

    run(story())


def test_a_reader_that_comes_back_too_late_is_told_to_start_over(monkeypatch: pytest.MonkeyPatch):
    """Memory is bounded by bytes: history is forgotten before the process grows without end."""
    monkeypatch.setattr(watch, "BASKET_MAX", 50)

    async def story() -> None:
        store = MemoryStore(history_bytes_max=100_000)
        late = store.watch("", 1)
        await store.transact([], [Put("/a", b"")])
        await take(late, 1)
        for _ in range(500):
            await store.transact([], [Put("/a", b"." * 1000)])

        assert store._space.history._bytes <= 100_000
        with pytest.raises(Compacted):
            await take(late, 500)
        with pytest.raises(StopAsyncIteration):
            await anext(late)
        await store.close()

    run(story())


def test_one_revision_larger_than_the_budget_is_still_told_to_those_who_listen():
    async def story() -> None:
        store = MemoryStore(history_bytes_max=1_000)
        await store.transact([], [Put(f"/{n}", b"." * 500) for n in range(20)])
        live = store.watch("", await store.revision())
        reading = asyncio.ensure_future(take(live, 20))
        await asyncio.sleep(0)
        await store.transact([], [Delete(f"/{n}") for n in range(20)])
        assert len(await reading) == 20
        store.check()
        await store.close()

    run(story())


def test_the_watcher_wakes_in_the_same_turn_as_the_writer():
    async def story() -> None:
        store = MemoryStore()
        order: list[str] = []

        async def listen() -> None:
            await anext(store.watch("", 1))
            order.append("heard")

        listening = asyncio.ensure_future(listen())
        await asyncio.sleep(0)
        await store.transact([], [Put("/a", b"")])
        asyncio.get_running_loop().call_soon(order.append, "next turn")
        await listening
        assert order[0] == "heard"
        await store.close()

    run(story())


def test_a_reader_that_is_cancelled_while_it_waits_loses_nothing():
    """`asyncio.wait_for` around a watch is how bookmarks are sent on time."""

    async def story() -> None:
        store = MemoryStore()
        listening = store.watch("", 1)
        for number in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(listening), 0.001)
            await store.transact([], [Put("/a", b"%d" % number)])
            assert [event.value for event in await take(listening, 1)] == [b"%d" % number]
        await store.close()

    run(story())


def test_progress_moves_with_what_does_not_concern_the_watcher():
    async def story() -> None:
        store = MemoryStore()
        listening = store.watch("/mine", 1)
        reading = asyncio.ensure_future(anext(listening))
        await asyncio.sleep(0)
        for _ in range(3):
            await store.transact([], [Put("/theirs", b"")])
        assert listening.progress == 4
        await store.transact([], [Put("/mine", b"")])
        assert listening.progress == 4, "not delivered yet"
        await reading
        assert listening.progress == 5
        await store.close()

    run(story())


@settings(max_examples=50, deadline=None)
@given(
    prefixes=st.lists(st.sampled_from(["", "/", "/a", "/a/", "/a/b", "/b"]), min_size=1, max_size=5),
    keys=st.lists(st.sampled_from(["/", "/a", "/a/", "/a/b", "/a/bc", "/b", "x"]), max_size=20),
)
def test_each_prefix_hears_exactly_its_keys(prefixes: list[str], keys: list[str]):
    async def story() -> None:
        store = MemoryStore()
        watches = [store.watch(prefix, 1) for prefix in prefixes]
        readers = [asyncio.ensure_future(collect(one)) for one in watches]
        await asyncio.sleep(0)
        for key in keys:
            await store.transact([], [Put(key, b"")])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await store.close()
        for prefix, heard in zip(prefixes, await asyncio.gather(*readers), strict=True):
            assert heard == [key for key in keys if key.startswith(prefix)]

    async def collect(one: watch.LocalWatch) -> list[str]:
        return [event.key async for batch in one for event in batch]

    run(story())


def test_who_hears_of_a_folder_is_asked_again_when_somebody_comes_or_goes():
    """The answer is kept between events, also where prefixes end in the middle of a name."""

    async def story() -> None:
        store = MemoryStore()

        async def heard(key: str, *watches: watch.LocalWatch) -> list[bool]:
            await store.transact([], [Put(key, b"")])
            now = await store.revision()
            told = [one.progress < now for one in watches]  # it has something to read first
            for one in watches:
                if one.progress < now:
                    await anext(one)
            return told

        pods = store.watch("/pods/", 1)
        assert await heard("/pods/a", pods) == [True]
        everything = store.watch("/", await store.revision())
        assert await heard("/pods/b", pods, everything) == [True, True]
        assert await heard("/nodes/a", pods, everything) == [False, True]
        named_p = store.watch("/p", await store.revision())
        assert await heard("/pods/c", pods, everything, named_p) == [True, True, True]
        assert await heard("/pages/a", pods, everything, named_p) == [False, True, True]
        named_p.close()
        everything.close()
        assert await heard("/pods/d", pods) == [True]
        await store.close()

    run(story())
