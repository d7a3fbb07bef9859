"""Streams of changes.

A stream begins in one of three ways: with the objects as they are now (each an
ADDED event), after a revision that the shared history still holds, or after an
older one, which is read from the store for this watcher alone. It ends when its
time is up, when the client leaves or may no longer watch, or when the client falls
so far behind that it must start over.

A selector makes a watcher's own world: an object that begins to match is ADDED
there, one that ceases to match is DELETED.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from allot.api import Kind, Object, WatchChunk, encode, errors
from allot.store import Compacted, Event, Store, Watch

from ..requests.pieces import pieces
from ..requests.render import Renderer
from ..requests.turns import Turns
from ..storing.recent import Recent
from ..storing.stored import read_stored
from .cache import Cache
from .history import Change, FellBehind, event_line
from .rights import WatchRights
from .selection import Selection

_BATCH = 256
_GATHER_S_PER_STREAM = 0.0001
_GATHER_S_MAX = 0.05
"""With many watchers, what follows closely is sent together: waking each for each change would
take all the time there is. One watcher alone waits a tenth of a millisecond."""
_CATCH_UP_POLL_S = 0.02
_LOOK_AGAIN_S = 10.0
"""How often everybody who watches is asked about, whether or not a role has changed."""
_TOO_OLD = "too old resource version: the changes since then are no longer known; list again"


class WatchOptions(NamedTuple):
    revision: int | None  # None: begin with the current objects
    bookmarks: bool
    initial_events_end: bool  # mark the end of the initial events with a bookmark
    timeout_s: float  # 0: not said


class Sight:
    """What one watcher sees: which objects, in which form."""

    def __init__(self, renderer: Renderer, selection: Selection, recent: Recent) -> None:
        self.renderer = renderer
        self._selection = selection
        self._recent = recent

    def initial(self, objects: Iterable[Object]) -> bytes:
        seen = [object for object in objects if self._selection.accepts(object)]
        lines = b"".join([event_line("ADDED", self.renderer.item(object)) for object in seen])
        if not self.renderer.is_plain:
            return lines
        return WatchChunk.of(lines, lambda: [("ADDED", object) for object in seen])

    def changes(self, changes: Iterable[Change]) -> bytes:
        seen = [one for change in changes if (one := self._seen(change)) is not None]
        form, render = self.renderer.form_name, self.renderer.item
        lines = b"".join([change.line(form, render, type) for type, change in seen])
        if not self.renderer.is_plain:
            return lines
        return WatchChunk.of(
            lines, lambda: [(type, change.shared_object(self._recent)) for type, change in seen]
        )

    def _seen(self, change: Change) -> tuple[str, Change] | None:
        """The change as it is in this watcher's world, if it happens there."""
        if not self._selection:
            return change.type, change
        was = change.previous is not None and self._selection.accepts(change.previous)
        if change.type != "DELETED" and self._selection.accepts(change.object):
            return "MODIFIED" if was else "ADDED", change
        return ("DELETED", change.as_deletion()) if was else None

    def bookmark(self, revision: int, initial_end: bool = False) -> bytes:
        served = self.renderer.served
        metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        kind, version = served.kind.kind, served.api_version
        if self.renderer.form.shape == "PartialObjectMetadata":
            kind, version = "PartialObjectMetadata", f"meta.k8s.io/{self.renderer.form.version}"
        body: dict[str, Any] = {"kind": kind, "apiVersion": version, "metadata": metadata}
        if self.renderer.form.shape == "Table":
            body = self.renderer.table([], str(revision))
            partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            body["rows"] = [{"cells": [], "object": partial}]
        return event_line("BOOKMARK", encode(body))


class _Stream(NamedTuple):
    position: Callable[[], int]
    task: asyncio.Task[Any] | None
    rights: WatchRights


