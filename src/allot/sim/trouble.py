"""What befalls components: they die, freeze, hear nothing, have rivals or wrong clocks; machines lose their
power, and drivers go away. Steps of a script."""

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from typing import Any

from .component import Component
from .faults import Deaf, Faults
from .loop import VirtualClock, VirtualLoop
from .nodes import Nodes
from .step import Step

KINDS = ("crash", "freeze", "deaf", "rivals", "jump", "skew")
OF_MACHINES = ("reboot", "driver away")
_AT_LATEST_S = 60.0


class Trouble:
    def __init__(
        self,
        loop: VirtualLoop,
        components: Mapping[str, Component],
        clocks: Mapping[str, VirtualClock],
        faults: Faults,
        nodes: Nodes,
    ) -> None:
        self._loop = loop
        self._components = components
        self._clocks = clocks
        self._faults = faults
        self._nodes = nodes
        self._turns: dict[str, asyncio.Lock] = {}

    async def do(self, step: Step) -> None:
        name = step.of.get("component", "")
        if step.deed in self._faults.without or (name and name not in self._components):
            return  # another story, or another world
        self._faults.struck[step.deed] += 1
        match step.deed:
            case "jump":
                self._jump(**step.of)
            case "skew":
                self._skew(**step.of)
            case "deaf":
                self._deaf(**step.of)
            case "rivals":
                self._rivals(**step.of)
            case "crash":
                await self._alone(name, self._crash(**step.of))
            case "freeze":
                await self._alone(name, self._freeze(**step.of))
            case "reboot":
                await self._alone(step.of["node"], self._reboot(**step.of))
            case "driver away":
                await self._alone(f"{step.of['driver']} {step.of['node']}", self._take_away(**step.of))

    async def _alone(self, name: str, trouble: Coroutine[Any, Any, None]) -> None:
        """One after another for each component."""
        async with self._turns.setdefault(name, asyncio.Lock()):
            await trouble

    async def _crash(self, component: str, requests: int, steps: int, down_s: float) -> None:
        victim = self._components[component]
        await victim.kill_at_work(requests, steps, _AT_LATEST_S)
        self._faults.journal.note(component, f"dies; back in {down_s} s", "crash")
        await asyncio.sleep(down_s)
        victim.start()

    async def _freeze(self, component: str, seconds: float) -> None:
        """Long enough, and another copy leads before this one knows."""
        victim = self._components[component]
        self._faults.journal.note(component, f"does not get to run for {seconds} s", "freeze")
        victim.freeze()
        await asyncio.sleep(seconds)
        victim.thaw()

    async def _reboot(self, node: str, down_s: float) -> None:
        self._faults.journal.note(node, f"its power goes; on again in {down_s} s", "reboot")
        await self._nodes.reboot(node, down_s)

    async def _take_away(self, node: str, driver: str, seconds: float) -> None:
        self._faults.journal.note(node, f"driver {driver} is away for {seconds} s", "driver away")
        await self._nodes.take_driver_away(node, driver, seconds)

    def _jump(self, seconds: float) -> None:
        self._faults.journal.note("every clock", f"leaps {seconds} s", "jump")
        self._loop.jump(seconds)

    def _skew(self, component: str, seconds: float) -> None:
        self._faults.journal.note(component, f"its wall clock is set off by {seconds} s", "skew")
        self._clocks[component].skew = timedelta(seconds=seconds)

    def _deaf(self, component: str, resource: str, seconds: float, forgets: bool) -> None:
        and_then = ", and then starts over" if forgets else ""
        self._faults.journal.note(component, f"hears nothing of {resource} for {seconds} s{and_then}", "deaf")
        self._faults.deaf[component, resource] = Deaf(self._loop.time() + seconds, forgets)

    def _rivals(self, seconds: float) -> None:
        self._faults.journal.note("others", f"write to the same objects for {seconds} s", "rivals")
        self._faults.rivals_until_s = self._loop.time() + seconds
