"""One made-up machine with a real agent and real drivers: what they run on, and how it fails.

    disk         files, lost as files are (`disk`); CDI specs lie in memory as a rule, and a reboot takes them
    sockets      from task to task, in the order of the calls, with faults of their own
    containers   times (`containers`)
    devices      what the drivers' authors would do to hardware: noted, slow at times, failing at times

The agent is `allot.nodeagent`, the drivers are those of `allot.drivers.sim` with the kit
around them, and where there are classic claims the node halves of their drivers (`classic_plugins`), each
a component that can be killed at any step. What they do to the machine is noted
(`recording.Notes`) for checkers.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from allot import driver as kit
from allot.apiserver import identities
from allot.base import Files, Metrics, RandomIds
from allot.client import Client, Credential
from allot.drivers import sim
from allot.informers import Informers, Pace, Telemetry
from allot.node import Renewing
from allot.nodeagent import Agent, Looking, Measured, Process, Settings
from allot.wire import Fault, Handler, LocalProcess, LocalSockets, Server, classic, dra

from .card_plugins import Cards
from .classic_plugins import Resources
from .component import Component, Connect, Main
from .containers import Containers, Wish
from .disk import Disk
from .faults import Faults
from .loop import VirtualClock
from .numeric_drivers import DRIVER as COUNTING
from .numeric_drivers import Counters, Counting
from .recording import Notes
from .ways import NodeWay

ROOT, CDI = Path("/var/lib/kubelet"), Path("/var/run/cdi")
CHECKPOINT = ROOT / "dra_manager_state"
CALL_RATES = {"call refused": 0.03, "call cut": 0.03, "call late": 0.03, "call unanswered": 0.03}
"""What befalls calls between agents and drivers."""
DEVICE_RATES = {"device slow": 0.15, "device fails": 0.1}
LATE_S_MAX, SLOW_S_MAX = 60.0, 60.0
CDI_IN_MEMORY = 0.6
"""So many machines have their CDI files in memory, where a reboot takes them; others have them on disk."""
_FLAP_S = (0.0, 0.0, 300.0)
"""How often devices fall ill in a life of a driver; 0: it says nothing of their health."""
_PACE = Pace(first_s=0.2, longest_s=5.0, absent_s=60.0, watch_s=1800)
_LOOKING = Looking(sockets_s=5.0, drivers_s=5.0)
_PLUGIN_LOOKS_S = 2.0
_MEASURED = Measured(8, 32 * 2**30, 100 * 2**30, "amd64", "6.1", "Linux", "", "")

Luck = Callable[[str], random.Random]


class Machine:
    def __init__(
        self,
        node: str,
        clock: VirtualClock,
        faults: Faults,
        machines: Notes,
        wish: Wish,
        renewing: Renewing,
        luck: Luck,
    ) -> None:
        self.node = node
        self.clock = clock
        self._faults = faults
        self._notes = machines
        self._wish = wish
        self._renewing = renewing
        self._luck = luck
        self.is_silent = False
        self.boots = 0
        self.off: set[str] = set()  # why
        self.components: dict[str, Component] = {}
        self.pools: dict[str, Pools] = {}
        self.counters = Counters()
        self.cards: Cards | None = None  # of a device plugin, where nodes export compute resources
        self.plugins: tuple[str, ...] = ()  # drivers of classic claims that have a half here
        self._put_together()

    def _put_together(self) -> None:
        is_in_memory = self._faults.lots.draw(f"{self.node} CDI")[0] < CDI_IN_MEMORY
        self.disk = Disk([CDI] if is_in_memory else [])
        self.sockets = LocalSockets(self._fault)
        self.containers = Containers(self.node, self.clock, self._wish, self._notes)

    # -- power ----------------------------------------------------------------------------------

    async def power_off(self, why: str) -> None:
        """Whatever runs on it is gone, and what was not written for good is gone, too."""
        self.off.add(why)
        for component in self.components.values():
            component.unplug(why)
        for component in self.components.values():
            await component.kill()
        self.containers.power_off()
        self.disk.cut_power(self._faults.lots.generator(f"{self.node} power {self.boots}"))
        self.note("OFF")

    def power_on(self, why: str, *, is_new: bool = False) -> None:
        """`is_new`: another machine under the same name, with nothing on its disk."""
        self.off.discard(why)
        if is_new:
            self._put_together()
        if not self.off:
            self.boots += 1
            self.note("ON", boot=str(self.boots))
        for component in self.components.values():
            component.release(why)

    @property
    def is_on(self) -> bool:
        return not self.off

    def left(self) -> None:
        """Note what is there at the end."""
        states = {name: self.disk.content(_state_of(name)) for name in (*self.pools, *self.plugins, COUNTING)}
        self.note(
            "LEFT",
            is_on=self.is_on,
            pods=[name.removesuffix(".json") for name in self.disk.below(ROOT / "pods") if name[0] != "."],
            checkpoint=_text(self.disk.content(CHECKPOINT)),
            states={name: _text(content) for name, content in states.items()},
            cdi=[name for name in self.disk.below(CDI) if name[0] != "."],
            records=[[*which] for which in self.containers.records],
            running=[[*which] for which in self.containers.running],
        )

    # -- the agent ------------------------------------------------------------------------------

    def agent(self, component: Callable[[], Component]) -> Main:
        return lambda connect: self._lead(component(), connect)

    async def _lead(self, me: Component, connect: Connect) -> None:
        rng, metrics = self._luck(me.name), Metrics()
        files = self.disk.process(me.touched)
        sockets, runtime = self.sockets.process(me.touched), self.containers.process(me.touched)
        for end in (files.kill, sockets.kill, runtime.kill):
            me.at_kill(end)
        client, clock = Client(self._way(connect)), self.clock
        self.note("AGENT")
        async with Informers(client, rng, pace=_PACE) as informers:
            process = Process(
                client,
                informers,
                clock,
                RandomIds(rng),
                metrics,
                Telemetry(metrics, clock),
                sockets,
                runtime,
                Credential(),
                b"",
                files,
                lambda root: _MEASURED,
            )
            settings = Settings(
                self.node,
                ROOT,
                (CDI,),
                renewing=self._renewing,
                looking=_LOOKING,
                exports_compute=self.cards is not None,
            )
            await Agent(settings, process).run()

    def _way(self, connect: Connect) -> NodeWay:
        return NodeWay(connect(identities.node(self.node)), lambda: self.is_silent)

    # -- its drivers ----------------------------------------------------------------------------

    def driver(self, name: str) -> Callable[[Callable[[], Component]], Main]:
        def life(component: Callable[[], Component]) -> Main:
            return lambda connect: self._drive(name, component(), connect)

        return life

    async def _drive(self, name: str, me: Component, connect: Connect) -> None:
        around = self._around(name, me, connect)
        pools, flap_s = self.pools[name], around.rng.choice(_FLAP_S)
        made = sim.simulated(name, pools.now, sim.Faults(flap_s=flap_s), None, around.rng, self.clock)
        if not flap_s:
            made = replace(made, health=None)
        author = _Author(self, replace(made, pools=pools.follow))
        places = kit.Places(name, ROOT, CDI)
        async with kit.running(author.driver(), kit.Node(self.node), places, around):
            await asyncio.Event().wait()

    def plugin(self, name: str) -> Callable[[Callable[[], Component]], Main]:
        """The half of a classic driver that is here."""

        def life(component: Callable[[], Component]) -> Main:
            return lambda connect: self._plug_in(name, component(), connect)

        return life

    async def _plug_in(self, name: str, me: Component, connect: Connect) -> None:
        around, places = self._around(name, me, connect), kit.Places(name, ROOT, CDI)
        async with kit.serving(Resources(self, name).plugin(), kit.Node(self.node), places, around):
            await asyncio.Event().wait()

    def counting(self, component: Callable[[], Component]) -> Main:
        """The driver of numeric parameters."""
        return lambda connect: self._count(component())

    async def _count(self, me: Component) -> None:
        files, sockets = self._own(COUNTING, me)
        ground = kit.Ground(sockets, self.clock, boot=str(self.boots), files=files)
        driver, places = Counting(self, self.counters).driver(), kit.Places(COUNTING, ROOT, CDI)
        async with kit.offering(driver, kit.Node(self.node), places, ground):
            await asyncio.Event().wait()

    def plugging(self, component: Callable[[], Component]) -> Main:
        """The device plugin."""
        return lambda connect: self._plug(component())

    async def _plug(self, me: Component) -> None:
        if self.cards is not None:
            sockets = self.sockets.process(me.touched)
            me.at_kill(sockets.kill)
            plugin, node = self.cards.plugin(), kit.Node(self.node)
            await kit.Plugged(plugin, node, ROOT / "device-plugins", sockets, _PLUGIN_LOOKS_S).run()

    def _around(self, driver: str, me: Component, connect: Connect) -> kit.Surroundings:
        """What a driver is handed: it all ends with its process."""
        files, sockets = self._own(driver, me)
        client, rng = Client(self._way(connect)), self._luck(me.name)
        return kit.Surroundings(client, sockets, self.clock, rng, boot=str(self.boots), files=files)

    def _own(self, driver: str, me: Component) -> tuple[Files, "_Overheard"]:
        files, sockets = self.disk.process(me.touched), _Overheard(self, driver, me.touched)
        for end in (files.kill, sockets.kill):
            me.at_kill(end)
        return files, sockets

    def note(self, what: str, **of: object) -> None:
        self._notes.note(self.node, what, **of)

    def on_disk(self, driver: str) -> dict[str, str]:
        """What would be there of the agent's and a driver's word if the power went now."""
        return {
            "checkpoint": _text(self.disk.durable(CHECKPOINT)),
            "state": _text(self.disk.durable(_state_of(driver))),
        }

    async def trouble(self, driver: str, deed: str, claim: str) -> None:
        """A device takes its time, or does not do what it should. Raises RuntimeError."""
        faults, who = self._faults, f"{driver} {self.node}"
        about = faults.numbered(who, f"{deed} {claim}")
        lot = faults.lots.draw(f"{who} {about}")
        if (
            faults.active
            and lot[0] < DEVICE_RATES["device slow"]
            and faults.strike("device slow", who, about)
        ):
            await asyncio.sleep(lot[1] * SLOW_S_MAX)
        if (
            faults.active
            and lot[2] < DEVICE_RATES["device fails"]
            and faults.strike("device fails", who, about)
        ):
            raise RuntimeError("made up: the device did not answer")

    def _fault(self, path: str, method: str) -> Fault:
        """What befalls a call; streams are refused or cut, for who hears nothing more asks again."""
        faults, who = self._faults, f"calls {self.node}"
        if not faults.active:
            return Fault()
        about = faults.numbered(who, f"{path.rpartition('/')[2]} {method.rpartition('/')[2]}")
        lot = faults.lots.draw(f"{who} {about}")
        kinds = [*CALL_RATES][: 2 if "Watch" in method else None]
        struck = {
            kind
            for place, kind in enumerate(kinds)
            if lot[place] < CALL_RATES[kind] and faults.strike(kind, who, about)
        }
        late_s = lot[len(CALL_RATES)] * LATE_S_MAX if "call late" in struck else 0.0
        return Fault("call refused" in struck, late_s, "call unanswered" in struck, "call cut" in struck)


class Pools:
    """What a driver has now, for all its lives."""

    def __init__(self, now: Sequence[kit.Pool]) -> None:
        self.now = tuple(now)
        self._turn = asyncio.Event()  # set, and replaced, with every change

    def change(self, pools: Sequence[kit.Pool]) -> None:
        self.now = tuple(pools)
        self._turn.set()
        self._turn = asyncio.Event()

    async def follow(self, node: kit.Node) -> AsyncIterator[Sequence[kit.Pool]]:
        while True:
            turn = self._turn
            yield self.now
            await turn.wait()


class _Author:
    """The author's part of a driver, as `drivers.sim` has it, with what it does to devices noted."""

    def __init__(self, machine: Machine, made: kit.Driver) -> None:
        self._machine, self._made = machine, made

    def driver(self) -> kit.Driver:
        return replace(self._made, prepare=self._prepare, unprepare=self._unprepare)

    async def _prepare(self, claim: kit.Claim) -> kit.Given:
        name = self._made.name
        about = {
            "driver": name,
            "claim": claim.uid,
            "named": str(claim),
            "devices": [f"{name}/{one.pool}/{one.device}" for one in claim.devices],
            "shared": any(one.share_id for one in claim.devices),
        }
        self._machine.note("PREPARE", **about, **self._machine.on_disk(name))
        await self._machine.trouble(name, "prepare", str(claim))
        given = self._made.prepare(claim)
        return await given if isinstance(given, Awaitable) else given

    async def _unprepare(self, entry: kit.Entry) -> None:
        name = self._made.name
        about = {"driver": name, "claim": entry.uid, "named": str(entry)}
        self._machine.note("UNPREPARE", **about)
        await self._machine.trouble(name, "unprepare", str(entry))
        done = self._made.unprepare(entry)
        if isinstance(done, Awaitable):
            await done
        self._machine.note("UNPREPARED", **about)


