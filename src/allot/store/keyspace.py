"""The map, its revision and its recent history: a store without a disk or a loop.

Where it sits
    The embedded engines own one each. It never awaits: an engine decides with
    `differing`, makes the outcome durable in its own way, and then calls `commit`,
    the only method that adds anything.

What it promises
    KEYS1  `revision` grows by one with every commit that changes something.
    KEYS2  A page costs what it returns, not what the store holds.
    KEYS3  All writes of a commit carry its revision.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice

from allot.base import require

from .contract import Change, Compacted, Compare, Delete, Entry, Event, Page, Put, Revise, Write
from .history import History
from .order import SortedKeys, just_after, prefix_end

EMPTY_REVISION = 1
HISTORY_BYTES_MAX = 64 << 20


class KeySpace:
    def __init__(self, revision: int = EMPTY_REVISION, history_bytes_max: int = HISTORY_BYTES_MAX) -> None:
        self.revision = revision
        self.history = History(revision, history_bytes_max)
        self._entries: dict[str, Entry] = {}
        self._keys = SortedKeys()

    @classmethod
    def restored(cls, entries: dict[str, Entry], revision: int, history_bytes_max: int) -> "KeySpace":
        """A key space that holds `entries` at `revision` and remembers nothing before it."""
        space = cls(revision, history_bytes_max)
        space._entries = entries
        space._keys = SortedKeys(entries)
        return space

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def value(self, key: str) -> bytes | None:
        entry = self._entries.get(key)
        return entry.value if entry is not None else None

    def differing(self, compares: Sequence[Compare]) -> dict[str, Entry | None]:
        """The compared keys whose condition does not hold, as they are."""
        found: dict[str, Entry | None] = {}
        for compare in compares:
            entry = self._entries.get(compare.key)
            if (entry.revision if entry is not None else 0) != compare.revision:
                found[compare.key] = entry
        return found

    def commit(self, writes: Sequence[Write]) -> list[Event]:
        """Apply one transaction. No events, no new revision."""
        events: list[Event] = []
        revision = self.revision + 1
        for write in writes:
            before = self._entries.get(write.key)
            event = (
                self._put(write, before, revision)
                if isinstance(write, Put)
                else self._delete(before, revision)
            )
            if event is not None:
                events.append(event)
                self.history.record(event, before)
        if events:
            self.revision = revision
            self.history.trim()
        return events

    def _put(self, put: Put, before: Entry | None, revision: int) -> Event:
        created = before.created if before is not None else revision
        self._entries[put.key] = Entry(put.key, put.value, created, revision)
        if before is None:
            self._keys.add(put.key)
            return Event(put.key, put.value, revision, created, None)
        return Event(put.key, put.value, revision, created, before.value)

    def _delete(self, before: Entry | None, revision: int) -> Event | None:
        if before is None:
            return None
        del self._entries[before.key]
        self._keys.remove(before.key)
        return Event(before.key, None, revision, before.created, before.value)

    def page(self, prefix: str, after: str, limit: int, at: int) -> Page:
        """What `Store.range` answers."""
        start = max(prefix, just_after(after)) if after else prefix
        end = prefix_end(prefix)
        if at in (0, self.revision):
            return self._page_now(start, end, limit)
        return self._page_then(start, end, limit, at)

    def _page_now(self, start: str, end: str | None, limit: int) -> Page:
        keys = self._keys.between(start, end)
        entries = [self._entries[key] for key in (islice(keys, limit) if limit else keys)]
        behind = self._keys.count(just_after(entries[-1].key), end) if limit and len(entries) == limit else 0
        return Page(entries, self.revision, behind > 0, behind)

    def _page_then(self, start: str, end: str | None, limit: int, at: int) -> Page:
        if at > self.revision:
            raise ValueError(f"revision {at} is in the future, the store is at {self.revision}")
        if at < self.history.floor:
            raise Compacted(at)
        walk = self._entries_at(at, start, end)
        entries = list(islice(walk, limit) if limit else walk)
        behind = (
            self._count_at(at, just_after(entries[-1].key), end) if limit and len(entries) == limit else 0
        )
        return Page(entries, at, behind > 0, behind)

    def _entries_at(self, at: int, start: str, end: str | None) -> Iterator[Entry]:
        for key in merge(self._keys.between(start, end), self.history.gone().between(start, end)):
            entry = self.history.at(at, key, self._entries.get(key))
            if entry is not None:
                yield entry

    def _count_at(self, at: int, start: str, end: str | None) -> int:
        """How many keys there were: those of today, corrected by what changed since."""
        count = self._keys.count(start, end)
        for key in self.history.changed_since(at):
            if start <= key and (end is None or key < end):
                now = self._entries.get(key)
                count += (self.history.at(at, key, now) is not None) - (now is not None)
        return count

    def events(self, prefix: str, after: int, count: int) -> tuple[list[Event], int]:
        """Look at the next `count` events: those below `prefix`, and how far one has now seen."""
        if after < self.history.floor:
            raise Compacted(after)
        seen = self.history.after(after, count)
        reached = seen[-1].revision if seen else max(after, self.revision)
        return [event for event in seen if event.key.startswith(prefix)], reached

    def compact(self, revision: int) -> None:
        if revision > self.revision:
            raise ValueError(f"revision {revision} is in the future, the store is at {self.revision}")
        self.history.forget(revision)

    def check(self) -> None:
        """Verify what no single method can see. Slow: for tests and `sim`."""
        ordered = list(self._keys.between("", None))
        require(ordered == sorted(self._entries), "the order lists exactly the entries")
        require(
            all(entry.created <= entry.revision <= self.revision for entry in self._entries.values()),
            "KEYS1: no entry is from the future",
        )
        require(not set(self.history.gone().between("", None)) & set(ordered), "what is gone has no present")


def require_distinct(changes: Sequence[Change]) -> None:
    """A transaction has no inner order, so it may name a key once."""
    if len(changes) > 1:
        keys = {change.key for change in changes}
        require(len(keys) == len(changes), "a transaction writes each key at most once")


def settled(changes: Sequence[Change], value: Callable[[str], bytes | None]) -> list[Write]:
    """What the changes come to where `value` says what is there."""
    return [
        _revised(change, value(change.key)) if isinstance(change, Revise) else change for change in changes
    ]


def _revised(revise: Revise, before: bytes | None) -> Write:
    after = revise.make(before)
    return Delete(revise.key) if after is None else Put(revise.key, after)