class Laggards:
    """Streams that are being written to. One that falls out of the window is cut off."""

    def __init__(self, bookmark_s: float) -> None:
        self.turns = Turns()
        self.bookmark_s = bookmark_s
        self._streams: dict[Cache, dict[object, _Stream]] = {}
        self._starts: dict[Cache, int] = {}  # of the windows, when they were looked at last
        self._look_again_at = 0.0
        self._policy_revision = -1  # at which all were looked at
        self.cut = 0

    def enter(self, cache: Cache, position: Callable[[], int], rights: WatchRights) -> object:
        token = object()
        self._streams.setdefault(cache, {})[token] = _Stream(position, asyncio.current_task(), rights)
        return token

    def leave(self, cache: Cache, token: object) -> None:
        streams = self._streams.get(cache, {})
        streams.pop(token, None)
        if not streams:
            self._streams.pop(cache, None)
            self._starts.pop(cache, None)

    def of(self, cache: Cache) -> int:
        """How many streams tell of this cache."""
        return len(self._streams.get(cache, ()))

    def __len__(self) -> int:
        return sum(len(streams) for streams in self._streams.values())

    def cut_off(self) -> None:
        """End every stream whose client stopped reading: its task hangs in a write.

        Nobody falls out of a window that did not move, so an idle server looks at nobody.
        """
        for cache, streams in list(self._streams.items()):
            start = cache.history.start
            if self._starts.get(cache) == start:
                continue
            self._starts[cache] = start
            for token, (position, task, _) in list(streams.items()):
                if position() < start and task is not None:
                    self.leave(cache, token)
                    self.cut += 1
                    task.cancel()

    async def show_out(self, now: float, policy_revision: int) -> None:
        """End the streams of those who may no longer watch, though nothing happens on them.

        While roles and bindings stay as they are, nobody is looked at more often than every now and then.
        """
        everything = now >= self._look_again_at
        if everything:
            self._look_again_at = now + _LOOK_AGAIN_S
        elif policy_revision == self._policy_revision:
            return
        self._policy_revision = policy_revision
        for cache, streams in list(self._streams.items()):
            lost = False
            for number, (_, _, rights) in enumerate(list(streams.values())):
                lost = not (rights.look_again() if everything else rights.holds()) or lost
                if number % _BATCH == _BATCH - 1:
                    await asyncio.sleep(0)
            if lost:
                cache.wake()  # they will see for themselves


async def stream(
    cache: Cache,
    store: Store,
    sight: Sight,
    options: WatchOptions,
    rights: WatchRights,
    laggards: Laggards,
) -> AsyncIterator[bytes]:
    """The body of a watch response. It ends early for whoever may no longer watch."""
    deadline = asyncio.get_running_loop().time() + options.timeout_s
    epoch = cache.epoch  # positions of one history mean nothing in the next
    try:
        if options.revision is None:
            position, revision, objects = cache.history.end, cache.revision, sorted(cache.objects.items())
            async for chunk in _initial(sight, [object for _, object in objects], laggards.turns):
                if not rights.holds():
                    return
                yield chunk
            if options.initial_events_end:
                yield sight.bookmark(revision, initial_end=True)
        else:
            position = cache.history.position_to_resume(options.revision)
            # At that revision a transaction may have changed several objects, and the client seen one.
            if options.revision <= cache.history.complete_after:
                seen = Seen(options.revision)
                async for chunk in _catch_up(store, cache, seen, sight, deadline):
                    if not rights.holds():
                        return
                    yield chunk
                # Only once the cache has come as far does it know where we continue.
                loop = asyncio.get_running_loop()
                while loop.time() < deadline and not await cache.reach(seen.revision, timeout_s=1.0):
                    pass
                epoch, position = cache.epoch, cache.history.position_after(seen.revision)
                if seen.revision < cache.history.complete_after and loop.time() < deadline:
                    raise FellBehind
        start = Start(position, epoch)
        watch = Watching(options.bookmarks, deadline, rights)
        async for chunk in _shared(cache, sight, start, watch, laggards):
            yield chunk
    except (FellBehind, Compacted):
        yield event_line("ERROR", encode(errors.Expired(_TOO_OLD).status()))