class _Overheard(LocalProcess):
    """A driver's sockets; what it answers to an agent is noted."""

    def __init__(self, machine: Machine, driver: str, asked: Callable[[], None]) -> None:
        super().__init__(machine.sockets, asked)
        self._on, self._driver = machine, driver

    async def serve(self, path: str, handlers: Iterable[Handler]) -> Server:
        return await super().serve(path, [self._noted(one) for one in handlers])

    def _noted(self, handler: Handler) -> Handler:
        answer = handler.answer
        read = next((read for end, read in _ANSWERS.items() if handler.path.endswith(end)), None)
        if answer is None or read is None:
            return handler

        async def noted(data: bytes) -> bytes:
            said = await answer(data)
            for uid, names in read(data, said):
                on_disk = self._on.on_disk(self._driver)
                self._on.note("ANSWERED", driver=self._driver, claim=uid, names=sorted(names), **on_disk)
            return said

        return Handler(handler.path, noted)


def _prepared(asked: bytes, said: bytes) -> Iterator[tuple[str, list[str]]]:
    """The claims that an answer is about, and what containers get with each."""
    for uid, one in dra.NodePrepareResourcesResponse.decode(said).claims.items():
        if not one.error:
            yield uid, [name for device in one.devices for name in device.cdi_device_ids]


def _prepared_one(asked: bytes, said: bytes) -> Iterator[tuple[str, list[str]]]:
    answer = classic.NodePrepareResourceResponse.decode(said)
    yield classic.NodePrepareResourceRequest.decode(asked).claim_uid, [*answer.cdi_devices]


_ANSWERS = {"/NodePrepareResources": _prepared, "/NodePrepareResource": _prepared_one}


def _state_of(driver: str) -> Path:
    return ROOT / "plugins" / driver / "checkpoint.json"


def _text(content: bytes | None) -> str:
    return content.decode(errors="replace") if content is not None else ""
