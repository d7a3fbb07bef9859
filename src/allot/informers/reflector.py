"""Keeping a copy of one resource: list, then watch, for as long as anybody needs it.

Where it sits
    An `Informer` owns one reflector, which owns the only list and the only watch of
    that resource in this process. It tells a `Cache` what the server says, and hands
    the changes that the cache finds to the informer's handlers. Any served resource
    will do, custom ones too, also one that is not served yet or no longer.

The contract, for whoever reads the cache or handles changes
    REFL1  Eventually. Once the server can be reached and nothing changes, the cache equals
           what the server has. Until then it is a state that each object had at some time,
           and not necessarily the same time for two objects: nothing follows from comparing
           two objects of the cache, and nothing at all from comparing two caches. Who is
           about to do harm asks the server first.
    REFL2  In order. The states of one object arrive in the order in which they were
           written. Some may be skipped: of ten writes the first and the last may be all
           that is told. Nothing may be built on seeing each of them.
    REFL3  Told is held. When a handler hears of a change, the cache already shows it, and
           `Updated.old` is what the same handler was told before.
    REFL4  Every end is told. An object that vanished while nobody was watching is told as
           deleted, with the last state that was known. A new object of the same name is a
           new object: deletion first, then addition. Where objects are selected, one that is
           no longer selected has ended, and one that is selected again is new.
    REFL5  Late is not less. A handler that joins later is first told of everything that the
           cache holds, as added; then it hears what all hear.
    REFL6  `synced` means: the first complete list has been taken over, and every handler
           that was there has been told of it. It stays true while the server is away.
    REFL7  Objects are whole, with every field that this program does not know, and they are
           shared: nobody changes them.
    REFL8  `has_heard(version)` means: the cache shows every write of this resource up to
           that version. A server numbers all its writes in one row, so the version may be
           that of an object of any resource. False says nothing.
    REFL9  An object that a handler or an index cannot read stops neither the others nor the
           news that follow: it is set aside (`aside`), and told again when it changes.

How it goes on
    A watch ends for many reasons, and every one is expected. When the server closes
    it or the connection breaks, the next watch begins where the last one stopped.
    When that place is no longer known (410), everything is listed anew, and REFL4 is
    what the comparison of old and new is for. Where the server can begin a watch
    with all that exists, that is the list; where it cannot, the list comes in pages.
    After a failure it waits, longer each time and never for the same time as its
    neighbours; `sleep` and `rng` are handed in, so that a seed decides.

    A resource that the server does not know (404) holds nothing, once it has said so
    twice: a server that is just starting may not know yet what it will serve. It is
    asked again when a definition of that name appears (`registry`), and now and then.

    Handlers are plain functions that note a key and return. The loop is not held for
    long by a long list: it is taken over in pieces, and others run in between.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import Enum

from allot.api import Object, errors
from allot.base import InvariantBroken
from allot.client import EventType, Resource, WatchEvent, level_of

from .cache import Cache, Change, Key

log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]
PAGE = 500
STEPS_AT_ONCE = 100
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a watch lasts, and how long to wait after a failure."""

    first_s: float = 0.2
    longest_s: float = 30.0
    absent_s: float = 300.0  # between two looks for a resource that is not served
    watch_s: int = 300  # at least, and less than twice that: not all watches end at once


