"""A store that forgets nothing and thinks about nothing: the oracle.

It keeps the whole map for every revision. Slow, obvious, and therefore right.
"""

from collections.abc import Iterator, Sequence

from allot.store import Compare, Entry, Event, Put, Write


class Model:
    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.maps: dict[int, dict[str, Entry]] = {revision: {}}
        self.events: list[Event] = []

    def fork(self) -> "Model":
        """A copy that can be led astray."""
        copy = Model(self.revision)
        copy.maps, copy.events = dict(self.maps), list(self.events)
        return copy

    def differing(self, compares: Sequence[Compare], at: int = 0) -> dict[str, Entry | None]:
        now = self.maps[at or self.revision]
        entries = {compare.key: (now.get(compare.key), compare.revision) for compare in compares}
        return {
            key: entry
            for key, (entry, wanted) in entries.items()
            if (entry.revision if entry else 0) != wanted
        }

    def commit(self, writes: Sequence[Write]) -> list[Event]:
        now = dict(self.maps[self.revision])
        revision = self.revision + 1
        events = []
        for write in writes:
            before = now.pop(write.key, None)
            previous = before.value if before else None
            created = before.created if before else revision
            if isinstance(write, Put):
                now[write.key] = Entry(write.key, write.value, created, revision)
                events.append(Event(write.key, write.value, revision, created, previous))
            elif before:
                events.append(Event(write.key, None, revision, created, previous))
        if events:
            self.revision = revision
            self.maps[revision] = now
            self.events += events
        return events

    def range(self, prefix: str, after: str, at: int) -> list[Entry]:
        return [
            entry for key, entry in sorted(self.maps[at].items()) if key.startswith(prefix) and key > after
        ]

    def since(self, prefix: str, after: int) -> Iterator[Event]:
        return (event for event in self.events if event.revision > after and event.key.startswith(prefix))
