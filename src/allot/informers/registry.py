"""The informers of a process: one watch a resource and selection, however many components want it.

    async with Informers(client, clock, ...) as informers:
        pods = informers.use(ResourceId("", "v1", "pods"))
        await informers.synced(pods)

Whoever uses an informer gives it back; the last one out ends the watch. Informers
may come and go while the process runs, as custom resources do: while somebody waits for a
resource that is not served, the definitions of custom resources are followed too, so that
nobody has to keep asking.
"""

import asyncio
import random
from collections import Counter
from types import TracebackType

from allot.base import Metrics, require
from allot.client import Client

from .cache import Change, Deleted
from .informer import Informer, ResourceId
from .reflector import Pace, Reflector, Selection, Sleep

DEFINITIONS = ResourceId("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)


class Informers:
    def __init__(
        self,
        client: Client,
        rng: random.Random,
        *,
        sleep: Sleep = asyncio.sleep,
        pace: Pace | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._client = client
        self._rng = rng
        self._sleep = sleep
        self._pace = pace or Pace()
        self._informers: dict[ResourceId, Informer] = {}
        self._users: dict[ResourceId, int] = {}
        self._reflectors: dict[ResourceId, Reflector] = {}
        self._tasks: dict[ResourceId, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._follows_definitions = False
        if metrics is not None:
            self._show(metrics)

    async def __aenter__(self) -> "Informers":
        self._group = await asyncio.TaskGroup().__aenter__()
        for what in self._informers:
            self._start(what)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        group, self._group = self._group, None
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        if group is not None:
            await group.__aexit__(kind, error, trace)

    def use(self, what: ResourceId) -> Informer:
        """The informer of a resource, begun if nobody uses it yet. Every use ends with `leave`."""
        informer = self._informers.get(what)
        self._users[what] = self._users.get(what, 0) + 1
        if informer is None:
            informer = self._informers[what] = Informer(what)
            if self._group is not None:
                self._start(what)
        return informer

    def leave(self, informer: Informer) -> None:
        what = informer.what
        require(self._informers.get(what) is informer, f"{what}: what was given back is not in use")
        self._users[what] -= 1
        if self._users[what]:
            return
        del self._users[what], self._informers[what]
        self._reflectors.pop(what, None)
        task = self._tasks.pop(what, None)
        if task is not None:
            task.cancel()

    async def synced(self, *informers: Informer) -> None:
        """Until these, or all that are in use, hold their first complete list."""
        for informer in informers or tuple(self._informers.values()):
            await informer.wait_synced()

    async def refresh(self, *informers: Informer) -> None:
        """Read these from the server anew, and return when that is done.

        For whoever must not act on what was true some time ago: a new leader, most of all.
        """
        marks = [(informer, informer.lists + 1) for informer in informers]
        for informer in informers:
            self._restart(informer.what)
        for informer, mark in marks:
            await informer.wait_lists(mark)

    def _restart(self, what: ResourceId) -> None:
        """At once, without waiting: whoever asks may be cancelled, and the informer is for others too."""
        task = self._tasks.pop(what, None)
        if task is not None:
            task.cancel()
            if what in self._informers and self._group is not None:
                self._start(what, after=task)

    def _follow_definitions(self) -> None:
        """Somebody waits for a resource that may be defined one day."""
        if not self._follows_definitions:
            self._follows_definitions = True
            self.use(DEFINITIONS).handle(self._defined)

    def _defined(self, change: Change) -> None:
        for what, informer in self._informers.items():
            if f"{what.plural}.{what.group}" != change.object.name or isinstance(change, Deleted):
                continue
            if informer.synced and not informer.served:
                self._restart(what)

    def _start(self, what: ResourceId, after: asyncio.Task[None] | None = None) -> None:
        require(self._group is not None, "informers run while their registry is entered")
        reflector = self._reflectors.get(what)
        if reflector is None:
            reflector = self._reflectors[what] = self._reflector(what)
        assert self._group is not None
        self._tasks[what] = self._group.create_task(_follow(reflector, after), name=f"informer {what}")

    def _reflector(self, what: ResourceId) -> Reflector:
        informer = self._informers[what]
        resource = self._client.resource(what.group, what.version, what.plural, namespaced=what.namespaced)
        reflector: Reflector
        audience = informer.audience(
            lambda: reflector.report, lambda: reflector.position, self._follow_definitions
        )
        reflector = Reflector(
            resource,
            informer.cache,
            audience,
            Selection(what.field_selector, what.label_selector),
            sleep=self._sleep,
            rng=self._rng,
            pace=self._pace,
        )
        return reflector

    def _show(self, metrics: Metrics) -> None:
        metrics.reading(
            "allot_informers", "Resources that this process watches.", lambda: len(self._informers)
        )
        metrics.reading(
            "allot_informer_objects",
            "Objects in the caches of this process.",
            lambda: sum(len(informer.cache) for informer in self._informers.values()),
        )
        metrics.readings(
            "allot_informer_objects_set_aside",
            "Objects that somebody in this process cannot read, by resource.",
            "resource",
            read=self._set_aside,
        )

    def _set_aside(self) -> dict[tuple[str, ...], float]:
        found: Counter[tuple[str, ...]] = Counter()
        for what, informer in self._informers.items():
            if informer.aside:
                found[what.plural,] += len(informer.aside)
        return {labels: float(count) for labels, count in found.items()}


async def _follow(reflector: Reflector, after: asyncio.Task[None] | None) -> None:
    """One at a time: the one before may still be letting go."""
    if after is not None:
        await asyncio.wait((after,))
    await reflector.run()