class SyncState(Enum):
    """How the copy stands to the server."""

    LISTING = "listing"
    WATCHING = "watching"
    ABSENT = "absent"  # the server does not know the resource
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Report:
    """For people and metrics: what the reflector is doing, and what went wrong last."""

    state: SyncState = SyncState.LISTING
    problem: str = ""
    served: bool = False  # the server knew the resource when it last said anything about it
    lists: int = 0
    watches: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of the resource, as a request says it; all of them unless it says so."""

    fields: str = ""
    labels: str = ""


@dataclass(frozen=True, slots=True)
class Audience:
    """Who hears what the reflector finds out."""

    changed: Callable[[Change], None]
    listed: Callable[[], None]  # a complete list has been taken over
    absent: Callable[[], None]  # the server does not know the resource; say so when it might


class Reflector:
    def __init__(
        self,
        resource: Resource,
        cache: Cache,
        audience: Audience,
        selection: Selection | None = None,
        *,
        sleep: Sleep,
        rng: random.Random,
        pace: Pace,
    ) -> None:
        self._resource = resource
        self._cache = cache
        self._audience = audience
        self._selection = selection or Selection()
        self._sleep = sleep
        self._rng = rng
        self._pace = pace
        self._position = ""  # where the next watch begins; "" means with a list
        self._streams_lists = True  # until the server says that it does not
        self._pages = True
        self._absences = 0
        self._failures_in_a_row = 0
        self._told = ""  # what was logged of the failure that lasts
        self.report = Report()

    async def run(self) -> None:
        """List, then watch, until cancelled."""
        self._position = ""
        while True:
            try:
                await self._turn()
            except errors.Gone as gone:
                # Pages that were lost in the middle of a list would be lost again: take it whole.
                self._pages = bool(self._position)
                self._position = ""
                await self._failed(gone)
            except errors.NotFound as absent:
                await self._not_served(absent)
            except errors.ApiError as failed:
                await self._failed(failed)
            except InvariantBroken:
                raise
            except Exception as odd:  # not even the name and version of an object can be read
                self._position = ""
                log.exception("%s: what the server sends cannot be read", self._what)
                await self._failed(errors.Internal(f"what the server sends cannot be read: {odd!r}"))

    # -- one turn -------------------------------------------------------------------------------

    async def _turn(self) -> None:
        """List if need be, and watch until the watch ends."""
        if self._position:
            events = self._events(resource_version=self._position)
        elif self._streams_lists:
            self._note(SyncState.LISTING)
            events = self._events(initial_events=True)
        else:
            self._note(SyncState.LISTING)
            await self._take_over(*await self._listed())
            return
        async with aclosing(events):  # type: ignore[type-var]
            if not self._position and not await self._began(events):
                return
            await self._watch(events)

    def _events(
        self, *, resource_version: str = "", initial_events: bool = False
    ) -> AsyncIterator[WatchEvent]:
        return self._resource.watch(
            resource_version=resource_version,
            initial_events=initial_events,
            field_selector=self._selection.fields,
            label_selector=self._selection.labels,
            timeout_s=self._watch_s(),
        )

    async def _began(self, events: AsyncIterator[WatchEvent]) -> bool:
        """Take over what a watch begins with. False if the server cannot begin so."""
        found: dict[Key, Object] = {}
        try:
            async for event in events:
                if event.type is EventType.BOOKMARK and _ends_initial_events(event.object):
                    await self._take_over(found, event.object.resource_version)
                    return True
                _gather(found, event)
        except (errors.Invalid, errors.BadRequest) as refused:
            log.info("this server does not stream lists, reading pages: %s: %s", self._what, refused)
            self._streams_lists = False
            return False
        raise errors.Unavailable("the watch ended before it had told what exists")

    async def _listed(self) -> tuple[dict[Key, Object], str]:
        found: dict[Key, Object] = {}
        version = ""
        pages = self._resource.pages(
            field_selector=self._selection.fields,
            label_selector=self._selection.labels,
            limit=PAGE if self._pages else 0,
        )
        async for page in pages:
            found.update((Key.of(object), object) for object in page.objects)
            version = page.resource_version
        self._pages = True
        return found, version

    async def _take_over(self, found: dict[Key, Object], version: str) -> None:
        for step, changes in enumerate(self._cache.replace(found), 1):
            for change in changes:
                self._audience.changed(change)
            if step % STEPS_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._position = version
        self._absences = self._failures_in_a_row = 0
        self._told = ""
        self.report = replace(self.report, served=True, lists=self.report.lists + 1)
        self._audience.listed()

    async def _watch(self, events: AsyncIterator[WatchEvent]) -> None:
        self._note(SyncState.WATCHING)
        self.report = replace(self.report, watches=self.report.watches + 1)
        heard = False
        async for event in events:
            heard = True
            self._failures_in_a_row = 0
            self._told = ""
            for change in self._applied(event):
                self._audience.changed(change)
        if not heard:
            await self._pause(self._pace.first_s)  # a server that always ends at once is not asked at once

    def _applied(self, event: WatchEvent) -> tuple[Change, ...]:
        version = event.object.resource_version
        if _is_before(version, self._position):
            self._cache.stale += 1  # CACHE3: the stream has gone past this already
            return ()
        self._position = version or self._position
        if event.type is EventType.BOOKMARK:
            return ()
        if event.type is EventType.DELETED:
            return self._cache.remove(event.object)
        return self._cache.put(event.object)

    # -- when it does not go well ---------------------------------------------------------------

    async def _not_served(self, absent: errors.NotFound) -> None:
        self._position = ""
        self._absences += 1
        if self._absences > 1:
            self._note(SyncState.ABSENT, str(absent))
            self.report = replace(self.report, served=False)
            for changes in self._cache.replace({}):
                for change in changes:
                    self._audience.changed(change)
            self._audience.listed()
            self._audience.absent()
        await self._pause(self._pace.absent_s if self._absences > 1 else self._pace.first_s)

    async def _failed(self, failed: errors.ApiError) -> None:
        self._note(SyncState.FAILING, str(failed))
        self.report = replace(self.report, failures=self.report.failures + 1)
        wait_s = min(self._pace.longest_s, self._pace.first_s * 2.0 ** min(self._failures_in_a_row, 20))
        self._failures_in_a_row += 1
        is_news = str(failed) != self._told  # said once, and not as often as it is tried
        level = level_of(failed, logging.WARNING) if is_news else logging.DEBUG
        self._told = str(failed)
        log.log(level, "cannot follow %s, trying again within %.1f s: %s", self._what, wait_s, failed)
        await self._pause(wait_s)

    async def _pause(self, longest_s: float) -> None:
        # Somewhere in the second half, so that watchers do not come back all at once.
        await self._sleep(longest_s * (0.5 + 0.5 * self._rng.random()))

    def _note(self, state: SyncState, problem: str = "") -> None:
        self.report = replace(self.report, state=state, problem=problem)

    def _watch_s(self) -> int:
        return self._pace.watch_s + self._rng.randrange(self._pace.watch_s)

    @property
    def position(self) -> str:
        """The version up to which everything has been told; "" while that is not known."""
        return self._position

    @property
    def _what(self) -> str:
        return f"{self._resource.api_version} {self._resource.plural}"


def _gather(found: dict[Key, Object], event: WatchEvent) -> None:
    """Changes may come between the initial events: what counts is the last word on each object."""
    key = Key.of(event.object)
    if event.type is EventType.DELETED:
        found.pop(key, None)
    elif event.type is not EventType.BOOKMARK:
        found[key] = event.object


def _ends_initial_events(bookmark: Object) -> bool:
    return (bookmark.metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"


def _is_before(version: str, position: str) -> bool:
    """Both must be numbers for one to be before the other."""
    if len(version) == len(position) and version >= position:
        return False  # nearly always: no need to read them
    return version.isdigit() and position.isdigit() and int(version) < int(position)
