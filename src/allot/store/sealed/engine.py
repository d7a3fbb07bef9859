"""A store whose values below some prefixes are encrypted in the store behind it.

Everything else goes straight through: a key that lies elsewhere costs one comparison of its
beginning, and a watch elsewhere is the watch of the store behind.

A value that cannot be opened is handed on as it lies there, and said once: it is no JSON, so
whoever reads records that others damaged deals with it like with any of those.
"""

import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from ..contract import (
    Change,
    Committed,
    Compare,
    Delete,
    Entry,
    Event,
    Page,
    Put,
    Refused,
    Revise,
    Store,
    Watch,
)
from .envelope import Seals
from .mark import CannotOpen

log = logging.getLogger(__name__)


class SealedStore:
    def __init__(self, store: Store, seals: Seals, prefixes: Sequence[str]) -> None:
        self._store = store
        self._prefixes = tuple(prefixes)
        self._opener = _Opener(seals, self._prefixes)

    def get(self, key: str) -> Coroutine[Any, Any, Entry | None]:
        return self._get(key) if key.startswith(self._prefixes) else self._store.get(key)

    async def _get(self, key: str) -> Entry | None:
        return self._opener.entry(await self._store.get(key))

    def peek(self, key: str) -> Entry | None:
        return self._opener.entry(self._store.peek(key))

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0) -> Page:
        page = await self._store.range(prefix, after=after, limit=limit, at=at)
        if not self._touches(prefix):
            return page
        return replace(page, entries=[self._opener.present(entry) for entry in page.entries])

    async def transact(self, compares: Sequence[Compare], changes: Sequence[Change]) -> Committed | Refused:
        if any(change.key.startswith(self._prefixes) for change in changes):
            changes = [self._opener.change(change) for change in changes]
        answer = await self._store.transact(compares, changes)
        if isinstance(answer, Refused):
            return Refused({key: self._opener.entry(entry) for key, entry in answer.current.items()})
        return answer

    def revision(self) -> Coroutine[Any, Any, int]:
        return self._store.revision()

    def watch(self, prefix: str, after: int) -> Watch:
        watch = self._store.watch(prefix, after)
        return _SealedWatch(watch, self._opener) if self._touches(prefix) else watch

    def lost(self) -> Coroutine[Any, Any, str]:
        return self._store.lost()

    def trouble(self) -> str:
        return self._store.trouble()

    def compact(self, revision: int) -> Coroutine[Any, Any, None]:
        return self._store.compact(revision)

    def scrub(self) -> Coroutine[Any, Any, None]:
        return self._store.scrub()

    def close(self) -> Coroutine[Any, Any, None]:
        return self._store.close()

    def _touches(self, prefix: str) -> bool:
        """Whether something below `prefix` may be encrypted."""
        return any(prefix.startswith(one) or one.startswith(prefix) for one in self._prefixes)


class _Opener:
    """Values in, values out: what lies below the prefixes is encrypted on one side."""

    def __init__(self, seals: Seals, prefixes: tuple[str, ...]) -> None:
        self._seals = seals
        self._prefixes = prefixes
        self._told: set[str] = set()

    def entry(self, entry: Entry | None) -> Entry | None:
        return self.present(entry) if entry is not None else None

    def present(self, entry: Entry) -> Entry:
        if not entry.key.startswith(self._prefixes):
            return entry
        return replace(entry, value=self._open(entry.key, entry.value))

    def event(self, event: Event) -> Event:
        if not event.key.startswith(self._prefixes):
            return event
        value = self._open(event.key, event.value) if event.value is not None else None
        previous = self._open(event.key, event.previous) if event.previous is not None else None
        return replace(event, value=value, previous=previous)

    def change(self, change: Change) -> Change:
        key = change.key
        if isinstance(change, Delete) or not key.startswith(self._prefixes):
            return change
        if isinstance(change, Put):
            return Put(key, self._seals.seal(key, change.value))
        make = change.make

        def revised(value: bytes | None) -> bytes | None:
            made = make(self._open(key, value) if value is not None else None)
            return self._seals.seal(key, made) if made is not None else None

        return Revise(key, revised)

    def _open(self, key: str, value: bytes) -> bytes:
        try:
            return self._seals.open(key, value)
        except CannotOpen as why:
            if str(why) not in self._told and len(self._told) < _TOLD_MAX:
                self._told.add(str(why))
                log.error("a record cannot be read: %s", why)
            return value


_TOLD_MAX = 100


class _SealedWatch:
    def __init__(self, watch: Watch, opener: _Opener) -> None:
        self._watch = watch
        self._opener = opener

    @property
    def progress(self) -> int:
        return self._watch.progress

    def hurry(self) -> None:
        self._watch.hurry()

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> list[Event]:
        return [self._opener.event(event) for event in await self._watch.__anext__()]

    def close(self) -> None:
        self._watch.close()
