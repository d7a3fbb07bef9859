"""Follows what drivers say about the health of their devices: a stream for each driver that has one."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable

from allot.base import Clock
from allot.wire import CallFailed, Code, health

from .drivers import Instance
from .health import Healths, Which
from .registry_loop import Registry

log = logging.getLogger(__name__)

AGAIN_S = 5.0
LOOK_S = 1.0


class HealthLoop:
    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        changed: Callable[[frozenset[Which]], None],
        look_s: float = LOOK_S,
    ) -> None:
        """`changed` is called with the devices whose health is another one now."""
        self._registry = registry
        self._clock = clock
        self._changed = changed
        self._look_s = look_s
        self._following: dict[str, tuple[Instance, asyncio.Task[None]]] = {}
        self.healths = Healths()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._look(group)
                self._tell(self.healths.expired(self._clock.monotonic_s()))
                await asyncio.sleep(self._look_s)

    def _look(self, group: asyncio.TaskGroup) -> None:
        """Each driver is followed through the instance that is called."""
        wanted = {}
        for driver in self._registry.drivers.names:
            instance = self._registry.health(driver)
            if instance is not None and instance.is_connected:
                wanted[driver] = instance
        for driver, (instance, task) in tuple(self._following.items()):
            if wanted.get(driver) != instance:
                task.cancel()
                del self._following[driver]
                if driver not in wanted:
                    self._tell(self.healths.lost(driver))
        for driver, instance in wanted.items():
            if driver not in self._following:
                task = group.create_task(self._follow(instance), name=f"health of {driver}")
                self._following[driver] = instance, task

    async def _follow(self, instance: Instance) -> None:
        """Until cancelled, or until the driver says that it has no such stream."""
        driver, version = instance.driver, instance.followed
        assert version is not None
        while True:
            try:
                async for report in self._reports(driver, version):
                    now_s = self._clock.monotonic_s()
                    self._tell(self.healths.heard(driver, report.devices, now_s))
            except CallFailed as failed:
                log.info("the health of devices of %s is not told: %s", driver, failed)
                if failed.code is Code.UNIMPLEMENTED:
                    return
            finally:
                self._tell(self.healths.lost(driver))
            await asyncio.sleep(AGAIN_S)

    def _reports(
        self, driver: str, version: health.Version
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        reached = self._registry.reach(driver)
        if reached is None:
            raise CallFailed(Code.UNAVAILABLE, "it is not registered")
        return reached[0].stream(version.watch, health.NodeWatchResourcesRequest())

    def _tell(self, devices: Iterable[Which]) -> None:
        named = frozenset(devices)
        if named:
            self._changed(named)
