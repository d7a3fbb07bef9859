"""Keeps the slices of a driver in the API as its pools are: writes, repairs, removes.

It follows the driver's own slices. Whoever deletes or changes one (a kubelet does, when it has not
heard of the driver for a while) finds it repaired at once. The order of writes and the generations are
decided in `api.resource.pools`; one pool is written by one task at a time, and a second time only
when the first writes have been heard of, so that no write is decided on what was true before.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final

from allot.api import Object, errors, resource
from allot.base import Clock, Metrics
from allot.client import Client
from allot.informers import Again, Change, Deleted, Informers, Limits, Reconciler, ResourceId, Telemetry

from .devices import Pool, check
from .publishing import Settled, wanted

log = logging.getLogger(__name__)

Fields = dict[str, Any]

HEARD_WITHIN_S: Final = 0.05
PATIENCE_S: Final = 5.0
"""Between attempts: a node that is not there yet comes any moment."""


class Publishing:
    def __init__(
        self,
        driver: str,
        node: str,
        client: Client,
        informers: Informers,
        clock: Clock,
        telemetry: Telemetry,
        metrics: Metrics,
    ) -> None:
        self._driver, self._node = driver, node
        self._slices = client.of(resource.RESOURCE_SLICE)
        self._nodes = client.resource("", "v1", "nodes", namespaced=False)
        self._informers = informers
        self._followed = informers.use(
            ResourceId(
                "resource.k8s.io",
                "v1",
                "resourceslices",
                namespaced=False,
                field_selector=f"spec.driver={driver},spec.nodeName={node}",
            )
        )
        self._loop = Reconciler(
            "driver slices", self._reconcile, clock, telemetry, limits=Limits(longest_s=PATIENCE_S)
        )
        self._pools: tuple[Pool, ...] | None = None
        self._wanted: dict[str, list[Fields]] = {}
        self._settled = Settled()
        self._written: dict[str, str] = {}  # by pool: the last version that was written
        self._writes = metrics.counter("allot_driver_slice_writes_total", "Slices written.", "verb")
        self._dropped = metrics.counter(
            "allot_driver_dropped_fields_total", "Fields of slices that the API server dropped."
        )
        metrics.reading(
            "allot_driver_devices",
            "Devices that are published.",
            lambda: sum(len(pool.devices) for pool in self._pools or ()),
        )

    def publish(self, pools: Sequence[Pool]) -> None:
        """These, and nothing else, from now on. Raises BadPools."""
        check(pools)
        self._pools = tuple(pools)
        self._wanted.clear()
        for name in {*self._known(), *(pool.name for pool in pools)}:
            self._loop.add(name)

    async def run(self) -> None:
        await self._informers.synced(self._followed)
        self._followed.handle(self._heard)
        await self._loop.run()

    def _heard(self, change: Change) -> None:
        if isinstance(change, Deleted):
            self._wanted.clear()  # perhaps with its node, which may be another one of that name by now
        self._loop.add(change.object.fields["spec"]["pool"]["name"])

    async def _reconcile(self, pool: str) -> Again | None:
        if self._pools is None:
            return None
        if not self._followed.has_heard(self._written.get(pool, "0")):
            return Again(HEARD_WITHIN_S)
        if not self._wanted:
            pools, owner = self._pools, await self._owner()
            if pools is not self._pools:
                return Again(HEARD_WITHIN_S)
            self._wanted = wanted(self._driver, self._node, owner, pools)
        slices = [self._settled.adjusted(one) for one in self._wanted.get(pool, ())]
        changes = resource.pools.changes(slices, self._known().get(pool, []))
        for gone in changes.delete:
            await self._delete(gone)
        for changed in changes.replace:
            self._note(pool, changed, await self._slices.update(changed), "update")
        for new in changes.create:
            self._note(pool, new, await self._slices.create(new), "create")
        return Again(HEARD_WITHIN_S) if changes else None

    async def _owner(self) -> Fields:
        node = await self._nodes.get(self._node)
        return {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid, "controller": True}

    async def _delete(self, gone: Object) -> None:
        self._settled.forget(gone.name)
        try:
            await self._slices.delete(gone.name, uid=gone.uid, resource_version=gone.resource_version)
        except errors.NotFound:
            return
        self._writes.add(1, "delete")

    def _note(self, pool: str, slice: Fields, stored: Object, verb: str) -> None:
        self._writes.add(1, verb)
        self._written[pool] = stored.resource_version
        lost = self._settled.note(slice, stored)
        if lost:
            self._dropped.add(len(lost))
            log.warning(
                "the API server dropped fields of slice %s: %s",
                stored.name,
                ", ".join(lost[:10]),
                extra={"driver": self._driver, "pool": pool, "slice": stored.name, "dropped": lost},
            )

    def _known(self) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for one in self._followed.cache:
            found.setdefault(one.fields["spec"]["pool"]["name"], []).append(one)
        return found