async def _initial(sight: Sight, objects: Sequence[Object], turns: Turns) -> AsyncIterator[bytes]:
    for cut in pieces(objects, _BATCH):
        await turns.take()
        chunk = sight.initial(objects[cut])
        if chunk:
            yield chunk


class Start(NamedTuple):
    """Where in the shared history a stream begins, and in which one."""

    position: int
    epoch: int


class Watching(NamedTuple):
    """How long a stream goes on, and whether it says so while nothing happens."""

    bookmarks: bool
    deadline: float
    rights: WatchRights


async def _shared(
    cache: Cache, sight: Sight, start: Start, watch: Watching, laggards: Laggards
) -> AsyncIterator[bytes]:
    bookmarks, deadline, rights = watch
    loop = asyncio.get_running_loop()
    position = start.position
    bookmark_at = loop.time() + laggards.bookmark_s
    gathered_at = 0.0
    token = laggards.enter(cache, lambda: position, rights)
    try:
        while (now := loop.time()) < deadline and rights.holds():
            if cache.epoch != start.epoch:
                raise FellBehind
            changes = cache.history.since(position, _BATCH)
            if changes and now < gathered_at and position + len(changes) == cache.history.end:
                await asyncio.sleep(gathered_at - now)
                gathered_at = 0.0  # once is enough: by rounding, the clock may stand just before that moment
            elif changes:
                gathered_at = now + min(_GATHER_S_MAX, _GATHER_S_PER_STREAM * laggards.of(cache))
                position += len(changes)
                await laggards.turns.take_for(change.object for change in changes)
                chunk = sight.changes(changes)
                if chunk:
                    yield chunk
            elif bookmarks and now >= bookmark_at:
                bookmark_at = now + laggards.bookmark_s
                yield sight.bookmark(cache.revision)
            else:
                await cache.moved(min(deadline, bookmark_at if bookmarks else deadline) - now)
    finally:
        laggards.leave(cache, token)


class Seen:
    """How far a stream has come."""

    __slots__ = ("revision",)

    def __init__(self, revision: int) -> None:
        self.revision = revision


async def _catch_up(
    store: Store, cache: Cache, seen: Seen, sight: Sight, deadline: float
) -> AsyncIterator[bytes]:
    """From the store, what happened before the shared history begins; then all share again.

    It begins with what was seen last, in case that was several changes (`History.position_to_resume`).
    """
    asked = seen.revision
    watch: Watch = store.watch(cache.prefix, asked - 1)
    is_sure = False
    loop = asyncio.get_running_loop()
    try:
        while loop.time() < deadline:
            if watch.progress >= cache.history.complete_after:
                seen.revision = watch.progress
                return
            # A task of its own, so that running out of time does not cancel our reader.
            arriving = asyncio.ensure_future(anext(watch, None))
            while not arriving.done() and watch.progress < cache.history.complete_after:
                watch.hurry()
                await asyncio.wait({arriving}, timeout=_CATCH_UP_POLL_S)
            if not arriving.done():
                arriving.cancel()
                continue
            try:
                events = arriving.result()
            except Compacted:
                if is_sure:
                    raise
                is_sure = True
                watch.close()
                watch = store.watch(cache.prefix, asked)
                continue
            if events is None:
                return
            if sum(event.revision == asked for event in events) < 2:
                events = [event for event in events if event.revision > asked]
            if not events:
                continue
            chunk = sight.changes([_change(event, cache.kind) for event in events])
            seen.revision = events[-1].revision
            if chunk:
                yield chunk
    finally:
        watch.close()


def _change(event: Event, kind: Kind) -> Change:
    key, revision = event.key, event.revision
    previous = read_stored(key, event.previous, revision, kind) if event.previous else None
    if event.value is None:
        return Change("DELETED", key, previous or Object(b"{}", revision), previous, revision)
    type = "MODIFIED" if previous else "ADDED"
    return Change(type, key, read_stored(key, event.value, revision, kind), previous, revision)
