"""What happened to one resource lately, kept once for all who watch it.

A watcher owns nothing but a position. It takes everything past its position in
one slice, and what an event looks like on the wire is made once, by the first
watcher that needs it in that form. So a change costs the same with one watcher
and with a thousand until they wake up, and a watcher that does not read costs
nothing: it falls out of the window and is told to start over (S2).

What it costs
    A history is bounded in changes and in bytes, and all histories of a server together
    by one `Budget`. What watchers made of a change (its lines, its fields) takes many times
    its bytes, and is wanted while the change is news: later only the bytes are kept.
"""

from collections.abc import Callable, Sequence
from weakref import ref

from allot.api import Object

from ..requests.pieces import BYTES
from ..storing.recent import Recent

WINDOW_CHANGES = 8192
WINDOW_BYTES = 64 * 1024 * 1024
WINDOW_BYTES_LEAST = 1024 * 1024  # which nobody is denied
ALL_WINDOWS_BYTES = 128 * 1024 * 1024
NEWS_PART = 4  # of a window's bytes, the newest quarter


class Change:
    """One object moved from `previous` to `object` at `revision`."""

    __slots__ = ("_deletion", "_is_old", "_lines", "_shared", "key", "object", "previous", "revision", "type")

    def __init__(self, type: str, key: str, object: Object, previous: Object | None, revision: int) -> None:
        self.type = type  # ADDED, MODIFIED or DELETED
        self.key = key
        self.object = object  # for DELETED: the last state, at the revision of the deletion
        self.previous = previous
        self.revision = revision
        self._lines: dict[str, bytes] | None = None
        self._is_old = False
        self._deletion: Change | None = None
        self._shared: ref[Object] | None = None

    def line(self, form: str, render: Callable[[Object], bytes], type: str = "") -> bytes:
        """The event as a watcher reads it. `form` names what `render` makes."""
        type = type or self.type
        if self._is_old:
            return event_line(type, render(self.object))
        key = f"{type} {form}"
        if self._lines is None:
            self._lines = {}
        found = self._lines.get(key)
        if found is None:
            found = self._lines[key] = event_line(type, render(self.object))
        return found

    def shared_object(self, recent: Recent) -> Object:
        """The object for watchers in this process: the same one for all, as long as one of them has it,
        and the one that its writer was given. Whoever is told of an end sees what was before it.

        They will read it in their own ways, and what they read stays with it. History keeps bytes.
        """
        found = self._shared() if self._shared is not None else None
        if found is None:
            revision, is_last = self.object.revision, self.type == "DELETED"
            written = None if is_last else recent.at(self.key, revision)
            found = written or Object(self.object.stored, revision)
            self._shared = ref(found)
        return found

    def as_deletion(self) -> "Change":
        """For a watcher whose selection the object has left: what it was when it was last in it.

        How it is now is none of that watcher's business.
        """
        if self.type == "DELETED" or self.previous is None:
            return self
        if self._deletion is None:
            last = Object(self.previous.stored, self.revision)
            deletion = Change("DELETED", self.key, last, self.previous, self.revision)
            if self._is_old:
                return deletion
            self._deletion = deletion
        return self._deletion

    def grow_old(self) -> None:
        """Keep the bytes only. Who still asks for a line has it made for themselves."""
        self._is_old = True
        self._lines = self._deletion = None
        self.object.forget_fields()
        if self.previous is not None:
            self.previous.forget_fields()


def event_line(type: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type.encode(), body)


class FellBehind(Exception):
    """The position is no longer in the window."""


class Budget:
    """Bytes that all histories may keep together.

    Each may have as much as is left for others. So one alone gets half of it, and several that
    are busy at once come to share it evenly.
    """

    __slots__ = ("left",)

    def __init__(self, bytes_max: int = ALL_WINDOWS_BYTES) -> None:
        self.left = bytes_max


class History:
    """Positions count changes from the beginning of time; only the newest are kept."""

    def __init__(
        self,
        complete_after: int,
        window: int = WINDOW_CHANGES,
        window_bytes: int = WINDOW_BYTES,
        budget: Budget | None = None,
    ) -> None:
        self.complete_after = complete_after  # every change after this revision is kept
        self._changes: list[Change] = []
        self._first = 0  # position of _changes[0]
        self._bytes = 0
        self._old = 0  # position before which changes have grown old
        self._news_bytes = 0  # of those that have not
        self._window = window
        self._window_bytes = window_bytes
        self._budget = budget or Budget()

    @property
    def end(self) -> int:
        """The position after the newest change."""
        return self._first + len(self._changes)

    @property
    def start(self) -> int:
        return self._first

    def append(self, changes: Sequence[Change]) -> None:
        self._changes.extend(changes)
        added = sum(len(change.object.stored) for change in changes)
        self._bytes += added
        self._news_bytes += added
        self._budget.left -= added
        bytes_max = min(self._window_bytes, max(WINDOW_BYTES_LEAST, self._budget.left))
        # Half of what there is goes at once, so that trimming is rare and whole.
        if len(self._changes) > 2 * self._window or self._bytes > bytes_max:
            self._trim(bytes_max // 2)
        self._let_grow_old(bytes_max // NEWS_PART)

    def _trim(self, bytes_max: int) -> None:
        keep, kept_bytes = 0, 0
        for change in reversed(self._changes):
            size = len(change.object.stored)
            if keep and (keep >= self._window or kept_bytes + size > bytes_max):
                break
            keep += 1
            kept_bytes += size
        dropped = len(self._changes) - keep
        self.complete_after = self._changes[dropped - 1].revision if dropped else self.complete_after
        self._changes = self._changes[dropped:]
        self._first += dropped
        self._budget.left += self._bytes - kept_bytes
        self._bytes = kept_bytes

    def _let_grow_old(self, news_bytes_max: int) -> None:
        if self._old < self._first:
            self._old, self._news_bytes = self._first, self._bytes
        while self._news_bytes > news_bytes_max and self._old < self.end - 1:
            change = self._changes[self._old - self._first]
            self._news_bytes -= len(change.object.stored)
            self._old += 1
            change.grow_old()

    def let_go(self) -> None:
        """Give back what it has of the budget: another history takes its place."""
        self._budget.left += self._bytes
        self._changes, self._bytes = [], 0

    def since(self, position: int, most: int, most_bytes: int = BYTES) -> Sequence[Change]:
        """What follows a position, as much of it as makes one piece."""
        if position < self._first:
            raise FellBehind
        at = position - self._first
        changes = self._changes[at : at + most]
        size = 0
        for count, change in enumerate(changes):
            size += len(change.object.stored)
            if count and size > most_bytes:
                return changes[:count]
        return changes

    def position_after(self, revision: int) -> int:
        """Where a watcher that has seen everything up to `revision` continues."""
        low, high = 0, len(self._changes)
        while low < high:
            middle = (low + high) // 2
            if self._changes[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return self._first + low

    def position_to_resume(self, revision: int) -> int:
        """Where a client continues which says that it has seen `revision`.

        Where a transaction changed several objects at that revision, the client may have seen one of
        them when its connection broke: they are repeated.
        """
        position = self.position_after(revision)
        first = position - self._first
        while first and self._changes[first - 1].revision == revision:
            first -= 1
        repeated = position - self._first - first
        return position - repeated if repeated > 1 else position
