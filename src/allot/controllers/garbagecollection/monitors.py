"""Following every resource that has objects to collect, custom ones included, as they come and go.

What is served changes only with the definitions of custom resources, so those are
followed, and the server is asked what it serves when one of them changes: an idle
cluster asks for nothing.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from allot.api import Object
from allot.informers import (
    Again,
    Catalogue,
    Change,
    Deleted,
    Informer,
    Reconciler,
    ResourceId,
    Served,
    discover,
)

from ..controller import World
from ..definitions import definition_of
from .graph import Graph, Member

log = logging.getLogger(__name__)

DEFINITIONS = ResourceId("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
IGNORED = (("", "events"), ("events.k8s.io", "events"))
"""They are many, they own nothing, and they go by themselves."""

_EVERYTHING = "what is served"
_NOT_YET_S = 1.0


@dataclass(frozen=True, slots=True)
class _Monitor:
    informer: Informer
    stop: Callable[[], None]


class Monitors:
    """One informer a resource. `run` until the term ends, then all are let go."""

    def __init__(self, world: World, graph: Graph, look_at: Callable[[Iterable[str]], None]) -> None:
        self.catalogue: Catalogue | None = None
        self._world = world
        self._graph = graph
        self._look_at = look_at
        self._monitors: dict[ResourceId, _Monitor] = {}
        self._definitions = world.informer(DEFINITIONS)
        self._asking = Reconciler(
            "garbage_collector_discovery", self._ask, world.clock, world.telemetry, workers=1
        )
        world.on(self._definitions, lambda change: self.ask())

    def ask(self) -> None:
        """Ask the server anew what it serves."""
        self._asking.add(_EVERYTHING)

    @property
    def synced(self) -> bool:
        """Every resource has been read. Until then, that nobody names an owner means nothing."""
        monitors = self._monitors.values()
        return self.catalogue is not None and all(one.informer.synced for one in monitors)

    async def run(self) -> None:
        self.ask()
        try:
            await self._asking.run()
        finally:
            for what in tuple(self._monitors):
                self._stop(what)

    async def _ask(self, key: str) -> Again | None:
        catalogue = await discover(self._world.client)
        wanted = {one.what: one for one in catalogue.served if _is_collected(one)}
        for what in tuple(self._monitors):
            if what not in wanted and f"{what.group}/{what.version}" not in catalogue.unavailable:
                self._stop(what)
                self._look_at([due for uid in self._graph.of(what) for due in self._graph.forget(uid)])
        for served in wanted.values():
            if served.what not in self._monitors:
                self._start(served)
        self.catalogue = catalogue
        self._look_at(self._graph.unresolved())
        lacking = [one.name for one in self._definitions.cache if not _is_served(one, catalogue)]
        return Again(_NOT_YET_S) if lacking else None

    def _start(self, served: Served) -> None:
        log.debug("garbage collection follows %s", served.what)

        def hear(change: Change) -> None:
            if isinstance(change, Deleted):
                self._look_at(self._graph.forget(change.object.uid))
            else:
                self._look_at(self._graph.observe(Member.of(change.object, served.what, served.kind)))

        informer = self._world.informers.use(served.what)
        self._monitors[served.what] = _Monitor(informer, informer.handle(hear))

    def _stop(self, what: ResourceId) -> None:
        log.debug("garbage collection leaves %s", what)
        monitor = self._monitors.pop(what)
        monitor.stop()
        self._world.informers.leave(monitor.informer)


def _is_collected(served: Served) -> bool:
    ignored = (served.what.group, served.what.plural) in IGNORED
    return served.can("list", "watch", "delete") and not ignored


def _is_served(definition: Object, catalogue: Catalogue) -> bool:
    """The server may have said that a definition is established a moment before it serves it."""
    view = definition_of(definition)
    known = catalogue.of_kind(f"{view.spec.group}/any", view.spec.names.kind) is not None
    return known or not view.is_to_be_served
