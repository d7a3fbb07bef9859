"""The machines of a world that have real agents and drivers, beside nodes that only follow a script.

They come and go as other nodes do. What befalls them besides: the power goes (`reboot`), a driver is
away for long, and whatever is said of components and faults anywhere.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from allot import driver as kit
from allot.api import errors
from allot.client import Resource
from allot.node import Renewing
from allot.nodeagent import ContainerSpec

from . import things
from .card_plugins import Cards
from .component import Component, Main
from .compute_things import RAW
from .containers import Lasts
from .faults import LATE_S_MAX
from .loop import VirtualClock
from .lots import Lots
from .machines import Machine, Pools
from .naming import DRIVERS, agent_of, driver_of
from .numeric_drivers import DRIVER as COUNTING
from .numeric_drivers import Counters
from .recording import Recorder

RENEWING = Renewing(every_s=240.0, duration_s=480)
"""A node that says so may be silent for ten minutes before it is given up on."""
_LOST, _REBOOT, _AWAY = "lost", "reboot", "away"
DEVICES = 4

Add = Callable[[str, Main, VirtualClock], Component]
"""Make a component by that name, on a machine with that clock."""


class Agents:
    def __init__(
        self, machines: Mapping[str, Machine] = {}, classic: Sequence[str] = (), *, exports: bool = False
    ) -> None:
        """`classic` are drivers of classic claims: each has its half on every machine. With `exports` a
        device plugin has cards there, which the nodes export as compute resources."""
        self._machines, self._exports = machines, exports
        self._classic = tuple(classic)

    def __contains__(self, node: str) -> bool:
        return node in self._machines

    def furnish(self, add: Add) -> None:
        for machine in self._machines.values():
            pools = plain_pools(machine.node, DEVICES), shared_pools(machine.node)
            machine.pools = {name: Pools(own) for name, own in zip(DRIVERS, pools, strict=True)}
            _add(machine, agent_of(machine.node), machine.agent, add)
            for driver in DRIVERS:
                _add(machine, driver_of(driver, machine.node), machine.driver(driver), add)
            machine.counters = Counters()
            _add(machine, driver_of(COUNTING, machine.node), machine.counting, add)
            if self._exports:
                machine.cards = Cards()
                _add(machine, driver_of(RAW, machine.node), machine.plugging, add)
            machine.plugins = self._classic
            for driver in self._classic:
                _add(machine, driver_of(driver, machine.node), machine.plugin(driver), add)
            machine.power_on("")

    def join(self, node: str) -> None:
        machine = self._machines[node]
        if _LOST in machine.off:
            machine.power_on(_LOST, is_new=True)

    async def lose(self, node: str, nodes: Resource) -> None:
        machine = self._machines[node]
        if _LOST in machine.off:
            return
        await machine.power_off(_LOST)
        for _ in range(2):
            with suppress(errors.NotFound, errors.Conflict):
                if _LOST in machine.off:
                    await nodes.delete(node)
            await asyncio.sleep(2 * LATE_S_MAX)  # what it had asked for may still be done

    async def reboot(self, node: str, down_s: float) -> None:
        machine = self._machines[node]
        if not machine.is_on:
            return
        await machine.power_off(_REBOOT)
        await asyncio.sleep(down_s)
        machine.power_on(_REBOOT)

    async def take_away(self, node: str, driver: str, seconds: float) -> None:
        machine = self._machines[node]
        component = machine.components[driver_of(driver, node)]
        component.unplug(_AWAY)
        await component.kill()
        machine.note("AWAY", driver=driver)
        await asyncio.sleep(seconds)
        machine.note("BACK", driver=driver)
        component.release(_AWAY)

    def publish(self, node: str, devices: int, generation: int) -> None:
        """A larger or smaller pool from now on, with a generation under other names."""
        self._machines[node].pools[things.DRIVER].change(plain_pools(node, devices, generation))

    def count(self, node: str, counts: Mapping[str, int]) -> None:
        """What the driver of numeric parameters has from now on."""
        self._machines[node].counters.change(counts)

    def export(self, node: str, resources: list[dict[str, Any]]) -> None:
        """What its device plugin says of its cards from now on."""
        cards = self._machines[node].cards
        if cards is not None:
            cards.change(resources)

    def silence(self, node: str, is_silent: bool) -> None:
        if node in self._machines:
            self._machines[node].is_silent = is_silent

    def left(self) -> None:
        for machine in self._machines.values():
            machine.left()


def _add(machine: Machine, name: str, main: Callable[[Callable[[], Component]], Main], add: Add) -> None:
    machine.components[name] = add(name, main(lambda: machine.components[name]), machine.clock)


def plain_pools(node: str, devices: int, generation: int = 0) -> list[kit.Pool]:
    """What `things.slices_of` says, as the kit's values."""
    (published,) = things.slices_of(node, devices, generation)
    prefix = f"gpu-{generation}" if generation else "gpu"
    listed = [
        kit.Device(
            f"{prefix}-{at}",
            {"model": one["attributes"]["model"]["string"], "board": one["attributes"]["board"]["int"]},
        )
        for at, one in enumerate(published["spec"]["devices"])
    ]
    return [kit.Pool(node, listed)]


def shared_pools(node: str) -> list[kit.Pool]:
    """What `things.sharing_slices` says, as the kit's values."""
    _, published = things.sharing_slices(node)
    devices = []
    for one in published["spec"]["devices"]:
        consumes = {
            taken["counterSet"]: {name: amount["value"] for name, amount in taken["counters"].items()}
            for taken in one.get("consumesCounters") or ()
        }
        capacity = {name: amount["value"] for name, amount in (one.get("capacity") or {}).items()}
        kind = {"kind": one["attributes"]["kind"]["string"]}
        is_shared = one.get("allowMultipleAllocations", False)
        devices.append(kit.Device(one["name"], kind, capacity, consumes, shared=is_shared))
    return [kit.Pool(published["spec"]["pool"]["name"], devices, {"card": {"parts": "4"}})]


def wishes(lots: Lots, record: Recorder, node: str) -> Callable[[ContainerSpec], Lasts]:
    """What a lot decides about each run of a container."""

    def wish(spec: ContainerSpec) -> Lasts:
        lot = lots.draw(f"life of {spec.env['HOSTNAME']} {spec.name} #{spec.number} on {node}")
        pod = next((one for one in record.all("pods") if one.uid == spec.pod_uid), None)
        stays = pod is None or pod.fields["spec"]["restartPolicy"] == "Always"
        run_s: float | None = 5 + 600 * lot[1] ** 2
        if stays and (spec.number or lot[4] < 0.7):
            run_s = None
        return Lasts(1 + 9 * lot[0], run_s, 20 * lot[2], int(lot[3] < 0.15))

    return wish
