"""Where a store lives, so that a test can open it a second time."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from allot.store import Event, Store, Watch, open_store
from allot.store.sealed.engine import SealedStore
from allot.store.sealed.envelope import Seals
from components import Etcd

T = TypeVar("T")


class Place(Protocol):
    lasting: bool  # whether a store opened here a second time remembers

    def open(self) -> Store: ...


class MemoryPlace:
    lasting = False

    def open(self) -> Store:
        return open_store("memory")


class SqlitePlace:
    lasting = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> Store:
        return open_store("sqlite", self.folder)


class SealedPlace(SqlitePlace):
    """Some keys of most tests are encrypted, and some are not."""

    def open(self) -> Store:
        return SealedStore(super().open(), Seals([b"k" * 32]), ("/a", "/counter", "/pod/a", "/pods/a"))


class EtcdPlace:
    lasting = True

    def __init__(self, cluster: Etcd) -> None:
        self.url = cluster.url()

    def open(self) -> Store:
        return open_store(self.url)


def run(story: Coroutine[Any, Any, T], within_s: float = 60) -> T:
    return asyncio.run(asyncio.wait_for(story, within_s))


async def take(watch: Watch, count: int, within_s: float = 10) -> list[Event]:
    """Read until `count` events have come; fail if they do not."""
    events: list[Event] = []
    while len(events) < count:
        events += await asyncio.wait_for(watch.__anext__(), within_s)
    return events


def keys(entries: Sequence[Any]) -> list[str]:
    return [entry.key for entry in entries]
