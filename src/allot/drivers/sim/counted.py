"""A device plugin for devices that are not there: as many as a fleet's machine has counted.

Containers are told what they got: `DEVICE_<ID>=<resource>/<id>`.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from allot.base import Clock
from allot.driver import Counted, DevicePlugin, Edits, Node, capitals

from .faults import Faults

LOOK_S: Final = 0.5
"""Between two looks at what is lost, or sick."""


def counted(resource: str, count: int, faults: Faults, clock: Clock) -> DevicePlugin:
    kind = resource.rpartition("/")[2]
    one = _Counted(resource, tuple(f"{kind}-{number}" for number in range(count)), faults, clock)
    return DevicePlugin(resource, one.follow, one.allocate)


@dataclass(frozen=True, slots=True)
class _Counted:
    resource: str
    ids: tuple[str, ...]
    faults: Faults
    clock: Clock

    async def follow(self, node: Node) -> AsyncIterator[Sequence[Counted]]:
        """Those that are there just now, and how they are."""
        stretch_s = min((one for one in (self.faults.lose_s, self.faults.flap_s) if one), default=0.0)
        while True:
            now_s = self.clock.monotonic_s()
            lost, sick = self.faults.lost(self.ids, now_s), self.faults.sick(self.ids, now_s)
            yield [Counted(id, id != sick) for id in self.ids if id != lost]
            if not stretch_s:
                return
            await asyncio.sleep(min(LOOK_S, stretch_s / 4))

    def allocate(self, ids: tuple[str, ...]) -> Edits:
        return Edits(env=tuple(f"DEVICE_{capitals(id)}={self.resource}/{id}" for id in ids))
