"""Following the kinds that quotas count, and no others.

What is served is asked for when a quota counts a kind for the first time. A kind that is not
served yet has no objects; the definition that brings it brings the question again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from allot import quota
from allot.informers import Change, Informer, ResourceId, discover

from ..controller import World

Hear = Callable[[quota.Source, Change], None]


@dataclass(frozen=True, slots=True)
class _Followed:
    informer: Informer
    stop: Callable[[], None]


class Following:
    """`run` until the term ends, then all are let go."""

    def __init__(self, world: World, known: Iterable[Informer], hear: Hear) -> None:
        self._world = world
        self._hear = hear
        self._kept = {quota.Source(one.what.group, one.what.plural): one for one in known}
        self._followed: dict[quota.Source, _Followed] = {}
        for source, informer in self._kept.items():
            world.on(informer, self._hearing(source))

    def informer(self, source: quota.Source) -> Informer | None:
        """None for a kind that is not served."""
        followed = self._followed.get(source)
        return followed.informer if followed is not None else self._kept.get(source)

    async def follow(self, sources: Iterable[quota.Source]) -> list[quota.Source]:
        """Follow these as well, and wait until all of them have been read. Returns those not served."""
        wanted = list(sources)
        if any(self.informer(source) is None for source in wanted):
            await self._look_for(wanted)
        for source in wanted:
            informer = self.informer(source)
            if informer is not None:
                await informer.wait_synced()
        return [source for source in wanted if self.informer(source) is None]

    def leave_all_but(self, sources: Iterable[quota.Source]) -> None:
        wanted = set(sources)
        for source in tuple(self._followed):
            if source not in wanted:
                self._leave(source)

    def end(self) -> None:
        for source in tuple(self._followed):
            self._leave(source)

    async def _look_for(self, wanted: Iterable[quota.Source]) -> None:
        catalogue = await discover(self._world.client)
        served = {quota.Source(one.what.group, one.what.plural): one for one in catalogue.served}
        for source in wanted:
            found = served.get(source)
            if found is None or not found.what.namespaced or not found.can("list", "watch"):
                continue
            if self.informer(source) is None:
                self._start(source, found.what)

    def _start(self, source: quota.Source, what: ResourceId) -> None:
        informer = self._world.informers.use(what)
        self._followed[source] = _Followed(informer, informer.handle(self._hearing(source)))

    def _leave(self, source: quota.Source) -> None:
        followed = self._followed.pop(source)
        followed.stop()
        self._world.informers.leave(followed.informer)

    def _hearing(self, source: quota.Source) -> Callable[[Change], None]:
        return lambda change: self._hear(source, change)
