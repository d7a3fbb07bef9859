"""What happened lately, and how it was before.

Where it sits
    `KeySpace` records every event here; watches that are behind read it, and
    reads at an older revision ask it how a key was then.

What it promises
    HIST1  Every event with a revision greater than `floor` is here, in order.
    HIST2  For every revision from `floor` on, `at` knows each key as it was.
    HIST3  It keeps at most `bytes_max`, and forgets whole revisions, oldest first.
    HIST4  What is forgotten is let go of at once: no value stays in memory because the place
           where it lay has not been tidied up yet.
"""

from bisect import bisect_left, bisect_right
from operator import itemgetter
from typing import Final

from .contract import Entry, Event
from .order import SortedKeys

EVENT_OVERHEAD_BYTES = 300  # an event and its index, measured, without the value
TRIM_SLACK = 4096  # dead places at the front of the list before it is worth moving the rest

_until: Final = itemgetter(0)

# These lie where something is forgotten. Revision 0 comes before all others, so the lists stay ordered.
_FORGOTTEN: Final = Event("", None, 0, 0, None)
_FORGOTTEN_PAST: Final[tuple[int, Entry | None]] = (0, None)


class History:
    def __init__(self, floor: int, bytes_max: int) -> None:
        self.floor = floor
        self._bytes_max = bytes_max
        self._bytes = 0
        self._events: list[Event] = []
        self._start = 0  # events before this place are forgotten
        self._past: dict[str, list[tuple[int, Entry | None]]] = {}  # (until, how it was), oldest first
        self._gone = SortedKeys()  # keys that have a past and no present

    def record(self, event: Event, before: Entry | None) -> None:
        """Note a change that has just happened to a key that was `before`."""
        past = self._past.get(event.key)
        if past is None:
            self._past[event.key] = [(event.revision, before)]
        else:
            past.append((event.revision, before))
            if before is None:
                self._gone.remove(event.key)
        if event.value is None:
            self._gone.add(event.key)
        self._events.append(event)
        self._bytes += size_of(event)

    def trim(self) -> None:
        """Forget the oldest revisions until the rest fits the budget (HIST3).

        Called between transactions, so that none is ever half forgotten.
        """
        if self._bytes > self._bytes_max:
            newest = self._events[-1].revision
            while self._bytes > self._bytes_max and self.floor < newest:
                self.forget(self._events[self._start].revision)

    def forget(self, revision: int) -> None:
        """Forget every event at or before `revision`."""
        while self._start < len(self._events) and self._events[self._start].revision <= revision:
            self._forget_one(self._events[self._start])
            self._events[self._start] = _FORGOTTEN
            self._start += 1
        self.floor = max(self.floor, revision)
        if self._start > TRIM_SLACK and self._start * 2 > len(self._events):
            del self._events[: self._start]
            self._start = 0

    def _forget_one(self, event: Event) -> None:
        past = self._past[event.key]
        if past[-1][0] <= event.revision:
            del self._past[event.key]
            if event.value is None:
                self._gone.remove(event.key)
        else:
            oldest = bisect_left(past, event.revision, key=_until)
            past[oldest] = _FORGOTTEN_PAST
            # Not one by one: the front of a list is dear to remove, and one key may hold most of it.
            if oldest >= len(past) // 4:
                del past[: oldest + 1]
        self._bytes -= size_of(event)

    def after(self, revision: int, count: int) -> list[Event]:
        """The next `count` events after `revision`, and the rest of the last one's transaction."""
        first = self._find(revision)
        last = first + count
        if last < len(self._events):
            last = self._find(self._events[last - 1].revision)
        return self._events[first:last]

    def changed_since(self, revision: int) -> set[str]:
        """The keys with an event after `revision`."""
        return {event.key for event in self._events[self._find(revision) :]}

    def _find(self, revision: int) -> int:
        """The place of the first event after `revision`."""
        return bisect_right(self._events, revision, lo=self._start, key=lambda event: event.revision)

    def at(self, revision: int, key: str, now: Entry | None) -> Entry | None:
        """How `key`, which is `now`, was at `revision` (HIST2)."""
        past = self._past.get(key)
        if past is None or past[-1][0] <= revision:
            return now
        return past[bisect_right(past, revision, key=_until)][1]

    def gone(self) -> SortedKeys:
        """Keys that do not exist now and did since `floor`."""
        return self._gone


def size_of(event: Event) -> int:
    """What keeping this event costs: the value it replaced, which only history still holds."""
    return EVENT_OVERHEAD_BYTES + len(event.previous or b"")
