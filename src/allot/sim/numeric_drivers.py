"""A driver of numeric parameters on a made-up machine, with the kit around it: counters that come and go.

What the author would do to hardware is noted, slow at times and failing at times, as that of other drivers on
the machine. A container is told which resource it has: its driver, the handle and the claim.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

from allot import driver as kit

from .classic_plugins import OnMachine

DRIVER: Final = "count.example.com"
COUNTS: Final = {"c0": 4, "c1": 2}
"""What a machine has at first."""


class Counters:
    """What there is now, for all lives of the driver."""

    def __init__(self, now: Mapping[str, int] = COUNTS) -> None:
        self.now = dict(now)
        self._turn = asyncio.Event()  # set, and replaced, with every change

    def change(self, counts: Mapping[str, int]) -> None:
        self.now = dict(counts)
        self._turn.set()
        self._turn = asyncio.Event()

    async def follow(self) -> AsyncIterator[dict[str, int]]:
        while True:
            turn = self._turn
            yield self.now
            await turn.wait()


class Counting:
    """The author's part."""

    def __init__(self, machine: OnMachine, counters: Counters) -> None:
        self._machine, self._counters = machine, counters

    def driver(self) -> kit.NumericDriver:
        return kit.NumericDriver(DRIVER, self._capacity, self._prepare, self._unprepare)

    async def _capacity(self, node: kit.Node) -> AsyncIterator[list[kit.Instance]]:
        async for counts in self._counters.follow():
            self._machine.note("OFFERS", driver=DRIVER, counts=counts)
            yield [kit.numeric.counter(id, count) for id, count in counts.items()]

    async def _prepare(self, claim: kit.Reserved) -> kit.Edits:
        resource = f"{DRIVER}/{claim.handle}/{claim.uid}"
        about = {"driver": DRIVER, "claim": claim.uid, "named": str(claim)}
        takes = {claim.instance: claim.data["count"]}
        on_disk = self._machine.on_disk(DRIVER)
        self._machine.note("PREPARE", **about, devices=[resource], shared=False, takes=takes, **on_disk)
        await self._machine.trouble(DRIVER, "prepare", str(claim))
        return kit.Edits(env=(f"DEVICE_{claim.uid.replace('-', '_')}={resource}",))

    async def _unprepare(self, entry: kit.Entry) -> None:
        about = {"driver": DRIVER, "claim": entry.uid, "named": str(entry)}
        self._machine.note("UNPREPARE", **about)
        await self._machine.trouble(DRIVER, "unprepare", str(entry))
        self._machine.note("UNPREPARED", **about)
