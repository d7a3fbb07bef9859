"""Says in the Node what its device plugins have, whenever that is different, and until the server has it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from allot.api import Object, age, core, errors
from allot.base import Clock, os_reason
from allot.client import Patch, Resource, level_of

from .compute import Exports
from .doubles import Double, doubles
from .listing import Listing, NotListed
from .offers import Offers
from .status import REFUSED, TWICE, Says, explained, said

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is heard of this machine's node, and how it is spoken of."""

    node: Callable[[], Object | None]
    slices: Callable[[], Iterable[Object]]
    nodes: Resource
    listing: Listing
    complain: Callable[[Object, str, str], None]


class StatusLoop:
    def __init__(
        self,
        offers: Offers,
        exports: Exports,
        keep: Callable[[], Awaitable[None]],
        clock: Clock,
        look_s: float,
    ) -> None:
        """`keep` writes down which resources there are."""
        self._offers, self._exports, self._keep, self._clock = offers, exports, keep, clock
        self._look_s = look_s
        self._doubles: Sequence[Double] = ()
        self._refused: Mapping[str, str] = {}
        self._is_dropped = False  # what is exported, by the server: it is said beside the Node
        self._changed = asyncio.Event()

    def changed(self) -> None:
        self._changed.set()

    async def run(self, around: Surroundings) -> None:
        """Until cancelled. Looks again after a while too: plugins are given up that are gone for long."""
        self._is_dropped = around.listing.is_begun
        while True:
            self._changed.clear()
            self._offers.give_up(self._clock.monotonic_s())
            node = around.node()
            if node is not None and (self._offers.resources or around.listing.is_begun):
                await self._say(node, around)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_s):
                    await self._changed.wait()

    async def _say(self, node: Object, around: Surroundings) -> None:
        self._look(node, around)
        now = age.timestamp(self._clock.now())
        status = said(node.fields, self._says(), now, is_listed=self._is_dropped)
        try:
            if status:
                await self._keep()  # so that a process that begins anew knows what to take back
                shown = await around.nodes.patch(
                    node.name, {"status": status}, type=Patch.STRATEGIC, subresource="status"
                )
                await self._heed(shown, around.listing)
            await around.listing.say(node, [one.as_fields() for one in self._exports.all()])
        except NotListed as why:
            log.warning("the server keeps no compute resources of nodes, devices are counted: %s", why)
            around.listing.give_up()
            self._exports.is_wanted = False
            self.changed()
        except errors.ApiError as refused:
            log.log(
                level_of(refused, logging.WARNING),
                "node %s: its devices are not said: %s",
                node.name,
                refused,
            )
        except OSError as failed:
            log.warning("%s: %s", failed.filename, os_reason(failed))

    def _says(self) -> Says:
        counted = self._offers.counted()
        exports = self._exports
        return Says(
            {name: counted[name] for name in exports.counted}, exports.all(), self._doubles, exports.late
        )

    async def _heed(self, shown: Object, listing: Listing) -> None:
        """A server that drops compute resources has none of what is exported: they are said beside the Node.
        Raises NotListed where they cannot be, and ApiError."""
        if self._exports.all() and not shown.view(core.Node).status.compute_resources:
            await listing.begin()
            self._is_dropped = True

    def _look(self, node: Object, around: Surroundings) -> None:
        """For what is offered twice or not exported; who is told of it once need not hear it again."""
        refused = self._exports.refused()
        if refused != self._refused:
            self._refused = refused
            for device, why in refused.items():
                log.warning("device %s is not exported: %s", device, why)
                around.complain(node, REFUSED, f"device {device} is not exported: {why}")
        found = doubles(self._offers.ids(), around.slices())
        if found != self._doubles:
            self._doubles = found
            if found:
                log.warning("%s", explained(found))
                around.complain(node, TWICE, explained(found))
