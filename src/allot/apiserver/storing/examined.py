"""What lies in an embedded store is looked at once, before it is trusted.

A disk may garble a record in its middle, where nobody looks who only hands bytes on: such a record
would break the lists that it is in. While the server runs nobody else writes to an embedded store,
so once is enough. A store without junk is used as it is; in front of another, what is junk reads as
an empty record, which everybody who reads objects knows how to pass over (`stored`). Nothing is
changed or removed: whoever has a better copy can still put it there.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from allot.api import SEAL, STORED_HEAD, Object
from allot.store import Entry, Event, Page, Store, Watch

_PAGE = 1000


async def junk_below(store: Store, prefix: str) -> Mapping[str, int]:
    """Key and revision of every record that is no object."""
    found: dict[str, int] = {}
    after, more = "", True
    while more:
        page = await store.range(prefix, after=after, limit=_PAGE)
        found.update((entry.key, entry.revision) for entry in page.entries if not is_object(entry.value))
        after, more = (page.entries[-1].key if page.entries else ""), page.more
        await asyncio.sleep(0)
    return found


def is_object(value: bytes) -> bool:
    """Whether it is JSON from end to end, and metadata where they are looked for."""
    try:
        value.decode()
        if value.endswith(SEAL):
            Object(value, 1).metadata  # noqa: B018, read for what it raises
            return value.startswith(STORED_HEAD)
        fields = msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(fields, dict) and isinstance(fields.get("metadata"), dict)


class ExaminedStore:
    """In front of a store with junk: reads show it empty, everything else goes straight through."""

    def __init__(self, store: Store, junk: Mapping[str, int]) -> None:
        self._store = store
        self._junk = junk
        self.transact = store.transact
        self.revision = store.revision
        self.lost = store.lost
        self.trouble = store.trouble
        self.compact = store.compact
        self.scrub = store.scrub
        self.close = store.close

    async def get(self, key: str) -> Entry | None:
        return self._shown(await self._store.get(key))

    def peek(self, key: str) -> Entry | None:
        return self._shown(self._store.peek(key))

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0) -> Page:
        page = await self._store.range(prefix, after=after, limit=limit, at=at)
        return replace(page, entries=self._all_shown(page.entries))

    def watch(self, prefix: str, after: int) -> Watch:
        return _ExaminedWatch(self._store.watch(prefix, after), self._junk)

    def _shown(self, entry: Entry | None) -> Entry | None:
        return self._all_shown([entry])[0] if entry is not None else None

    def _all_shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return [
            replace(entry, value=b"") if self._junk.get(entry.key) == entry.revision else entry
            for entry in entries
        ]


class _ExaminedWatch:
    def __init__(self, watch: Watch, junk: Mapping[str, int]) -> None:
        self._watch = watch
        self._junk = junk
        self.hurry = watch.hurry
        self.close = watch.close

    @property
    def progress(self) -> int:
        return self._watch.progress

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> list[Event]:
        return [
            replace(event, value=b"") if self._junk.get(event.key) == event.revision else event
            for event in await self._watch.__anext__()
        ]
