"""What a store is, whichever engine keeps it.

A store is an ordered map from keys to bytes, and one number. Every transaction
that changes something raises that number, the revision, by one and stamps it on
all it wrote: the revision orders everything that ever happened. A reader may ask
for the map as it was at a revision, a watcher for everything after one.

What it promises
    S1  An acknowledged write survives kill -9 and power loss (where the engine
        has a disk); revisions grow; a compare never succeeds on a stale revision.
    S2  Every watcher of a prefix sees the same ordered history without gaps or
        repetitions, or is told to start over (`Compacted`).
    STORE1  One transaction is one revision, and a watcher gets it in one piece.

An empty store is at revision 1, so that 0 can mean "none" in a compare and
"now" in a read. Keys are text, ordered by code point.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A key as it stands at some revision."""

    key: str
    value: bytes
    created: int  # the revision that first wrote the key since it last did not exist
    revision: int  # the revision that last wrote it


class Event(msgspec.Struct, frozen=True, gc=False):
    """One key changed. `value` is None for a deletion, `previous` for a creation."""

    key: str
    value: bytes | None
    revision: int
    created: int
    previous: bytes | None


class Put(msgspec.Struct, frozen=True, gc=False):
    key: str
    value: bytes


class Delete(msgspec.Struct, frozen=True, gc=False):
    key: str


Write = Put | Delete


class Revise(msgspec.Struct, frozen=True):
    """A write that follows from what is there at the moment the transaction is decided.

    `make` gets the value and gives the next one; None stands for a key that does not exist. It
    may be called several times. What it raises refuses the transaction: nothing is written, and
    the caller gets it once it is certain that what `make` saw is true and that every compare
    holds; where one does not, that is the answer.
    """

    key: str
    make: Callable[[bytes | None], bytes | None]


Change = Write | Revise


class Compare(msgspec.Struct, frozen=True, gc=False):
    """A condition: `key` was last written at `revision`; 0 means it does not exist."""

    key: str
    revision: int


class Committed(msgspec.Struct, frozen=True, gc=False):
    """All of it is written, and durable. Without an effect, the revision is the current one."""

    revision: int


class Refused(msgspec.Struct, frozen=True):
    """Nothing is written. The compared keys that differed, as they are now."""

    current: Mapping[str, Entry | None]


class Page(msgspec.Struct, frozen=True):
    entries: Sequence[Entry]
    revision: int  # the revision at which this was read; hand it in as `at` for the next page
    more: bool
    remaining: int  # how many matching keys lie behind this page


class StoreError(Exception):
    """Something a store may always answer instead of what was asked."""


class Compacted(StoreError):
    """The history asked for is no longer kept: read the present and start over from there."""

    def __init__(self, asked: int) -> None:
        super().__init__(f"revision {asked} is compacted away")
        self.asked = asked


class Unavailable(StoreError):
    """Not done, and surely not: asking again is safe. `soon` says whether it may help within moments,
    or a trouble must end first that the store knows of."""

    def __init__(self, message: str, *, soon: bool = True) -> None:
        super().__init__(message)
        self.soon = soon


class InUse(Unavailable):
    """Another process has what one at a time may have; the message says which."""


class TooLarge(StoreError):
    """Not done: more than the store takes in one transaction."""


class OutcomeUnknown(StoreError):
    """Done or not, nobody knows: read before writing again."""


class Watch(Protocol):
    """The changes below a prefix, in batches; each revision arrives in one piece.

    Iteration ends after `close` here or on the store. It raises `Compacted` when the
    reader fell behind what is kept, and `Unavailable` when it may not watch at all; a
    store that is merely away is waited for. A reader that does not read costs nobody
    else anything.
    """

    @property
    def progress(self) -> int:
        """Every event at or before this revision has been delivered."""
        ...

    def hurry(self) -> None:
        """Somebody waits for `progress`, which a store of others may tell late where nothing happens."""
        ...

    def __aiter__(self) -> "Watch": ...

    async def __anext__(self) -> list[Event]: ...

    def close(self) -> None: ...


class Store(Protocol):
    async def get(self, key: str) -> Entry | None:
        """The key as it is now (linearizable)."""
        ...

    def peek(self, key: str) -> Entry | None:
        """The key as far as this process knows, at once; exact where the engine is embedded.

        An engine that keeps no local view answers None for everything: fit for
        hints, never for decisions that no compare guards.
        """
        ...

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0) -> Page:
        """Entries whose key starts with `prefix` and is greater than `after`, in key order.

        At revision `at`, or now (linearizable) for 0. No limit is 0. Raises
        `Compacted` for a past that is no longer kept, `ValueError` for a future.
        """
        ...

    async def transact(self, compares: Sequence[Compare], changes: Sequence[Change]) -> Committed | Refused:
        """Write all or nothing, if every compare holds; durable before it returns.

        A key may be written once in a transaction. Deleting what does not exist
        has no effect, and a transaction without effect makes no revision. Where a key
        that it revises is changed by others again and again, it is refused at last.
        """
        ...

    async def revision(self) -> int:
        """The current revision (linearizable)."""
        ...

    def watch(self, prefix: str, after: int) -> Watch:
        """Every change below `prefix` with a revision greater than `after`."""
        ...

    async def lost(self) -> str:
        """Wait, mostly for ever, until nothing that was read from it counts any more, and say why.

        That is so when somebody else's store answers in its place, or a past state of it.
        """
        ...

    def trouble(self) -> str:
        """Why it takes no writes, or does not answer, in words; empty while all is well. Costs nothing."""
        ...

    async def compact(self, revision: int) -> None:
        """Let go of what only reads before `revision` and watches from before it would need.

        An engine may do so on its own when its history outgrows its budget.
        """
        ...

    async def scrub(self) -> None:
        """Leave no trace of what was compacted away in the files of this store.

        Takes its time, and whoever writes waits. Where the files are somebody else's (etcd), that
        one has to do it; where there are none, there is nothing to do.
        """
        ...

    async def close(self) -> None:
        """End every watch and give everything back. Later calls raise `Unavailable`."""
        ...
