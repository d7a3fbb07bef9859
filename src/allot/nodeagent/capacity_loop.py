"""Publishes what drivers have: a stream for each driver that tells it, and NodeResourceCapacity objects.

    driver's stream ──► what it last said ──► writes, one driver at a time ──► the API
    the API         ──► whoever changed or deleted an object finds it restored

Every driver of the node is asked, whatever claims it takes; of two instances in a rolling update the newest
(DRIVER5). One that has no such stream is not asked again until it registers anew. While a stream is broken
what was published stays; when a driver has been away for long it goes, and so does what an earlier agent has
left of drivers that are not there. With the feature's gate off no driver is heard: nobody stands for what was
published before, and it goes in the same way.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from allot.api import Object, errors, numeric
from allot.base import Clock
from allot.client import Client
from allot.informers import (
    Again,
    Change,
    Index,
    Informer,
    Informers,
    Limits,
    Reconciler,
    ResourceId,
    Telemetry,
)
from allot.node import owner_reference
from allot.wire import CallFailed, Code
from allot.wire import capacity as wire

from .capacity import BadCapacity, Source, Writes, changes, told
from .drivers import Instance
from .registry_loop import Registry
from .wiping import PATIENCE_S, Wiping

log = logging.getLogger(__name__)

Fields = dict[str, Any]
Complain = Callable[[Object, str, str], None]

REASON: Final = "CapacityNotPublished"
LOOK_S: Final = 1.0
HEARD_WITHIN_S: Final = 0.05
LIMITS: Final = Limits(first_s=0.2, longest_s=30.0)
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 60.0


class CapacityLoop:
    def __init__(
        self,
        node: str,
        client: Client,
        registry: Registry,
        clock: Clock,
        telemetry: Telemetry,
        complain: Complain,
        look_s: float = LOOK_S,
        patience_s: float = PATIENCE_S,
        *,
        publishes: bool = True,
    ) -> None:
        """`complain` is told of the Node what cannot be published; what a driver had goes when it has been
        away for `patience_s`. Unless it `publishes`, all of them count as away."""
        self._node, self._complain = node, complain
        self._objects = client.of(numeric.NODE_RESOURCE_CAPACITY)
        self._registry, self._clock, self._look_s = registry, clock, look_s
        self._publishes = publishes
        self._loop = Reconciler("capacity", self._publish, clock, telemetry, limits=LIMITS)
        self._following: dict[str, tuple[Instance, asyncio.Task[None]]] = {}
        self._mute: dict[str, Instance] = {}  # drivers without a stream
        self._said: dict[str, tuple[Fields, ...] | None] = {}  # None: the driver is gone
        self._written: dict[str, str] = {}  # by driver: the last version that was written
        self._wiping = Wiping(patience_s)
        self._look_now = asyncio.Event()
        self._shown: Informer | None = None
        self._node_object: Callable[[], Object | None] = lambda: None

    def look(self) -> None:
        """A driver has come, gone, or been (dis)connected."""
        self._look_now.set()

    async def run(
        self, informers: Informers, node: Callable[[], Object | None], *, is_sharing: bool = False
    ) -> None:
        """Until cancelled. Agents that share informers listen to the capacity of all nodes, together."""
        self._node_object = node
        shown = self._shown = informers.use(_capacities("" if is_sharing else self._node))
        stop = shown.handle(self._heard)
        try:
            await informers.synced(shown)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._loop.run())
                while True:
                    self._look(group)
                    self._wipe(shown)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._look_s):
                            await self._look_now.wait()
                    self._look_now.clear()
        finally:
            stop()
            informers.leave(shown)

    # -- drivers --------------------------------------------------------------------------------

    def _look(self, group: asyncio.TaskGroup) -> None:
        """Each driver is followed through the instance that is its source."""
        sources = self._sources()
        for driver, (instance, task) in tuple(self._following.items()):
            if _which(sources.get(driver)) != _which(instance):
                task.cancel()
                del self._following[driver]
        for driver, instance in sources.items():
            if driver not in self._following and not self._is_mute(instance):
                work = self._follow(instance)
                self._following[driver] = instance, group.create_task(work, name=f"capacity of {driver}")

    def _sources(self) -> Mapping[str, Instance]:
        return self._registry.sources() if self._publishes else {}

    def _is_mute(self, instance: Instance) -> bool:
        return _which(self._mute.get(instance.driver)) == _which(instance)

    async def _follow(self, instance: Instance) -> None:
        """Until cancelled, or until the driver says that it has no such stream."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                channel = self._registry.channel(instance)
                if channel is None:
                    raise CallFailed(Code.UNAVAILABLE, "it is not registered")
                async for message in channel.stream(wire.WATCH, wire.NodeWatchCapacityRequest()):
                    wait_s = _FIRST_WAIT_S
                    self._hear(instance.driver, message)
            except CallFailed as failed:
                if failed.code is Code.UNIMPLEMENTED:
                    self._mute[instance.driver] = instance
                    return
                log.info("capacity of %s is not told, again in %.1f s: %s", instance.driver, wait_s, failed)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _hear(self, driver: str, message: wire.NodeWatchCapacityResponse) -> None:
        try:
            self._said[driver] = told(message)
        except BadCapacity as wrong:
            self._tell(driver, str(wrong))
            return
        self._loop.add(driver)

    def _tell(self, driver: str, wrong: str) -> None:
        log.warning("capacity of driver %s is not published: %s", driver, wrong)
        node = self._node_object()
        if node is not None:
            self._complain(node, REASON, f"capacity of driver {driver}: {wrong}")

    def _wipe(self, shown: Informer) -> None:
        """What is shown of drivers that have been away for long, whoever published it."""
        now_s, sources = self._clock.monotonic_s(), self._sources()
        there = {driver for driver, instance in sources.items() if not self._is_mute(instance)}
        for driver in there.union(_driver(one) for one in _by_node(shown)[self._node]):
            self._wiping.note(driver, driver in there, now_s)
        for driver in self._wiping.due(now_s):
            why = "is gone" if self._publishes else "is not asked, since a gate is off"
            log.warning("driver %s %s: its capacity is deleted", driver, why)
            self._said[driver] = None
            self._wiping.done(driver)
            self._loop.add(driver)

    # -- the API --------------------------------------------------------------------------------

    def _heard(self, change: Change) -> None:
        if self._node in _nodes(change.object):
            self._loop.add(_driver(change.object))

    async def _publish(self, driver: str) -> Again | None:
        shown, node = self._shown, self._node_object()
        if driver not in self._said or shown is None:
            return None
        if node is None:
            return Again(LOOK_S)
        if not shown.served:
            return Again(LIMITS.longest_s)
        if not shown.has_heard(self._written.get(driver, "0")):
            return Again(HEARD_WITHIN_S)
        own = [one for one in _by_node(shown)[self._node] if _driver(one) == driver]
        source = Source(driver, self._node, owner_reference(node))
        writes = changes(source, self._said[driver], own)
        try:
            await self._write(driver, writes)
        except (errors.Invalid, errors.Forbidden) as refused:
            self._tell(driver, str(refused))
            raise
        return Again(HEARD_WITHIN_S) if any(writes) else None

    async def _write(self, driver: str, writes: Writes) -> None:
        for changed in writes.replace:
            self._written[driver] = (await self._objects.update(changed)).resource_version
        for new in writes.create:
            self._written[driver] = (await self._objects.create(new)).resource_version
        for gone in writes.delete:
            with suppress(errors.NotFound):
                await self._objects.delete(gone.name, uid=gone.uid)


def _capacities(node: str) -> ResourceId:
    """Of one node, or of all."""
    kind = numeric.NODE_RESOURCE_CAPACITY
    selector = f"nodeName={node}" if node else ""
    return ResourceId(kind.group, kind.hub, kind.plural, namespaced=False, field_selector=selector)


def _by_node(shown: Informer) -> Index:
    return shown.cache.index("capacity of a node", _nodes)


def _nodes(object: Object) -> tuple[str, ...]:
    return (str(object.fields.get("nodeName") or ""),)


def _driver(object: Object) -> str:
    return str(object.fields.get("driverName") or "")


def _which(instance: Instance | None) -> tuple[str, int] | None:
    """A registration: one that comes again is another one."""
    return (instance.socket, instance.turn) if instance is not None else None
