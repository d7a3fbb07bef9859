"""A driver of numeric parameters (KEP-4381): what its author declares, and everything put together.

    driver = NumericDriver("frob.example.com", capacity, prepare, unprepare)
    driver.main()

It has no half in the control plane, and no access to the API: the scheduler allocates, the agent of the node
publishes. What remains is to say what is there, and to set up what was reserved. Before the author's
`prepare` is called the kit looks whether that is still there, and refuses what is not (`numeric.require`).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from allot.api import Gates
from allot.base import Clock, Files, MachineFiles, Metrics, SystemClock
from allot.numeric import Registry, load_models
from allot.wire import Sockets, UnixSockets, cdi, classic
from allot.wire import capacity as wire

from .assembly import Node, nothing
from .claims import Edits, NotUsable, Ready
from .deeds import done, first_of_several
from .handed import Handed, HandedPlugin, UnprepareHanded
from .injecting import Injecting
from .numeric import Instance, Reserved, read, require, reserved
from .places import Places, check_name
from .registering import Registration, registered
from .state import State, boot_id

log = logging.getLogger(__name__)

AGAIN_S: Final = 5.0
"""After the author's own look at the hardware failed."""

Capacities = Callable[[Node], Iterable[Instance] | AsyncIterator[Iterable[Instance]]]
"""What a node has: once, or, as an async generator, all of it again whenever it changes. What is broken is
left out: claims that have it are not prepared until it is back."""

PrepareReserved = Callable[[Reserved], Edits | Ready | Awaitable[Edits | Ready]]


@dataclass(frozen=True, slots=True)
class NumericDriver:
    name: str
    capacity: Capacities
    prepare: PrepareReserved
    unprepare: UnprepareHanded = nothing

    def __post_init__(self) -> None:
        check_name(self.name)

    def main(self, argv: Sequence[str] | None = None) -> int:
        """As a program: reads flags, runs until interrupted, returns the exit status."""
        from .main import main

        return main(self, argv)


@dataclass(frozen=True, slots=True)
class Ground:
    """What such a driver is handed."""

    sockets: Sockets = field(default_factory=UnixSockets)
    clock: Clock = field(default_factory=SystemClock)
    metrics: Metrics = field(default_factory=Metrics)
    boot: str = field(default_factory=boot_id)
    files: Files = field(default_factory=MachineFiles)


@dataclass(frozen=True, slots=True)
class Offering:
    plugin: HandedPlugin
    telling: "Telling"
    registration: Registration


@asynccontextmanager
async def offering(
    driver: NumericDriver, node: Node, places: Places, ground: Ground
) -> AsyncIterator[Offering]:
    """The driver at work while the block runs. Raises BadState, OSError."""
    with first_of_several():
        async with _offering(driver, node, places, ground) as work:
            yield work


@asynccontextmanager
async def _offering(
    driver: NumericDriver, node: Node, places: Places, ground: Ground
) -> AsyncIterator[Offering]:
    telling = Telling(driver, node)
    checking = _Checking(driver, telling, State(places.data, ground.boot, ground.files), node.fake)
    plugin = HandedPlugin(
        driver.name,
        checking.prepare,
        nothing if node.fake else driver.unprepare,
        checking.state,
        Injecting(cdi.SpecDirectory(places.cdi, ground.files), driver.name),
        ground.clock,
        ground.metrics,
        checking.require,
    )
    await plugin.start()
    service = (
        classic.PREPARE.by(plugin.prepare),
        classic.UNPREPARE.by(plugin.unprepare),
        wire.WATCH.by(telling.watch),
    )
    versions = [classic.VERSION, wire.VERSION]
    async with (
        asyncio.TaskGroup() as group,
        registered(
            places, ground.sockets, service, versions, ground.metrics, type=classic.RESOURCE_PLUGIN
        ) as said,
    ):
        task = group.create_task(telling.run())
        yield Offering(plugin, telling, said)
        task.cancel()
    await plugin.stop()


class Telling:
    """What the author says the node has, to every agent that listens."""

    def __init__(self, driver: NumericDriver, node: Node) -> None:
        self._driver, self._node = driver, node
        self._turn = asyncio.Event()  # set, and replaced, with every change
        self.offered: Mapping[str, Instance] | None = None  # None: the author has not said yet

    async def run(self) -> None:
        """Follow what the author says, and begin anew where that fails."""
        while True:
            try:
                given = self._driver.capacity(self._node)
                if not isinstance(given, AsyncIterator):
                    self._tell(given)
                    return
                async for instances in given:
                    self._tell(instances)
                return
            except Exception:
                log.exception("what %s has cannot be told; again in %.0f s", self._driver.name, AGAIN_S)
            await asyncio.sleep(AGAIN_S)

    async def watch(
        self, request: wire.NodeWatchCapacityRequest
    ) -> AsyncIterator[wire.NodeWatchCapacityResponse]:
        """What there is, and then whatever it becomes."""
        while True:
            turn = self._turn
            if self.offered is not None:
                messages = tuple(one.message for one in self.offered.values())
                yield wire.NodeWatchCapacityResponse(messages)
            await turn.wait()

    def _tell(self, instances: Iterable[Instance]) -> None:
        listed = tuple(instances)
        offered = {one.id: one for one in listed}
        if len(offered) != len(listed):
            raise ValueError("two instances have one id")
        if offered != self.offered:
            self.offered = offered
            self._turn.set()
            self._turn = asyncio.Event()


class _Checking:
    """Between the kubelet's calls and the author."""

    def __init__(self, driver: NumericDriver, telling: Telling, state: State, fake: bool) -> None:
        self._driver, self._telling, self._fake = driver, telling, fake
        self.state = state
        self._models = _models()

    def require(self, claim: Handed) -> None:
        """Raises NotUsable."""
        offered = self._telling.offered
        if offered is None:
            raise NotUsable(f"driver {self._driver.name} does not know yet what there is")
        require(read(claim), offered, self._others(claim.uid), self._models)

    async def prepare(self, claim: Handed) -> Edits | Ready:
        wanted = read(claim)
        given: Edits | Ready = pretended(wanted) if self._fake else await done(self._driver.prepare, wanted)
        return given

    def _others(self, uid: str) -> list[Reserved]:
        """What is prepared for other claims; what was only begun waits, as this one does."""
        entries = self.state.entries.values()
        prepared = (one for one in entries if one.uid != uid and self.state.is_prepared(one))
        return [reserved(one.namespace, one.name, one.uid, one.handle) for one in prepared]


def _models() -> Registry:
    return load_models(Gates({}), log.warning)


def pretended(claim: Reserved) -> Edits:
    """In place of a driver's own `prepare` where there is no hardware: the container is told the instance."""
    return Edits(env=(f"RESOURCE_INSTANCE={claim.instance}",))
