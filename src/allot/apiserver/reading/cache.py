"""The current objects of one resource and its recent history, fed by one store watch.

What it promises
    WCACHE1  Changes are appended in revision order, each once. `revision` says up to which
             revision nothing is missing.
    WCACHE2  When the feed breaks and cannot be resumed, the cache loads anew and every
             watcher is told to start over; nobody silently misses a change.
    WCACHE3  An object that cannot be read, or that a listener fails on, ends neither the feed
             nor the start. It is logged once, and is in `troubles` until it is gone or reads
             well.

The cache answers watches, and reads that allow an older state. Reads that must
be current go to the store.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from allot.api import Kind, Object, errors
from allot.store import Compacted, Event, Store, Unavailable, Watch

from ..storing.repository import prefix_of
from ..storing.stored import read_stored
from .history import Budget, Change, History

log = logging.getLogger(__name__)

_RETRY_S = 0.5
_POLL_S = 0.01
_LOADED_AT_ONCE = 1000
"""Objects of an earlier version are looked at one by one, so that everybody has a turn in between."""
_LOOK_EVERY_S = 0.25
_PATIENCE_S = 2.5  # with a store that is in trouble


class Cache:
    def __init__(self, store: Store, kind: Kind, budget: Budget | None = None) -> None:
        self.kind = kind
        self.prefix = prefix_of(kind)
        self.objects: dict[str, Object] = {}
        self._budget = budget or Budget()
        self.history = History(complete_after=0, budget=self._budget)
        self.epoch = 0  # grows when the cache had to load anew (WCACHE2)
        self.listeners: list[Callable[[Change], None]] = []
        self.troubles: dict[str, str] = {}  # key -> why (WCACHE3)
        self._loaded_revision = 0
        self._store = store
        self._watch: Watch | None = None
        self._waiters: dict[asyncio.Future[None], None] = {}
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Event = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    async def ready(self) -> None:
        """Load if nobody did, and wait until loaded. Raises Unavailable where the store is in trouble."""
        if self._task is None:
            self._task = asyncio.create_task(self._feed(), name=f"cache {self.prefix}")
        waited_s = 0.0
        while not self._ready.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):  # wait_for may swallow a cancellation
                    await self._ready.wait()
            waited_s += _LOOK_EVERY_S
            if self._task.done():
                self._task.result()  # raises what ended it
            trouble = self._store.trouble()
            if trouble and waited_s >= _PATIENCE_S and not self._ready.is_set():
                raise Unavailable(f"{self.prefix} cannot be loaded: {trouble}", soon=False)

    @property
    def revision(self) -> int:
        """Nothing up to here is missing (WCACHE1)."""
        return max(self._loaded_revision, self._watch.progress if self._watch else 0)

    async def reach(self, revision: int, timeout_s: float) -> bool:
        """Wait until nothing up to `revision` is missing. False if that takes too long."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.revision < revision:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            if self._watch is not None:
                self._watch.hurry()
            await self.moved(min(left, _POLL_S))
        return True

    async def moved(self, timeout_s: float) -> None:
        """Wait for the next change, at most `timeout_s`."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters[waiter] = None
        alarm = loop.call_later(timeout_s, _end, waiter)
        try:
            await waiter
        finally:
            alarm.cancel()
            self._waiters.pop(waiter, None)

    def reload(self, kind: Kind) -> None:
        """The kind has another shape now: what is kept is read anew, and watchers start over (WCACHE2)."""
        self.kind = kind
        if self._watch is not None:
            self._watch.close()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _feed(self) -> None:
        while True:
            try:
                await self._load()
                await self._follow()
            except Compacted:
                log.warning("history was compacted under the cache, loading anew: %s", self.prefix)
            except Unavailable as away:
                log.debug("store is away, trying again: %s: %s", self.prefix, away)  # the store says it once
                await asyncio.sleep(_RETRY_S)
            except Exception:
                log.exception("the feed of a cache broke, loading anew: %s", self.prefix)
                await asyncio.sleep(_RETRY_S)

    async def _load(self) -> None:
        page = await self._store.range(self.prefix)
        before = self.objects
        loaded: dict[str, Object] = {}
        for at, entry in enumerate(page.entries):
            if at % _LOADED_AT_ONCE == _LOADED_AT_ONCE - 1:
                await asyncio.sleep(0)
            found = self._read(entry.key, entry.value, entry.revision)
            if found is not None:
                loaded[entry.key] = found
        self.objects = loaded
        self._loaded_revision = page.revision
        self.history.let_go()
        self.history = History(complete_after=page.revision, budget=self._budget)
        if self._ready.is_set():
            self.epoch += 1
            self._tell_listeners_what_a_reload_changed(before, page.revision)
        else:
            for key, one in self.objects.items():
                self._tell(Change("ADDED", key, one, None, one.revision))
        self._watch = self._store.watch(self.prefix, page.revision)
        self._ready.set()
        self.wake()

    async def _follow(self) -> None:
        watch = self._watch
        if watch is None:
            return
        try:
            async for events in watch:
                changes = [change for event in events if (change := self._apply(event)) is not None]
                self.history.append(changes)
                self.wake()
                for change in changes:
                    self._tell(change)
        finally:
            watch.close()

    def _apply(self, event: Event) -> Change | None:
        """What the event means to watchers. An object that cannot be read is not there for them."""
        key, revision = event.key, event.revision
        previous = self.objects.get(key)
        current = None if event.value is None else self._read(key, event.value, revision)
        if current is None:
            if event.value is None:
                self.troubles.pop(key, None)
            if previous is None:
                return None
            del self.objects[key]
            return Change("DELETED", key, Object(previous.stored, revision), previous, revision)
        self.objects[key] = current
        return Change("MODIFIED" if previous else "ADDED", key, current, previous, revision)

    def _read(self, key: str, value: bytes, revision: int) -> Object | None:
        try:
            return read_stored(key, value, revision, self.kind)
        except errors.Internal as unreadable:
            self._note(key, unreadable)
            return None

    def _note(self, key: str, why: Exception) -> None:
        """WCACHE3."""
        if key not in self.troubles:
            bug = None if isinstance(why, errors.Internal) else why  # of ours, and not of the disk
            log.error("a stored object is passed over: %s: %s", key, why, exc_info=bug)
        self.troubles[key] = f"{type(why).__name__}: {why}"

    def wake(self) -> None:
        """Whoever waits for a change looks again."""
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            _end(waiter)

    def _tell(self, change: Change) -> None:
        is_well = True
        for listener in self.listeners:
            try:
                listener(change)
            except Exception as failed:
                self._note(change.key, failed)
                is_well = False
        if self.troubles and (is_well or change.type == "DELETED"):
            self.troubles.pop(change.key, None)

    def _tell_listeners_what_a_reload_changed(self, before: dict[str, Object], revision: int) -> None:
        for key, old in before.items():
            if key not in self.objects:
                self._tell(Change("DELETED", key, Object(old.stored, revision), old, revision))
        for key, new in self.objects.items():
            old_or_none = before.get(key)
            if old_or_none is None or old_or_none.revision != new.revision:
                self._tell(
                    Change("MODIFIED" if old_or_none else "ADDED", key, new, old_or_none, new.revision)
                )


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Caches:
    """One cache a resource, made when somebody first asks."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._budget = Budget()
        self._caches: dict[tuple[str, str], Cache] = {}

    async def of(self, kind: Kind) -> Cache:
        cache = self.made(kind)
        if not cache.is_ready:
            await cache.ready()
        return cache

    def made(self, kind: Kind) -> Cache:
        """The cache, perhaps not loaded yet: for those who only want to listen."""
        key = kind.storage
        cache = self._caches.get(key)
        if cache is None:
            cache = self._caches[key] = Cache(self.store, kind, self._budget)
        return cache

    def reload(self, kind: Kind) -> None:
        """See `Cache.reload`. Without a cache there is nothing to do."""
        cache = self._caches.get(kind.storage)
        if cache is not None:
            cache.reload(kind)

    def troubles(self) -> dict[str, str]:
        """What of all that is cached is passed over, by key, and why (WCACHE3)."""
        return {key: why for cache in self._caches.values() for key, why in cache.troubles.items()}

    async def close(self) -> None:
        for cache in self._caches.values():
            await cache.close()
