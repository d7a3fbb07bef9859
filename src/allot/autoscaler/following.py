"""The cluster as it is told, for one decision after the other: a mirror of its own, and boards that are kept.

What informers tell lies in a box until a decision begins, so that nothing changes while it is made. Boards
follow what moved; so asking whether a pod fits on any node that is there costs what changed meanwhile.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from allot.api import Gates, Object
from allot.base import Clock
from allot.client import Client
from allot.informers import Change, Deleted, Informers, Key, ResourceId, SetAside, Telemetry
from allot.planning import is_waiting, whole
from allot.scheduler import (
    COMPUTE_LISTS,
    NODES,
    PODS,
    RESOURCE_CLASSES,
    SLICES,
    Cycle,
    KindTold,
    Mirror,
    News,
    ParameterWatches,
    Plugin,
    PodInfo,
    PodTold,
    Stands,
    kinds_of,
    readable,
    snapshot_for,
)

from .deciding import View

log = logging.getLogger(__name__)


class Following:
    def __init__(
        self,
        client: Client,
        informers: Informers,
        plugins: Sequence[Plugin],
        gates: Gates,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._client, self._informers = client, informers
        self.snapshot = snapshot_for(gates)
        self._mirror = Mirror(self.snapshot, self, waiting=self._get)
        self._cycle = Cycle(plugins)
        self._box: deque[News | KindTold] = deque()
        self._parameters = ParameterWatches(
            client,
            informers,
            clock,
            telemetry,
            self._put,
            lambda what, change: self._put(News(what, change, of_parameters=True)),
        )
        self.stirred = asyncio.Event()
        self._waiting: dict[str, PodInfo] = {}
        self._objects: dict[ResourceId, dict[str, Object]] = {
            NODES: {},
            SLICES: {},
            COMPUTE_LISTS: {},
        }
        self._aside = SetAside("the autoscaler")
        self._stops: list[Callable[[], None]] = []

    async def run(self) -> None:
        """For ever: objects with parameters of claims are followed while classes name their kinds."""
        await self._parameters.run()

    async def begin(self) -> None:
        """Everything that was there is known when this returns."""
        used = [self._informers.use(what) for what in await readable(self._client)]
        for one in used:
            self._stops.append(one.handle(self._listener(one.what)))
            self._stops.append(partial(self._informers.leave, one))
        await self._informers.refresh(*used)

    def end(self) -> None:
        for stop in self._stops:
            stop()
        self._stops.clear()

    @property
    def nodes(self) -> Mapping[str, Object]:
        """As they were told, without what anybody else says of them."""
        return self._objects[NODES]

    def view(self, now: datetime) -> View:
        """As of now. Leave it alone once something more has been heard."""
        while self._box:
            self._hear(self._box.popleft())
        return View(
            self.snapshot,
            whole(self._objects[NODES], self._objects[COMPUTE_LISTS]),
            [*self._objects[SLICES].values()],
            [pod for pod in self._waiting.values() if not pod.status.nominated_node_name],
            lambda pod: self._cycle.fitting(pod, now, self.snapshot),
        )

    def _listener(self, what: ResourceId) -> Callable[[Change], None]:
        return lambda change: self._put(News(what, change))

    def _put(self, news: News | KindTold) -> None:
        self._box.append(news)
        self.stirred.set()

    def _hear(self, news: News | KindTold) -> None:
        if isinstance(news, KindTold):
            self._stands(news)
            return
        object, is_gone = news.change.object, isinstance(news.change, Deleted)
        if news.what in self._objects:
            if is_gone:
                self._objects[news.what].pop(object.name, None)
            else:
                self._objects[news.what][object.name] = object
        for one in self._mirror.hear(news):
            if isinstance(one, PodTold):
                if one.stands is Stands.WAITING and is_waiting(one.pod):
                    self._waiting[one.pod.uid] = one.pod
                else:
                    self._waiting.pop(one.pod.uid, None)
        if news.what == PODS and is_gone:
            self._waiting.pop(object.uid, None)

        if news.what == RESOURCE_CLASSES:
            classes = self.snapshot.resource_classes
            self._parameters.want({kind for name in classes for kind in kinds_of(classes[name])})

    def _stands(self, told: KindTold) -> None:
        if told.standing is None:
            self.snapshot.parameters.forget(told.kind)
        else:
            self.snapshot.parameters.stand(told.kind, told.standing)

    def _get(self, uid: str) -> PodInfo | None:
        return self._waiting.get(uid)

    def misread(self, what: ResourceId, object: Object, why: Exception) -> None:
        self._aside.add(what.plural, object, why)

    def well(self, what: ResourceId, object: Object) -> None:
        if self._aside:
            self._aside.well(what.plural, Key.of(object))
