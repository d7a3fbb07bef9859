"""Everything about device plugins of one node, put together."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from allot.api import Object, errors
from allot.base import Clock, Files
from allot.client import Client, level_of
from allot.informers import Informers, ResourceId
from allot.wire import Sockets

from .compute import Exports
from .lending import Lending, remembered
from .listing import Listing
from .loans import Loans
from .offers import GRACE_S, Offers
from .plugin_loop import DIRECTORY, PluginLoop
from .status import amounts, zeroed
from .status_loop import StatusLoop, Surroundings

log = logging.getLogger(__name__)


class DevicePlugins:
    def __init__(
        self,
        root: Path,
        files: Files,
        sockets: Sockets,
        clock: Clock,
        boot: str,
        *,
        look_s: float,
        grace_s: float = GRACE_S,
        exports_compute: bool = False,
    ) -> None:
        """`exports_compute`: devices are to be compute resources of the node, and not counted (KEP-14).
        Raises BadCheckpoint, and OSError."""
        self._look_s = look_s
        directory = root / DIRECTORY
        known = remembered(directory, files)
        self._is_new = not known.loans and not known.resources
        self.offers, loans = Offers(known.resources, clock.monotonic_s(), grace_s), Loans(known.loans)
        self._exports = Exports(self.offers, loans, exports_compute)
        self.plugins = PluginLoop(sockets, files, directory, self.offers, clock, self._on_change, look_s)
        self.is_over: Callable[[str], bool] = lambda pod: False
        self.is_of_cluster: Callable[[str], Awaitable[bool]] = _of_nodes
        self.hear: Callable[[str], None] = lambda resource: None
        self.lending = Lending(
            directory,
            files,
            loans,
            self.offers,
            self._exports,
            self.plugins,
            boot,
            lambda pod: self.is_over(pod),
            lambda name: self.is_of_cluster(name),
            lambda: self._saying.changed(),
        )
        self._saying = StatusLoop(self.offers, self._exports, self.lending.keep, clock, look_s)
        self._offered = asyncio.Event()  # something, once
        if known.resources:
            self._offered.set()

    def first_said(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """What a node says when its agent begins: nothing can be had before its plugins are heard."""
        known, exported = self.offers.counted(), self._exports.all()
        counted = {
            **(zeroed(node) if self._is_new else {}),
            **{name: known[name] for name in self._exports.counted},
        }
        status = node.get("status") or {}
        said = amounts(status, counted, {one.resource for one in exported})
        if exported or status.get("computeResources"):
            said["computeResources"] = [one.as_fields() for one in exported]
        return said

    async def run(
        self,
        name: str,
        node: Callable[[], Object | None],
        client: Client,
        informers: Informers,
        complain: Callable[[Object, str, str], None],
    ) -> None:
        """Until cancelled."""
        own = f"spec.nodeName={name}"
        followed = ResourceId("resource.k8s.io", "v1", "resourceslices", namespaced=False, field_selector=own)
        nodes = client.resource("", "v1", "nodes", namespaced=False)
        listing = Listing(name, client, informers, self._saying.changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.plugins.run())
            await self._look_for(listing)
            if not listing.is_begun:
                await self._offered.wait()  # where there are no plugins, nobody needs the slices
            slices = informers.use(followed)
            stop = slices.handle(lambda change: self._saying.changed())
            try:
                await self._saying.run(Surroundings(node, lambda: slices.cache, nodes, listing, complain))
            finally:
                stop()
                informers.leave(slices)
                listing.end()

    async def _look_for(self, listing: Listing) -> None:
        while True:
            try:
                await listing.look()
            except errors.ApiError as refused:
                log.log(
                    level_of(refused, logging.WARNING), "what an agent has listed is not known: %s", refused
                )
                await asyncio.sleep(self._look_s)
            else:
                return

    def _on_change(self, resource: str) -> None:
        self._offered.set()
        self._saying.changed()
        self.hear(resource)


async def _of_nodes(name: str) -> bool:
    return False
