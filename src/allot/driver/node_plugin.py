"""The node half of a driver of classic claims: what its author declares, and everything put together.

    plugin = NodePlugin("gpu.example.com", prepare, unprepare)
    plugin.main()

Beside prepare and unprepare it may publish objects of the driver's own about its node, such as which
devices are there: `publishes` says what they should be, and they are applied until that is so.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from allot.api import errors
from allot.client import Resource
from allot.informers import Again, Catalogue, Limits, Reconciler, Telemetry, discover
from allot.wire import cdi, classic

from .assembly import Node, Surroundings, nothing
from .claims import Edits
from .deeds import first_of_several
from .handed import Handed, HandedPlugin, PrepareHanded, UnprepareHanded
from .injecting import Injecting
from .places import Places, check_name
from .registering import Registration, registered
from .state import State

LOOK_S: Final = 60.0
"""Between two looks at what was published: somebody may have changed it."""
LIMITS: Final = Limits(first_s=0.1, longest_s=10.0)

Publishes = Callable[[Node], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class NodePlugin:
    name: str
    prepare: PrepareHanded
    unprepare: UnprepareHanded = nothing
    publishes: Publishes | None = None

    def __post_init__(self) -> None:
        check_name(self.name)

    def main(self, argv: Sequence[str] | None = None) -> int:
        """As a program: reads flags, runs until interrupted, returns the exit status."""
        from .main import main

        return main(self, argv)


@dataclass(frozen=True, slots=True)
class Serving:
    plugin: HandedPlugin
    registration: Registration


@asynccontextmanager
async def serving(
    plugin: NodePlugin, node: Node, places: Places, around: Surroundings
) -> AsyncIterator[Serving]:
    """The plugin at work while the block runs. Raises BadState, OSError."""
    with first_of_several():
        async with _serving(plugin, node, places, around) as work:
            yield work


@asynccontextmanager
async def _serving(
    plugin: NodePlugin, node: Node, places: Places, around: Surroundings
) -> AsyncIterator[Serving]:
    deeds = HandedPlugin(
        plugin.name,
        pretended if node.fake else plugin.prepare,
        nothing if node.fake else plugin.unprepare,
        State(places.data, around.boot, around.files),
        Injecting(cdi.SpecDirectory(places.cdi, around.files), plugin.name),
        around.clock,
        around.metrics,
    )
    await deeds.start()
    service = classic.PREPARE.by(deeds.prepare), classic.UNPREPARE.by(deeds.unprepare)
    publishing = _Publishing(plugin, node, around)
    async with (
        registered(
            places,
            around.sockets,
            service,
            [classic.VERSION],
            around.metrics,
            type=classic.RESOURCE_PLUGIN,
        ) as said,
        asyncio.TaskGroup() as group,
    ):
        task = group.create_task(publishing.run())
        yield Serving(deeds, said)
        task.cancel()
    await deeds.stop()


def pretended(claim: Handed) -> Edits:
    """In place of a driver's own `prepare` where there is no hardware: the container is told the handle."""
    return Edits(env=(f"RESOURCE_HANDLE={claim.handle}",))


class _Publishing:
    def __init__(self, plugin: NodePlugin, node: Node, around: Surroundings) -> None:
        self._name, self._client = plugin.name, around.client
        wanted = plugin.publishes(node) if plugin.publishes is not None else ()
        self._wanted = dict(enumerate(wanted))
        self._catalogue = Catalogue(())
        telemetry = Telemetry(around.metrics, around.clock)
        self._loop: Reconciler[int] = Reconciler(
            "driver objects", self._publish, around.clock, telemetry, limits=LIMITS
        )

    async def run(self) -> None:
        for key in self._wanted:
            self._loop.add(key)
        await self._loop.run()

    async def _publish(self, key: int) -> Again | None:
        wanted = self._wanted[key]
        await (await self._resource(wanted)).apply(wanted, field_manager=self._name, force=True)
        return Again(LOOK_S)

    async def _resource(self, wanted: Mapping[str, Any]) -> Resource:
        api_version, kind = wanted["apiVersion"], wanted["kind"]
        served = self._catalogue.of_kind(api_version, kind)
        if served is None:
            self._catalogue = await discover(self._client)
            served = self._catalogue.of_kind(api_version, kind)
        if served is None:
            raise errors.NotFound(f"the server has no kind {kind} in {api_version}")
        what = served.what
        version = api_version.rpartition("/")[2]
        return self._client.resource(what.group, version, what.plural, namespaced=what.namespaced)
