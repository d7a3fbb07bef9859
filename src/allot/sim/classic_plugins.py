"""The node half of a driver of classic claims on a made-up machine, with the kit around it.

What the author would do to hardware is noted, slow at times and failing at times, as that of other drivers on
the machine. A container is told which resource it has: its driver, the handle and the claim.
"""

from typing import Protocol

from allot import driver as kit


class OnMachine(Protocol):
    """What is needed of `machines.Machine`."""

    def note(self, what: str, **of: object) -> None: ...

    def on_disk(self, driver: str) -> dict[str, str]: ...

    async def trouble(self, driver: str, deed: str, claim: str) -> None: ...


class Resources:
    def __init__(self, machine: OnMachine, driver: str) -> None:
        self._machine, self._driver = machine, driver

    def plugin(self) -> kit.NodePlugin:
        return kit.NodePlugin(self._driver, self._prepare, self._unprepare)

    async def _prepare(self, claim: kit.Handed) -> kit.Edits:
        resource = f"{self._driver}/{claim.handle}/{claim.uid}"
        about = {"driver": self._driver, "claim": claim.uid, "named": str(claim)}
        on_disk = self._machine.on_disk(self._driver)
        self._machine.note("PREPARE", **about, devices=[resource], shared=False, **on_disk)
        await self._machine.trouble(self._driver, "prepare", str(claim))
        return kit.Edits(env=(f"DEVICE_{claim.uid.replace('-', '_')}={resource}",))

    async def _unprepare(self, entry: kit.Entry) -> None:
        about = {"driver": self._driver, "claim": entry.uid, "named": str(entry)}
        self._machine.note("UNPREPARE", **about)
        await self._machine.trouble(self._driver, "unprepare", str(entry))
        self._machine.note("UNPREPARED", **about)
