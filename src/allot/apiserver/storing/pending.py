"""Several writes that the store will be given as one: what they have written so far, in front of it.

The members of a transaction run one after the other through the same code as any other write. Each reads
from and writes to a `Pending`, which looks like a store: what members before it wrote is there already,
at revisions that no store gives out. At the end all of it is one transaction of the store beneath.

What it promises
    PEND1  A member sees what the members before it did, and nobody else sees any of it before `commit`.
    PEND2  What any member compared is compared at the commit, unless a member wrote it before.
    PEND3  A key is read from the store once: two members decide on the same state of it.

A first attempt takes compares on trust, since the commit makes them. One that is `careful` looks at the store
for each of them, so that the member whose compare fails is told as it would be alone.

`FrontStore` is the store that everybody in the server has. While a transaction is being put together
(`opened`), what its task reads and writes goes to the `Pending`, whichever part of the server it is in.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import msgspec

from allot.api import OBJECT_BYTES_MAX, Fields, Object, errors
from allot.store import (
    Change,
    Committed,
    Compare,
    Delete,
    Entry,
    Page,
    Put,
    Refused,
    Revise,
    Store,
    Watch,
)

A = ParamSpec("A")
T = TypeVar("T")

FIRST_REVISION = 1 << 60
"""Of what is pending: later than any that a store has given out."""
KEYS_MAX = 100
"""Written, and compared: etcd takes 128 of each in one transaction unless it is set up otherwise."""
BYTES_MAX = OBJECT_BYTES_MAX
"""Of all that is written together: what etcd takes in one request."""
_KEY_BYTES = 32
"""What else a request to etcd has for a key, which is in it where it is written and twice where compared."""


def in_words(revision: int) -> str:
    """For messages: what is pending is at no revision that anybody will ever read."""
    return str(revision) if revision < FIRST_REVISION else "that of this transaction"


class Moved(Exception):
    """What one member read is not what another one read: the transaction must begin anew."""


class MemberRefused(Exception):
    """A change says no at the moment of the commit."""

    def __init__(self, member: int, error: errors.ApiError) -> None:
        super().__init__(str(error))
        self.member = member
        self.error = error


class _Revision(msgspec.Struct, frozen=True):
    member: int
    make: Callable[[bytes | None], bytes | None]

    def __call__(self, value: bytes | None) -> bytes | None:
        try:
            return self.make(value)
        except errors.ApiError as refused:
            raise MemberRefused(self.member, refused) from refused


class Pending:
    def __init__(self, store: Store, *, careful: bool) -> None:
        self.member = 0  # which of the requests writes now
        self._store = store
        self._careful = careful
        self._revision = FIRST_REVISION
        self._read: dict[str, Entry | None] = {}
        self._entries: dict[str, Entry | None] = {}  # as members wrote them; None: deleted
        self._revised: dict[str, tuple[_Revision, ...]] = {}
        self._compares: dict[str, int] = {}
        self._objects: dict[str, Object] = {}
        self._last: dict[str, int] = {}  # key -> when it was last written
        self._subjects: dict[int, str] = {}  # revision -> the key that the write was about
        self._size = 0  # of the values of entries

    # -- as a store ------------------------------------------------------------------------------

    async def get(self, key: str) -> Entry | None:
        if key in self._entries:
            return self._entries[key]
        if key in self._revised:
            await self._settle(key)
            return self._entries[key]
        return await self._first_read(key)

    def peek(self, key: str) -> Entry | None:
        return self._entries[key] if key in self._entries else self._store.peek(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0) -> Page:
        for key in [key for key in self._revised if key.startswith(prefix)]:
            await self._settle(key)
        own = {key: entry for key, entry in self._entries.items() if key.startswith(prefix) and key > after}
        if at or not own:
            return await self._store.range(prefix, after=after, limit=limit, at=at)
        page = await self._store.range(prefix, after=after)
        merged = {**{entry.key: entry for entry in page.entries}, **own}
        entries = [entry for _, entry in sorted(merged.items()) if entry is not None]
        shown = entries[:limit] if limit else entries
        return Page(shown, page.revision, len(shown) < len(entries), len(entries) - len(shown))

    async def transact(self, compares: Sequence[Compare], changes: Sequence[Change]) -> Committed | Refused:
        if self._revised:
            looked_at = {compare.key for compare in compares}
            looked_at |= {change.key for change in changes if not isinstance(change, Revise)}
            for key in sorted(looked_at & self._revised.keys()):
                await self._settle(key)
        differing = await self._differing(compares)
        if differing:
            return Refused(differing)
        for compare in compares:
            if compare.key not in self._entries:
                self._compares[compare.key] = compare.revision
        self._revision += 1
        if changes:
            self._subjects[self._revision] = changes[0].key
        for change in changes:
            self._last[change.key] = self._revision
            self._apply(change)
        self._require_bounded()
        return Committed(self._revision)

    # -- beside it -------------------------------------------------------------------------------

    def written(self, key: str, stored: bytes, revision: int, fields: Fields) -> Object:
        """See `Recent.written`: what a member has just stored."""
        fields["metadata"]["resourceVersion"] = str(revision)
        self._objects[key] = written = Object(stored, revision, fields)
        return written

    def has_written(self, key: str) -> bool:
        return key in self._entries

    def compare_beneath(self, compare: Compare) -> None:
        """What must be so in the store, whatever members have written there since."""
        if self._compares.setdefault(compare.key, compare.revision) != compare.revision:
            raise Moved(compare.key)

    def changed(self, prefix: str) -> list[tuple[str, Entry | None]]:
        """What members wrote so far below `prefix`; None is what they deleted."""
        return [(key, entry) for key, entry in self._entries.items() if key.startswith(prefix)]

    def at(self, key: str, revision: int) -> Object | None:
        """See `Recent.at`."""
        found = self._objects.get(key)
        return found if found is not None and found.revision == revision else None

    async def commit(self) -> Committed | Refused:
        """All of it, or nothing. Raises MemberRefused where a change says no."""
        return await self._store.transact(
            [Compare(key, revision) for key, revision in self._compares.items()], self._changes()
        )

    async def rehearse(self) -> None:
        """Raises what `commit` would raise now, and writes nothing."""
        for key, revisions in self._revised.items():
            self._settled(revisions, await self._first_read(key))

    def last(self) -> Iterator[tuple[str, Object]]:
        """What will be found under each key that holds an object, as its writer left it."""
        for key, object in self._objects.items():
            entry = self._entries.get(key)
            if entry is not None and entry.revision == object.revision:
                yield key, object

    def is_last(self, object: Object) -> bool:
        """Whether an object that a member wrote, or deleted, was not written again by a later one."""
        subject = self._subjects.get(object.revision, "")
        return self._last.get(subject) == object.revision

    # -- within ----------------------------------------------------------------------------------

    async def _first_read(self, key: str) -> Entry | None:
        if key not in self._read:
            self._read[key] = await self._store.get(key)
        return self._read[key]

    async def _differing(self, compares: Sequence[Compare]) -> Mapping[str, Entry | None]:
        found: dict[str, Entry | None] = {}
        for key, revision in ((compare.key, compare.revision) for compare in compares):
            if key in self._entries:
                entry = self._entries[key]
                if (entry.revision if entry else 0) != revision:
                    found[key] = entry
            elif self._careful:
                entry = await self._first_read(key)
                if (entry.revision if entry else 0) != revision:
                    found[key] = entry
            elif self._compares.get(key, revision) != revision:
                raise Moved(key)
        return found

    def _apply(self, change: Change) -> None:
        key = change.key
        match change:
            case Put(_, value):
                was_deleted = key in self._entries and self._entries[key] is None
                if was_deleted and self._compares.get(key):
                    raise errors.BadRequest(
                        f"{key.rpartition('/')[2]} is deleted and created anew in one transaction: "
                        "send two, or those who watch take the one for the other"
                    )
                self._replace(key, Entry(key, value, self._revision, self._revision))
            case Delete():
                self._replace(key, None)
                self._objects.pop(key, None)
            case Revise(_, make) if key in self._entries:
                entry = self._entries[key]
                value_now = _Revision(self.member, make)(entry.value if entry else None)
                self._apply(Delete(key) if value_now is None else Put(key, value_now))
            case Revise(_, make):
                self._revised[key] = (*self._revised.get(key, ()), _Revision(self.member, make))

    def _replace(self, key: str, entry: Entry | None) -> None:
        before = self._entries.get(key)
        self._size += (len(entry.value) if entry is not None else 0) - (len(before.value) if before else 0)
        self._entries[key] = entry

    async def _settle(self, key: str) -> None:
        """Who looks at what a member only said how to revise decides by what comes of it: from now on it is
        compared, and written like anything else."""
        before = await self._first_read(key)
        value, revision = self._settled(self._revised.pop(key), before), self._last[key]
        self._compares.setdefault(key, before.revision if before is not None else 0)
        self._replace(key, None if value is None else Entry(key, value, revision, revision))

    @staticmethod
    def _settled(revisions: Sequence[_Revision], entry: Entry | None) -> bytes | None:
        value = entry.value if entry is not None else None
        for revise in revisions:
            value = revise(value)
        return value

    def _changes(self) -> list[Change]:
        changes: list[Change] = [
            Delete(key) if entry is None else Put(key, entry.value) for key, entry in self._entries.items()
        ]
        for key, revisions in self._revised.items():
            changes.append(Revise(key, _chained(revisions)))
        return changes

    def _require_bounded(self) -> None:
        size = self._size
        if size > BYTES_MAX // 2:
            size += sum(len(key) + _KEY_BYTES for key in (*self._entries, *self._compares, *self._compares))
        if size > BYTES_MAX:
            raise errors.TooLarge(
                f"the transaction is too large to be stored: {size} bytes, the limit is {BYTES_MAX}"
            )
        written, compared = len(self._entries) + len(self._revised), len(self._compares) + len(self._revised)
        if max(written, compared) > KEYS_MAX:
            raise errors.TooLarge(
                f"the transaction concerns too many records: it writes {written} and compares {compared}, "
                f"the limit is {KEYS_MAX} of each"
            )


def _chained(revisions: Sequence[_Revision]) -> Callable[[bytes | None], bytes | None]:
    def make(value: bytes | None) -> bytes | None:
        for revise in revisions:
            value = revise(value)
        return value

    return make


_OPEN: dict[asyncio.Task[Any], Pending] = {}
_NOW: Mapping[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = (
    getattr(asyncio.tasks, "_current_tasks", None) if sys.version_info < (3, 12) else None
)
"""What `asyncio.current_task` looks at until Python 3.12, which has it in C: a member asks five times."""


_asked_by: Pending | None = None
"""While the event loop answers a member that is in a thread: see `in_transaction`."""


def in_transaction(ask: Callable[A, T]) -> Callable[A, T]:
    """`ask`, which sees what the transaction at hand has written also where no task asks: a member that
    is long in a thread has the event loop look for it."""
    put = pending()
    if put is None:
        return ask

    def asked(*args: A.args, **kwargs: A.kwargs) -> T:
        global _asked_by
        before, _asked_by = _asked_by, put
        try:
            return ask(*args, **kwargs)
        finally:
            _asked_by = before

    return asked


def pending() -> Pending | None:
    """The transaction that this task puts together, if it does."""
    if not _OPEN:
        return None
    if _asked_by is not None:
        return _asked_by
    if _NOW is not None:
        return _OPEN.get(_NOW.get(asyncio.get_running_loop()))  # type: ignore[arg-type]
    task = asyncio.current_task()
    return _OPEN.get(task) if task is not None else None


def is_pending(key: str) -> bool:
    """Whether the transaction at hand has written this, or deleted it: a cache knows nothing of it."""
    put = pending()
    return put is not None and put.has_written(key)


def compared_beneath(compare: Compare) -> bool:
    """Whether the transaction at hand has written the key: then the store beneath it is compared, at the
    commit. For what earlier members, who are the same caller, cannot have made otherwise."""
    put = pending()
    if put is None or not put.has_written(compare.key):
        return False
    put.compare_beneath(compare)
    return True


def changes_pending(prefix: str) -> list[tuple[str, Entry | None]]:
    """What the transaction at hand has written below `prefix`; None is what it deleted."""
    put = pending()
    return put.changed(prefix) if put is not None else []


@contextmanager
def opened(store: "FrontStore", *, careful: bool) -> Iterator[Pending]:
    """Within this, the task reads and writes through the `Pending`, and no other task does: not even those
    that it wakes or starts (PEND1)."""
    task = asyncio.current_task()
    assert task is not None and task not in _OPEN, "one transaction at a time, in a task of its own"
    _OPEN[task] = put_together = Pending(store.behind, careful=careful)
    try:
        yield put_together
    finally:
        del _OPEN[task]


class FrontStore:
    """The store as the request at hand sees it."""

    def __init__(self, store: Store) -> None:
        self.behind = store
        self.revision = store.revision
        self.lost = store.lost
        self.trouble = store.trouble
        self.compact = store.compact
        self.scrub = store.scrub
        self.close = store.close

    def get(self, key: str) -> Coroutine[Any, Any, Entry | None]:
        return (pending() or self.behind).get(key)

    def peek(self, key: str) -> Entry | None:
        return (pending() or self.behind).peek(key)

    def range(
        self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0
    ) -> Coroutine[Any, Any, Page]:
        return (pending() or self.behind).range(prefix, after=after, limit=limit, at=at)

    def transact(
        self, compares: Sequence[Compare], changes: Sequence[Change]
    ) -> Coroutine[Any, Any, Committed | Refused]:
        return (pending() or self.behind).transact(compares, changes)

    def watch(self, prefix: str, after: int) -> Watch:
        return self.behind.watch(prefix, after)
