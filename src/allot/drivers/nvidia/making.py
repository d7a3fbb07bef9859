"""The driver of a machine's GPUs, put together: what is published, how it fares, what containers get."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NamedTuple

from allot.driver import (
    Allocated,
    Claim,
    DeviceHealth,
    Driver,
    Edits,
    Entry,
    Given,
    Held,
    Node,
    NotUsable,
    Pool,
    variable,
)

from . import containers, sharing, troubles
from .backend import Backend, Event, Lost, Opened
from .inventory import Gpu, Inventory
from .published import DRIVER, Partition, partitions, pool

LOOK_S: Final = 1.0
"""Between two looks at what has befallen GPUs."""
REPORT_S: Final = 10.0
"""Between two reports of health, which hold for thirty seconds."""


def driver(backend: Backend, node: str, rehearsed: Callable[[], Sequence[Event]] | None = None) -> Driver:
    """Of the GPUs of a node; `rehearsed` tells further troubles. Raises OSError."""
    one = _Nvidia(backend, node, rehearsed or (lambda: ()))
    return Driver(
        DRIVER, one.follow, one.prepare, one.unprepare, configs=(sharing.GpuConfig,), health=one.reports
    )


class _Known(NamedTuple):
    """What a device's name stands for."""

    gpu: Gpu
    partition: Partition | None = None


class _Nvidia:
    def __init__(self, backend: Backend, node: str, rehearsed: Callable[[], Sequence[Event]]) -> None:
        self._backend, self._node, self._rehearsed = backend, node, rehearsed
        self._inventory: Inventory = backend.inventory()
        self._devices = dict(_known(self._inventory))
        self._troubles: dict[str, Event] = {}
        self._looking = asyncio.Lock()

    # -- how they fare --------------------------------------------------------------------------

    async def follow(self, node: Node) -> AsyncIterator[Sequence[Pool]]:
        told: Pool | None = None
        while True:
            await self._look()
            now = pool(self._inventory, self._node, troubles.taints(self._troubles))
            if now != told:
                yield (now,)
                told = now
            await asyncio.sleep(LOOK_S)

    async def reports(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        told: dict[str, Event] | None = None
        said_s, now_s = 0.0, asyncio.get_running_loop().time
        while True:
            await self._look()
            if self._troubles != told or now_s() - said_s >= REPORT_S:
                told, said_s = self._troubles, now_s()
                yield [self._health(name, known.gpu) for name, known in self._devices.items()]
            await asyncio.sleep(LOOK_S)

    def _health(self, device: str, gpu: Gpu) -> DeviceHealth:
        event = self._troubles.get(gpu.uuid)
        if event is None:
            return DeviceHealth(self._node, device, True)
        return DeviceHealth(self._node, device, False, troubles.message(event))

    async def _look(self) -> None:
        """One at a time: what is heard is heard once."""
        async with self._looking:
            heard = await asyncio.to_thread(lambda: (*self._backend.happened(), *self._rehearsed()))
            self._troubles = troubles.after(self._troubles, heard)

    # -- what containers get --------------------------------------------------------------------

    def prepare(self, claim: Claim) -> Given:
        return {one: self._given(claim, one) for one in claim.devices}

    def _given(self, claim: Claim, one: Allocated) -> Edits:
        known = self._devices.get(one.device)
        if known is None:
            raise NotUsable(
                f"claim {claim} has {one.device}, and this machine has {', '.join(self._devices)}"
            )
        if isinstance(self._troubles.get(known.gpu.uuid), Lost):
            raise NotUsable(f"{known.gpu.name} of claim {claim} is lost: it does not answer")
        asked = sharing.interval(one.configs, one.device, known.partition is None)
        variables = [variable(claim, one)]
        if asked is not None:
            self._backend.slice_time(known.gpu, sharing.INTERVALS.index(asked))
            variables.append(f"{sharing.VARIABLE}={asked}")
        opened = self._backend.cut(known.partition) if known.partition is not None else Opened()
        return containers.edits(self._inventory, known.gpu, opened, variables)

    def unprepare(self, entry: Entry) -> None:
        for held in entry.devices:
            known = self._devices.get(held.device)
            if known is None or isinstance(self._troubles.get(known.gpu.uuid), Lost):
                continue  # what was done to it went with it
            if known.partition is not None:
                self._backend.merge(known.partition)
            elif not entry.boot or _has_sliced_time(held):  # what was begun may have done anything
                self._backend.slice_time(known.gpu, 0)


def _known(inventory: Inventory) -> "list[tuple[str, _Known]]":
    whole = [(gpu.name, _Known(gpu)) for gpu in inventory.gpus if not gpu.mig]
    parts = [(one.name, _Known(one.gpu, one)) for gpu in inventory.gpus if gpu.mig for one in partitions(gpu)]
    return whole + parts


def _has_sliced_time(held: Held) -> bool:
    return any(one.startswith(f"{sharing.VARIABLE}=") for one in held.edits.env)
