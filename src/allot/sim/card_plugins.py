"""A device plugin on a made-up machine, with the kit around it: cards whose properties and health change.

A container is told which cards it has (`CARDS`), and that is noted when it starts.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from allot import driver as kit

from .compute_things import RAW, exported

VARIABLE: Final = "CARDS"


class Cards:
    """What there is now, for all lives of the plugin."""

    def __init__(self) -> None:
        self._now = exported()
        self._turn = asyncio.Event()  # set, and replaced, with every change

    def change(self, resources: list[dict[str, Any]]) -> None:
        self._now = resources
        self._turn.set()
        self._turn = asyncio.Event()

    def plugin(self) -> kit.DevicePlugin:
        return kit.DevicePlugin(RAW, self._follow, _allocate)

    async def _follow(self, node: kit.Node) -> AsyncIterator[Sequence[kit.Counted]]:
        while True:
            turn = self._turn
            yield [
                kit.Counted(id, id in one["allocatableDevices"], properties=one["properties"])
                for one in self._now
                for id in one["devices"]
            ]
            await turn.wait()


def _allocate(ids: tuple[str, ...]) -> kit.Edits:
    return kit.Edits(env=(f"{VARIABLE}={','.join(ids)}",))
