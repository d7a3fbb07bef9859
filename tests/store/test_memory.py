"""What a store keeps in memory: the present, as much of the past as was allowed, and nothing else.

Counted are the bytes of values that somebody besides the test still refers to.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from allot.store import Compacted, Delete, Event, MemoryStore, Put, Store
from allot.store.sqlite import SqliteStore, engine
from allot.store.watch import BASKET_BYTES_MAX

from .places import run

KILO = 1 << 10
HISTORY_BYTES = 1 << 20


class Values:
    """Values that were handed to a store, and which of them are still in use."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._made: list[bytes] = []

    def new(self) -> bytes:
        self._made.append(b"%d" % len(self._made) * self._size)
        return self._made[-1]

    def referenced_bytes(self) -> int:
        # Two references are ours: the list's, and the argument of the question.
        counts = [sys.getrefcount(self._made[at]) for at in range(len(self._made))]
        return sum(len(value) for value, count in zip(self._made, counts, strict=True) if count > 2)


async def update(store: Store, values: Values, times: int) -> None:
    for _ in range(times):
        await store.transact([], [Put("/a", values.new())])


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
def test_a_large_object_that_is_updated_often_costs_what_history_may_keep(engine: str, tmp_path: Path):
    """Forgotten events stayed in memory until thousands had gathered: gigabytes, beside a bound of 64 MB."""
    values = Values(5 * KILO)

    async def story() -> None:
        store: MemoryStore | SqliteStore
        if engine == "memory":
            store = MemoryStore(HISTORY_BYTES)
        else:
            store = SqliteStore(tmp_path / "db", HISTORY_BYTES)
        watch = store.watch("/", await store.revision())
        for _ in range(30):
            await update(store, values, 20)
            await anext(watch)
        present_and_past = HISTORY_BYTES + 20 * KILO
        assert HISTORY_BYTES // 2 < values.referenced_bytes() <= present_and_past
        await store.close()

    run(story())


def test_keys_that_come_and_go_leave_nothing_behind():
    values = Values(5 * KILO)

    async def story() -> None:
        store = MemoryStore(HISTORY_BYTES)
        for number in range(500):
            await store.transact([], [Put(f"/{number}", values.new())])
            await store.transact([], [Delete(f"/{number}")])
        assert values.referenced_bytes() <= HISTORY_BYTES
        await store.compact(await store.revision())
        assert values.referenced_bytes() == 0
        await store.close()

    run(story())


def test_what_is_compacted_is_let_go_of_at_once():
    values = Values(5 * KILO)

    async def story() -> None:
        store = MemoryStore()
        await update(store, values, 100)
        await store.compact(await store.revision())
        assert values.referenced_bytes() <= 20 * KILO, "the present alone"
        await store.close()

    run(story())


def test_a_watcher_that_does_not_read_keeps_nothing_alive():
    """Its basket is full before a gigabyte is: then it is behind, and told so when it reads again."""
    values = Values(200 * KILO)

    async def story() -> None:
        store = MemoryStore(HISTORY_BYTES)
        watch = store.watch("/", await store.revision())
        await update(store, values, 120)
        assert values.referenced_bytes() <= BASKET_BYTES_MAX + HISTORY_BYTES + 1000 * KILO
        await update(store, values, 60)
        assert values.referenced_bytes() <= HISTORY_BYTES + 1000 * KILO
        with pytest.raises(Compacted):
            await anext(watch)
        await store.close()

    run(story())


def test_large_writes_that_land_at_once_arrive_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A watcher that keeps up is not told to start over because one batch was larger than the history."""
    monkeypatch.setattr(engine, "ARRIVING_BYTES_PER_TURN", 256 * KILO)
    values = Values(100 * KILO)

    async def story() -> None:
        store = SqliteStore(tmp_path / "db", HISTORY_BYTES)
        watch, heard = store.watch("/", await store.revision()), list[Event]()

        async def listen() -> None:
            while len(heard) < 40:
                heard.extend(await anext(watch))

        listening = asyncio.ensure_future(listen())
        await asyncio.gather(*(store.transact([], [Put("/a", values.new())]) for _ in range(40)))
        await listening
        assert [event.revision for event in heard] == list(range(2, 42))
        await store.close()

    run(story())
